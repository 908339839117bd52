//! What is found out of a code object's functions, one after the other: their instructions are
//! forgotten, and decoded again for those that somebody wants to see.

use super::block::{Blocks, JumpTarget};
use super::draft::Draft;
use super::extent::{Extents, FunctionExtent};
use super::findings::{Findings, Surroundings};
use super::step::Step;
use super::track::track;
use super::{Disassembly, FlowError};
use flipwave_codeobj::{CodeObject, Definition, RelocationKind};
use flipwave_isa::{Isa, Pc, RegisterSet, Sgpr};
use petgraph::unionfind::UnionFind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Most passes over the functions, each of which uses what the one before found of the others.
const ROUNDS: usize = 8;

/// Where the return address is (AMDGPUUsage, "Non-Kernel Functions").
const RETURN_PAIR: Sgpr = Sgpr(30);

/// Most instructions of a program.
const INSTRUCTIONS_LIMIT: u32 = u32::MAX / 2;

/// What there is to know of the functions of a code object before their instructions are looked at:
/// where they are, how control goes through them, whom they call. It takes far less memory than a
/// [`Disassembly`] of all of them.
pub struct Survey<'a> {
    pub(super) object: &'a CodeObject,
    pub(super) wave_size: u8,
    /// Where AccVGPRs begin, if code names some of them as VGPRs.
    pub(super) accum_offset: Option<u16>,
    /// By ascending address.
    pub(super) functions: Vec<SurveyedFunction>,
    /// Functions by where they begin.
    pub(super) entries: BTreeMap<Pc, usize>,
    /// What relocations put where.
    pub(super) relocated: BTreeMap<u64, u64>,
    /// Where functions begin whose address is taken.
    pub(super) taken: BTreeSet<u64>,
    /// Addresses that are taken, where no function begins, and the functions that take them; data
    /// does where it is none.
    pub(super) labels: BTreeMap<Pc, BTreeSet<Option<usize>>>,
    isa: Isa,
    extents: Extents,
    /// Where the functions begin that are looked at; nothing: all are.
    wanted: Option<BTreeSet<u64>>,
    keeps_instructions: bool,
}

/// A function.
pub(super) struct SurveyedFunction {
    pub(super) extent: FunctionExtent,
    pub(super) part: FunctionParts,
    /// Where its first instruction is.
    pub(super) first: Pc,
    /// One more than the highest number of a VGPR that it names.
    pub(super) vgprs_named: u16,
    pub(super) draft: Option<Draft>,
    instructions: usize,
    has_gaps: bool,
}

/// What is understood of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionParts {
    pub(super) blocks: Blocks,
    pub(super) findings: Findings,
}

impl FunctionParts {
    /// Whom it calls, and goes to in place of returning, as far as that is known.
    fn targets(&self) -> impl Iterator<Item = Option<Pc>> {
        let calls = self.findings.calls.values().map(|call| call.target);
        calls.chain(self.blocks.tail_calls.values().map(|target| Some(*target)))
    }
}

impl<'a> Survey<'a> {
    /// Looks at all functions: those that symbols and descriptors name, and besides what code without
    /// symbols calls.
    ///
    /// # Errors
    /// As [`Disassembly::read`].
    pub fn of(object: &'a CodeObject) -> Result<Survey<'a>, FlowError> {
        Survey::looked(object, None, false)
    }

    /// The same, keeping all instructions.
    pub(super) fn keeping(object: &'a CodeObject) -> Result<Survey<'a>, FlowError> {
        Survey::looked(object, None, true)
    }

    /// Looks at a kernel, by its index in the code object, and at what it may call; at all functions
    /// if that may be any.
    ///
    /// What the other kernels do is of no concern: that they take the address of a function does not
    /// make it one that this kernel calls.
    ///
    /// # Errors
    /// As [`Disassembly::read`], of this kernel.
    pub fn of_kernel(object: &'a CodeObject, kernel: usize) -> Result<Survey<'a>, FlowError> {
        let start = object.kernels().get(kernel).map(|own| own.start().0);
        let survey = Survey::looked(object, Some(BTreeSet::from_iter(start)), true)?;
        if survey.is_complete(kernel) { Ok(survey) } else { Survey::of(object) }
    }

    fn looked(
        object: &'a CodeObject,
        wanted: Option<BTreeSet<u64>>,
        keeps_instructions: bool,
    ) -> Result<Survey<'a>, FlowError> {
        let extents = Extents::of(object);
        let kernels = extents.iter().filter(|own| is_wanted(wanted.as_ref(), own.start));
        let kernels: BTreeSet<usize> = kernels.filter_map(|own| own.kernel).collect();
        let wave_size = wave_size(object, wanted.as_ref().map(|_| &kernels))?;
        let mut survey = Survey {
            object,
            wave_size,
            accum_offset: None,
            functions: Vec::new(),
            entries: BTreeMap::new(),
            relocated: relocated(object),
            taken: BTreeSet::new(),
            labels: BTreeMap::new(),
            isa: Isa::with_wave_size(object.target(), wave_size)?,
            extents,
            wanted,
            keeps_instructions,
        };
        loop {
            survey.list()?;
            survey.understand();
            if !survey.has_found_more() {
                break;
            }
        }
        let count: usize = survey.functions.iter().map(|own| own.instructions).sum();
        if count > INSTRUCTIONS_LIMIT as usize {
            return Err(FlowError::TooLarge { limit: INSTRUCTIONS_LIMIT });
        }
        survey.taken = survey.taken();
        survey.labels = survey.labels();
        survey.accum_offset = survey.shared_vgprs()?;
        Ok(survey)
    }

    /// Whether all is known of what a kernel may run, though not all functions were looked at.
    fn is_complete(&self, kernel: usize) -> bool {
        let is_there = self.functions.iter().any(|own| own.extent.kernel == Some(kernel));
        let is_known = |target: Option<Pc>| target.is_some_and(|own| self.is_entry(own));
        // Other callers may put the return address elsewhere.
        let is_usual = |own: &SurveyedFunction| {
            own.part.findings.calls.values().all(|call| call.pair == Some(RETURN_PAIR))
                && own.part.targets().all(is_known)
        };
        // Code that goes to unknown places makes functions whose address is taken callable.
        let has_functions = self.extents.iter().any(|own| own.kernel.is_none());
        let is_followed =
            |own: &SurveyedFunction| own.part.blocks.unresolved.is_empty() || !has_functions;
        is_there && self.functions.iter().all(|own| is_usual(own) && is_followed(own))
    }

    /// The functions that are looked at.
    fn list(&mut self) -> Result<(), FlowError> {
        let mut known: BTreeMap<u64, SurveyedFunction> = std::mem::take(&mut self.functions)
            .into_iter()
            .map(|own| (own.extent.start, own))
            .collect();
        for extent in self.extents.iter() {
            if !is_wanted(self.wanted.as_ref(), extent.start) {
                continue;
            }
            let first = Draft::first(self.object, &self.isa, extent);
            if let Some(kernel) = extent.kernel.filter(|_| first != Some(Pc(extent.start))) {
                return Err(FlowError::NoInstruction {
                    kernel: self.object.kernels()[kernel].name.to_string(),
                    start: Pc(extent.start),
                    target: self.object.target().to_string(),
                });
            }
            let Some(first) = first else { continue };
            let same = known.remove(&extent.start).filter(|own| own.extent == *extent);
            self.functions.push(SurveyedFunction {
                extent: extent.clone(),
                part: FunctionParts::default(),
                first,
                vgprs_named: 0,
                draft: same.and_then(|own| own.draft),
                instructions: 0,
                has_gaps: false,
            });
        }
        let begin = self.functions.iter().map(|own| Pc(own.extent.start));
        self.entries = begin.zip(0..).collect();
        Ok(())
    }

    /// Gives `what` the instructions of a function.
    pub(super) fn with_draft<R>(
        &self,
        function: &SurveyedFunction,
        what: impl FnOnce(&Draft) -> R,
    ) -> R {
        match &function.draft {
            Some(draft) => what(draft),
            None => what(&Draft::decode(self.object, &self.isa, &function.extent)),
        }
    }

    /// The instructions of a function, which need not stay.
    pub(super) fn take_draft(&mut self, function: usize) -> Draft {
        let function = &mut self.functions[function];
        let decoded = || Draft::decode(self.object, &self.isa, &function.extent);
        function.draft.take().unwrap_or_else(decoded)
    }

    /// Whether a function begins at an address.
    fn is_entry(&self, pc: Pc) -> bool {
        let is_beside = || {
            let beside = self.wanted.as_ref().and_then(|_| self.extents.starting(pc));
            beside.is_some_and(|own| Draft::first(self.object, &self.isa, own).is_some())
        };
        self.entries.contains_key(&pc) || is_beside()
    }

    /// Looks at all functions, until nothing new is found.
    fn understand(&mut self) {
        let mut written: BTreeMap<u64, RegisterSet> = BTreeMap::new();
        let mut pairs: BTreeMap<Pc, Sgpr> = BTreeMap::new();
        let mut stale: Vec<usize> = (0..self.functions.len()).collect();
        let may_share = self.may_share_vgprs();
        for _ in 0..ROUNDS {
            let mut calls_changed = false;
            for at in std::mem::take(&mut stale) {
                if self.keeps_instructions && self.functions[at].draft.is_none() {
                    let extent = &self.functions[at].extent;
                    self.functions[at].draft = Some(Draft::decode(self.object, &self.isa, extent));
                }
                let own = &self.functions[at];
                let pair = pairs.get(&Pc(own.extent.start)).copied().unwrap_or(RETURN_PAIR);
                let around = Surroundings {
                    generation: self.object.target().generation(),
                    relocated: &self.relocated,
                    written: &written,
                    return_pair: own.extent.kernel.is_none().then_some(pair),
                };
                let (part, known) = self.with_draft(own, |draft| {
                    let named = draft.insts.iter().filter(|_| may_share);
                    let named = named.map(|inst| inst.vgprs_named()).max().unwrap_or(0);
                    let known = (draft.insts.len(), !draft.gaps.is_empty(), named);
                    (self.function(draft, &around), known)
                });
                let own = &mut self.functions[at];
                calls_changed |= own.part.findings.calls != part.findings.calls;
                own.part = part;
                (own.instructions, own.has_gaps, own.vgprs_named) = known;
            }
            let (now_written, now_pairs) = (self.written(), self.return_pairs());
            let is_final = !calls_changed && now_written == written && now_pairs == pairs;
            if is_final {
                break;
            }
            // What a function is found to do follows from what its callees write, and from where it
            // returns to.
            let has_changed = now_written != written;
            let is_stale = |own: &SurveyedFunction| {
                let start = Pc(own.extent.start);
                (has_changed && !own.part.findings.calls.is_empty())
                    || pairs.get(&start) != now_pairs.get(&start)
            };
            let functions = self.functions.iter().enumerate();
            stale = functions.filter(|(_, own)| is_stale(own)).map(|(at, _)| at).collect();
            (written, pairs) = (now_written, now_pairs);
        }
    }

    /// Whether VGPRs of any kernel can be AccVGPRs as well.
    fn may_share_vgprs(&self) -> bool {
        let kernels = self.functions.iter().filter_map(|own| own.extent.kernel);
        let mut offsets = kernels.map(|own| self.object.kernels()[own].descriptor.acc_vgpr_base());
        offsets.any(|own| own.is_some())
    }

    /// Divides a function into blocks and follows its addresses, by turns: each uses what the other
    /// has found.
    fn function(&self, draft: &Draft, around: &Surroundings<'_>) -> FunctionParts {
        let steps: Vec<Step> = draft.insts.iter().map(Step::of).collect();
        let mut jumps: BTreeMap<usize, JumpTarget> = BTreeMap::new();
        let mut part = FunctionParts::default();
        for round in 0..ROUNDS {
            let blocks = Blocks::of(draft, around.generation, &jumps, |pc| self.is_entry(pc));
            // The same blocks have the same addresses.
            if round > 0 && blocks == part.blocks {
                break;
            }
            part.blocks = blocks;
            part.findings = track(draft, &steps, &part.blocks, around);
            if part.findings.jumps == jumps {
                break;
            }
            jumps.clone_from(&part.findings.jumps);
        }
        part
    }

    /// What functions write that are called, what they call included, by where they begin; of those
    /// that call or go to unknown places nothing is said.
    fn written(&self) -> BTreeMap<u64, RegisterSet> {
        let mut written: BTreeMap<Pc, RegisterSet> = BTreeMap::new();
        let mut callees: BTreeMap<Pc, Vec<Pc>> = BTreeMap::new();
        let called = self.functions.iter().flat_map(|own| own.part.targets()).flatten();
        let called: BTreeSet<usize> =
            called.filter_map(|target| self.entries.get(&target).copied()).collect();
        for own in called.into_iter().map(|at| &self.functions[at]) {
            let start = Pc(own.extent.start);
            let is_there = |target: &Pc| self.entries.contains_key(target);
            let targets: Option<Vec<Pc>> =
                own.part.targets().map(|target| target.filter(is_there)).collect();
            let is_known = own.part.blocks.unresolved.is_empty() && !own.has_gaps;
            if let Some(targets) = targets.filter(|_| is_known) {
                let set = self.with_draft(own, |draft| {
                    draft.insts.iter().flat_map(|inst| inst.writes.iter().copied()).collect()
                });
                written.insert(start, set);
                callees.insert(start, targets);
            }
        }
        loop {
            let mut next = BTreeMap::new();
            for (start, own) in &written {
                let called = callees.get(start).into_iter().flatten();
                let all: Option<Vec<RegisterSet>> =
                    called.map(|callee| written.get(callee).copied()).collect();
                if let Some(all) = all {
                    next.insert(*start, all.into_iter().fold(*own, RegisterSet::union));
                }
            }
            if next == written {
                return written.into_iter().map(|(start, own)| (start.0, own)).collect();
            }
            written = next;
        }
    }

    /// The pair that a function's callers put the return address into, where they agree on one.
    fn return_pairs(&self) -> BTreeMap<Pc, Sgpr> {
        let mut pairs: BTreeMap<Pc, BTreeSet<Sgpr>> = BTreeMap::new();
        for call in self.functions.iter().flat_map(|own| own.part.findings.calls.values()) {
            if let Some((target, pair)) = call.target.zip(call.pair) {
                pairs.entry(target).or_default().insert(pair);
            }
        }
        let agreed = pairs.into_iter().filter(|(_, own)| own.len() == 1);
        agreed.filter_map(|(target, own)| Some((target, own.first().copied()?))).collect()
    }

    /// Takes in functions that the code leads to: what is called, and code whose address is taken and
    /// that belongs to no function. Gives whether there are any more to look at.
    fn has_found_more(&mut self) -> bool {
        let targets = self.functions.iter().flat_map(|own| own.part.targets()).flatten();
        let calls = self.functions.iter().flat_map(|own| own.part.findings.calls.values());
        let called = calls.filter_map(|call| call.target);
        let called: BTreeSet<u64> =
            called.filter(|target| !self.is_entry(*target)).map(|target| target.0).collect();
        let chains = self.functions.iter().flat_map(|own| &own.part.findings.chains);
        let taken = chains.map(|chain| chain.target.0).chain(self.relocated.values().copied());
        let taken: BTreeSet<u64> = taken.filter(|address| !self.belongs(*address)).collect();
        let targets: BTreeSet<u64> = targets.map(|target| target.0).collect();
        let mut has_more = false;
        for start in called.iter().chain(&taken) {
            if self.extents.add(self.object, *start) {
                let is_called = called.contains(start);
                has_more |= self.wanted.is_none() || is_called;
            }
        }
        if let Some(wanted) = &mut self.wanted {
            let there = targets.into_iter().filter(|own| self.extents.starting(Pc(*own)).is_some());
            let before = wanted.len();
            wanted.extend(there);
            has_more |= wanted.len() > before;
        }
        has_more
    }

    /// Whether an address is in a function.
    fn belongs(&self, address: u64) -> bool {
        if self.wanted.is_some() {
            return self.extents.holding(Pc(address)).is_some();
        }
        let after = self.functions.partition_point(|own| own.extent.start <= address);
        let before = after.checked_sub(1).and_then(|at| self.functions.get(at));
        before.is_some_and(|own| address < own.extent.end)
    }

    /// Where functions begin whose address is taken. It only counts if something calls or goes to
    /// unknown places.
    fn taken(&self) -> BTreeSet<u64> {
        let is_unknown = |own: &SurveyedFunction| {
            let known =
                |target: Option<Pc>| target.is_some_and(|own| self.entries.contains_key(&own));
            own.part.findings.calls.values().any(|call| !known(call.target))
                || !own.part.blocks.unresolved.is_empty()
        };
        if !self.functions.iter().any(is_unknown) {
            return BTreeSet::new();
        }
        let escaped = self.functions.iter().flat_map(|own| &own.part.findings.escaped);
        let escaped: BTreeSet<u64> = escaped.copied().collect();
        // Slots of the global offset table are loaded from by code that is followed.
        let table = self.object.section(".got");
        let in_table = |place: &u64| {
            table.is_some_and(|own| (own.address..own.address + own.size).contains(place))
        };
        let data =
            self.relocated.iter().filter(|(place, _)| !in_table(place) || escaped.contains(place));
        let taken: BTreeSet<u64> =
            escaped.iter().copied().chain(data.map(|(_, address)| *address)).collect();
        let functions = self.functions.iter().filter(|own| own.extent.kernel.is_none());
        let functions: BTreeSet<u64> = functions.map(|own| own.extent.start).collect();
        // A kernel does not return, and is no target of a call.
        let taken: BTreeSet<u64> = taken.intersection(&functions).copied().collect();
        // Pointers come from somewhere: if it is not seen where from, they may be any.
        if taken.is_empty() { functions } else { taken }
    }

    fn labels(&self) -> BTreeMap<Pc, BTreeSet<Option<usize>>> {
        let is_entry = |target: Pc| {
            let at = self.functions.binary_search_by_key(&target, |own| own.first);
            at.is_ok()
        };
        let functions = self.functions.iter().enumerate();
        let chains = functions.flat_map(|(at, own)| {
            own.part.findings.chains.iter().map(move |chain| (chain.target, Some(at)))
        });
        let data = self.relocated.values().map(|address| (Pc(*address), None));
        let mut labels: BTreeMap<Pc, BTreeSet<Option<usize>>> = BTreeMap::new();
        for (target, by) in chains.chain(data).filter(|(target, _)| !is_entry(*target)) {
            labels.entry(target).or_default().insert(by);
        }
        labels
    }

    /// The functions that a function may call.
    fn callees(&self, function: &SurveyedFunction) -> Vec<usize> {
        let mut callees = Vec::new();
        for target in function.part.targets() {
            match target.and_then(|target| self.entries.get(&target)) {
                Some(callee) => callees.push(*callee),
                None => {
                    let taken = self.taken.iter().filter_map(|own| self.entries.get(&Pc(*own)));
                    callees.extend(taken);
                }
            }
        }
        callees
    }

    /// A function and all that run when it does, by ascending index.
    pub(super) fn reachable(&self, from: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            let callees = self.callees(&self.functions[at]);
            open.extend(callees.into_iter().filter(|callee| seen.insert(*callee)));
        }
        seen
    }

    /// Lanes of the waves.
    pub fn wave_size(&self) -> u8 {
        self.wave_size
    }

    /// How many functions there are. They are counted by ascending address.
    pub fn count(&self) -> usize {
        self.functions.len()
    }

    /// A function and all that run when it does, by ascending address.
    pub fn callable(&self, from: usize) -> Vec<usize> {
        self.reachable(from).into_iter().collect()
    }

    /// The functions in groups that have nothing to do with each other: no call leads from one to
    /// another. Groups by their first function, functions by ascending address.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut classes: UnionFind<usize> = UnionFind::new(self.functions.len());
        for (caller, function) in self.functions.iter().enumerate() {
            for callee in self.callees(function) {
                classes.union(caller, callee);
            }
        }
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for at in 0..self.functions.len() {
            groups.entry(classes.find_mut(at)).or_default().push(at);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort_by_key(|own| own.first().copied());
        groups
    }

    /// Whether it is of a kernel and what that may call, and not of all functions.
    pub fn is_of_kernel(&self) -> bool {
        self.wanted.is_some()
    }

    /// The ELF virtual addresses of a function.
    pub fn extent(&self, function: usize) -> Option<Range<u64>> {
        self.functions.get(function).map(|own| own.extent.start..own.extent.end)
    }

    /// The kernel that a function is, by its index in the code object.
    pub fn kernel(&self, function: usize) -> Option<usize> {
        self.functions.get(function)?.extent.kernel
    }

    /// The code of some of the functions: a group of [`Survey::groups`].
    pub fn disassembly(&mut self, group: &[usize]) -> Disassembly {
        self.program(group)
    }
}

fn is_wanted(wanted: Option<&BTreeSet<u64>>, start: u64) -> bool {
    wanted.is_none_or(|own| own.contains(&start))
}

/// Lanes of the waves of the kernels, or of some of them.
fn wave_size(object: &CodeObject, some: Option<&BTreeSet<usize>>) -> Result<u8, FlowError> {
    let kernels = || {
        let all = object.kernels().iter().enumerate();
        let own = all.filter(|(index, _)| some.is_none_or(|some| some.contains(index)));
        own.map(|(_, kernel)| (kernel, kernel.descriptor.wavefront_size()))
    };
    let Some((first, first_size)) = kernels().next() else {
        return Ok(object.target().default_wave_size());
    };
    match kernels().find(|(_, size)| *size != first_size) {
        Some((second, second_size)) => Err(FlowError::WaveSizes {
            first: first.name.to_string(),
            first_size,
            second: second.name.to_string(),
            second_size,
        }),
        None => Ok(first_size as u8),
    }
}

/// What relocations put where.
fn relocated(object: &CodeObject) -> BTreeMap<u64, u64> {
    let relocated = object.relocations().iter().filter_map(|relocation| {
        let base = match (relocation.kind, &relocation.symbol) {
            (RelocationKind::Relative64, None) => 0,
            (RelocationKind::Abs64, Some(symbol)) if symbol.definition == Definition::Address => {
                symbol.address
            }
            _ => return None,
        };
        Some((relocation.place, base.wrapping_add_signed(relocation.addend)))
    });
    relocated.collect()
}
