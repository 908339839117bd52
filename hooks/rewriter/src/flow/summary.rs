//! Analysis of a code object's functions without keeping their instructions, which are decoded again for
//! the functions whose code is requested.

use super::block::{Blocks, JumpTarget};
use super::decoded::DecodedFunction;
use super::effect::Effect;
use super::extents::{Extents, FunctionExtent};
use super::findings::{Findings, ProgramContext};
use super::track::track;
use super::{Disassembly, FlowError};
use flipwave_codeobj::{CodeObject, Definition, RelocationKind};
use flipwave_isa::{Isa, Pc, RegisterSet, Sgpr};
use petgraph::unionfind::UnionFind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Most iterations of an analysis whose results depend on each other.
const MAX_ITERATIONS: usize = 8;

/// The register pair that holds the return address (AMDGPUUsage, "Non-Kernel Functions").
const RETURN_PAIR: Sgpr = Sgpr(30);

/// Most instructions of a program.
const MAX_INSTRUCTIONS: u32 = u32::MAX / 2;

/// The functions of a code object with their control flow and calls, but without instructions. A summary
/// takes far less memory than a [`Disassembly`] of all functions.
pub struct ProgramSummary<'a> {
    pub(super) object: &'a CodeObject,
    pub(super) wave_size: u8,
    /// Number of the first VGPR that is an AccVGPR, if the code names AccVGPRs as VGPRs.
    pub(super) accum_offset: Option<u16>,
    /// All analyzed functions, by ascending address.
    pub(super) functions: Vec<FunctionSummary>,
    /// Indices of functions by start address.
    pub(super) entries: BTreeMap<Pc, usize>,
    /// Relocated pointers by location.
    pub(super) relocated: BTreeMap<u64, u64>,
    /// Start addresses of functions whose address is taken.
    pub(super) taken: BTreeSet<u64>,
    /// Other addresses that are taken, with the functions that take them; `None` means data.
    pub(super) labels: BTreeMap<Pc, BTreeSet<Option<usize>>>,
    isa: Isa,
    extents: Extents,
    /// Start addresses of the functions to be analyzed; `None` for all functions.
    selected: Option<BTreeSet<u64>>,
    instruction_storage: InstructionStorage,
}

/// The lifetime of decoded instructions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InstructionStorage {
    /// Keep them in the summary.
    Keep,
    /// Discard them after use, and decode them again.
    Discard,
}

/// Summary of a function.
pub(super) struct FunctionSummary {
    pub(super) extent: FunctionExtent,
    pub(super) flow: FunctionFlow,
    /// Address of the first instruction.
    pub(super) first: Pc,
    /// The highest number of a named VGPR, plus one.
    pub(super) vgprs_named: u16,
    pub(super) decoded: Option<DecodedFunction>,
    instructions: usize,
    has_gaps: bool,
}

/// Results of analyzing a function.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionFlow {
    pub(super) blocks: Blocks,
    pub(super) findings: Findings,
}

impl FunctionFlow {
    /// The targets of calls and tail calls; `None` for unknown targets.
    fn targets(&self) -> impl Iterator<Item = Option<Pc>> {
        let calls = self.findings.calls.values().map(|call| call.target);
        calls.chain(self.blocks.tail_calls.values().map(|target| Some(*target)))
    }
}

impl<'a> ProgramSummary<'a> {
    /// Analyzes all functions: those with symbols or descriptors, and those found by calls.
    ///
    /// # Errors
    /// Returns the errors of [`Disassembly::read`].
    pub fn new(object: &'a CodeObject) -> Result<ProgramSummary<'a>, FlowError> {
        ProgramSummary::analyze(object, None, InstructionStorage::Discard)
    }

    /// Analyzes all functions and keeps their instructions.
    pub(super) fn with_instructions(
        object: &'a CodeObject,
    ) -> Result<ProgramSummary<'a>, FlowError> {
        ProgramSummary::analyze(object, None, InstructionStorage::Keep)
    }

    /// Analyzes a kernel, given by its index in the code object, and the functions that it may call.
    /// Analyzes all functions if the kernel may call any function.
    ///
    /// Other kernels do not affect the result: if they take the address of a function, this kernel does
    /// not call the function for this reason.
    ///
    /// # Errors
    /// Returns the errors of [`Disassembly::read`] that concern this kernel.
    pub fn for_kernel(
        object: &'a CodeObject,
        kernel: usize,
    ) -> Result<ProgramSummary<'a>, FlowError> {
        let start = object.kernels().get(kernel).map(|kernel| kernel.start().0);
        let selected = Some(BTreeSet::from_iter(start));
        let summary = ProgramSummary::analyze(object, selected, InstructionStorage::Keep)?;
        if summary.is_complete(kernel) { Ok(summary) } else { ProgramSummary::new(object) }
    }

    fn analyze(
        object: &'a CodeObject,
        selected: Option<BTreeSet<u64>>,
        instruction_storage: InstructionStorage,
    ) -> Result<ProgramSummary<'a>, FlowError> {
        let extents = Extents::new(object);
        let kernels = extents.iter().filter(|extent| is_selected(selected.as_ref(), extent.start));
        let kernels: BTreeSet<usize> = kernels.filter_map(|extent| extent.kernel).collect();
        let wave_size = wave_size(object, selected.as_ref().map(|_| &kernels))?;
        let mut summary = ProgramSummary {
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
            selected,
            instruction_storage,
        };
        loop {
            summary.list_functions()?;
            summary.analyze_functions();
            if !summary.add_found_functions() {
                break;
            }
        }
        let count: usize = summary.functions.iter().map(|function| function.instructions).sum();
        if count > MAX_INSTRUCTIONS as usize {
            return Err(FlowError::TooLarge { limit: MAX_INSTRUCTIONS });
        }
        summary.taken = summary.taken();
        summary.labels = summary.labels();
        summary.accum_offset = summary.vgpr_alias_offset()?;
        Ok(summary)
    }

    /// Returns `true` if all functions that a kernel may execute are analyzed.
    fn is_complete(&self, kernel: usize) -> bool {
        let mut functions = self.functions.iter();
        let is_analyzed = functions.any(|function| function.extent.kernel == Some(kernel));
        let is_known = |target: Option<Pc>| target.is_some_and(|target| self.is_entry(target));
        // With another register pair, the result would depend on callers that are not analyzed.
        let has_usual_calls = |function: &FunctionSummary| {
            let mut calls = function.flow.findings.calls.values();
            calls.all(|call| call.pair == Some(RETURN_PAIR))
                && function.flow.targets().all(is_known)
        };
        // Code with unknown successors may call any function whose address is taken.
        let has_functions = self.extents.iter().any(|extent| extent.kernel.is_none());
        let has_known_successors = |function: &FunctionSummary| {
            function.flow.blocks.unresolved.is_empty() || !has_functions
        };
        let mut functions = self.functions.iter();
        is_analyzed
            && functions.all(|function| has_usual_calls(function) && has_known_successors(function))
    }

    /// Creates the list of functions to be analyzed.
    fn list_functions(&mut self) -> Result<(), FlowError> {
        let mut known: BTreeMap<u64, FunctionSummary> = std::mem::take(&mut self.functions)
            .into_iter()
            .map(|function| (function.extent.start, function))
            .collect();
        for extent in self.extents.iter() {
            if !is_selected(self.selected.as_ref(), extent.start) {
                continue;
            }
            let first = DecodedFunction::first(self.object, &self.isa, extent);
            if let Some(kernel) = extent.kernel.filter(|_| first != Some(Pc(extent.start))) {
                return Err(FlowError::NoInstruction {
                    kernel: self.object.kernels()[kernel].name.to_string(),
                    start: Pc(extent.start),
                    target: self.object.target().to_string(),
                });
            }
            let Some(first) = first else { continue };
            let unchanged = known.remove(&extent.start);
            let unchanged = unchanged.filter(|function| function.extent == *extent);
            self.functions.push(FunctionSummary {
                extent: extent.clone(),
                flow: FunctionFlow::default(),
                first,
                vgprs_named: 0,
                decoded: unchanged.and_then(|function| function.decoded),
                instructions: 0,
                has_gaps: false,
            });
        }
        let starts = self.functions.iter().map(|function| Pc(function.extent.start));
        self.entries = starts.zip(0..).collect();
        Ok(())
    }

    /// Calls `use_decoded` with the instructions of a function.
    pub(super) fn with_decoded<R>(
        &self,
        function: &FunctionSummary,
        use_decoded: impl FnOnce(&DecodedFunction) -> R,
    ) -> R {
        match &function.decoded {
            Some(decoded) => use_decoded(decoded),
            None => use_decoded(&DecodedFunction::decode(self.object, &self.isa, &function.extent)),
        }
    }

    /// Returns the instructions of a function, and removes them from the summary.
    pub(super) fn take_decoded(&mut self, function: usize) -> DecodedFunction {
        let function = &mut self.functions[function];
        let decode = || DecodedFunction::decode(self.object, &self.isa, &function.extent);
        function.decoded.take().unwrap_or_else(decode)
    }

    /// Returns `true` if a function starts at an address, even if it is not analyzed.
    fn is_entry(&self, pc: Pc) -> bool {
        let is_unselected_entry = || {
            let extent = self.selected.as_ref().and_then(|_| self.extents.starting_at(pc));
            let first =
                extent.and_then(|extent| DecodedFunction::first(self.object, &self.isa, extent));
            first.is_some()
        };
        self.entries.contains_key(&pc) || is_unselected_entry()
    }

    /// Analyzes all functions. The result of a function depends on the registers that its callees write and
    /// on the register pair in which its callers pass the return address, so functions are analyzed again
    /// when these change.
    fn analyze_functions(&mut self) {
        let mut written: BTreeMap<u64, RegisterSet> = BTreeMap::new();
        let mut pairs: BTreeMap<Pc, Sgpr> = BTreeMap::new();
        let mut stale: Vec<usize> = (0..self.functions.len()).collect();
        let may_alias = self.may_alias_vgprs();
        for _ in 0..MAX_ITERATIONS {
            let mut calls_changed = false;
            for index in std::mem::take(&mut stale) {
                let is_kept = self.instruction_storage == InstructionStorage::Keep;
                if is_kept && self.functions[index].decoded.is_none() {
                    let extent = &self.functions[index].extent;
                    let decoded = DecodedFunction::decode(self.object, &self.isa, extent);
                    self.functions[index].decoded = Some(decoded);
                }
                let function = &self.functions[index];
                let pair = pairs.get(&Pc(function.extent.start)).copied().unwrap_or(RETURN_PAIR);
                let context = ProgramContext {
                    generation: self.object.target().generation(),
                    relocated: &self.relocated,
                    written: &written,
                    return_pair: function.extent.kernel.is_none().then_some(pair),
                };
                let (flow, counts) = self.with_decoded(function, |decoded| {
                    let named = decoded.insts.iter().filter(|_| may_alias);
                    let named = named.map(|inst| inst.vgprs_named()).max().unwrap_or(0);
                    let counts = (decoded.insts.len(), !decoded.gaps.is_empty(), named);
                    (self.analyze_function(decoded, &context), counts)
                });
                let function = &mut self.functions[index];
                calls_changed |= function.flow.findings.calls != flow.findings.calls;
                function.flow = flow;
                (function.instructions, function.has_gaps, function.vgprs_named) = counts;
            }
            let (new_written, new_pairs) = (self.written(), self.return_pairs());
            if !calls_changed && new_written == written && new_pairs == pairs {
                break;
            }
            let written_changed = new_written != written;
            let is_stale = |function: &FunctionSummary| {
                let start = Pc(function.extent.start);
                (written_changed && !function.flow.findings.calls.is_empty())
                    || pairs.get(&start) != new_pairs.get(&start)
            };
            let functions = self.functions.iter().enumerate();
            stale = functions
                .filter(|(_, function)| is_stale(function))
                .map(|(index, _)| index)
                .collect();
            (written, pairs) = (new_written, new_pairs);
        }
    }

    /// Returns `true` if VGPRs of any analyzed kernel may be AccVGPRs.
    fn may_alias_vgprs(&self) -> bool {
        let kernels = self.functions.iter().filter_map(|function| function.extent.kernel);
        let mut offsets =
            kernels.map(|kernel| self.object.kernels()[kernel].descriptor.acc_vgpr_base());
        offsets.any(|offset| offset.is_some())
    }

    /// Divides a function into blocks and tracks its addresses, in turns because each analysis uses the
    /// results of the other.
    fn analyze_function(
        &self,
        decoded: &DecodedFunction,
        context: &ProgramContext<'_>,
    ) -> FunctionFlow {
        let effects: Vec<Effect> = decoded.insts.iter().map(Effect::of).collect();
        let mut jumps: BTreeMap<usize, JumpTarget> = BTreeMap::new();
        let mut flow = FunctionFlow::default();
        for iteration in 0..MAX_ITERATIONS {
            let blocks = Blocks::new(decoded, context.generation, &jumps, |pc| self.is_entry(pc));
            if iteration > 0 && blocks == flow.blocks {
                break;
            }
            flow.blocks = blocks;
            flow.findings = track(decoded, &effects, &flow.blocks, context);
            if flow.findings.jumps == jumps {
                break;
            }
            jumps.clone_from(&flow.findings.jumps);
        }
        flow
    }

    /// Registers written by called functions, including those written by their callees, by start address.
    /// Functions with unknown callees or successors are left out.
    fn written(&self) -> BTreeMap<u64, RegisterSet> {
        let mut written: BTreeMap<Pc, RegisterSet> = BTreeMap::new();
        let mut callees: BTreeMap<Pc, Vec<Pc>> = BTreeMap::new();
        let called = self.functions.iter().flat_map(|function| function.flow.targets()).flatten();
        let called: BTreeSet<usize> =
            called.filter_map(|target| self.entries.get(&target).copied()).collect();
        for function in called.into_iter().map(|index| &self.functions[index]) {
            let start = Pc(function.extent.start);
            let is_analyzed = |target: &Pc| self.entries.contains_key(target);
            let targets: Option<Vec<Pc>> =
                function.flow.targets().map(|target| target.filter(is_analyzed)).collect();
            let is_resolved = function.flow.blocks.unresolved.is_empty() && !function.has_gaps;
            if let Some(targets) = targets.filter(|_| is_resolved) {
                let writes = self.with_decoded(function, |decoded| {
                    decoded.insts.iter().flat_map(|inst| inst.writes.iter().copied()).collect()
                });
                written.insert(start, writes);
                callees.insert(start, targets);
            }
        }
        loop {
            let mut next = BTreeMap::new();
            for (start, writes) in &written {
                let called = callees.get(start).into_iter().flatten();
                let all: Option<Vec<RegisterSet>> =
                    called.map(|callee| written.get(callee).copied()).collect();
                if let Some(all) = all {
                    next.insert(*start, all.into_iter().fold(*writes, RegisterSet::union));
                }
            }
            if next == written {
                return written.into_iter().map(|(start, writes)| (start.0, writes)).collect();
            }
            written = next;
        }
    }

    /// The register pairs in which functions receive their return address, if all calls use the same pair.
    fn return_pairs(&self) -> BTreeMap<Pc, Sgpr> {
        let mut pairs: BTreeMap<Pc, BTreeSet<Sgpr>> = BTreeMap::new();
        let functions = self.functions.iter();
        for call in functions.flat_map(|function| function.flow.findings.calls.values()) {
            if let Some((target, pair)) = call.target.zip(call.pair) {
                pairs.entry(target).or_default().insert(pair);
            }
        }
        let unique = pairs.into_iter().filter(|(_, pairs)| pairs.len() == 1);
        unique.filter_map(|(target, pairs)| Some((target, pairs.first().copied()?))).collect()
    }

    /// Adds called functions without symbols, and code outside functions whose address is taken. Returns
    /// `true` if there are new functions to be analyzed.
    fn add_found_functions(&mut self) -> bool {
        let targets = self.functions.iter().flat_map(|function| function.flow.targets()).flatten();
        let calls =
            self.functions.iter().flat_map(|function| function.flow.findings.calls.values());
        let called = calls.filter_map(|call| call.target);
        let called: BTreeSet<u64> =
            called.filter(|target| !self.is_entry(*target)).map(|target| target.0).collect();
        let chains = self.functions.iter().flat_map(|function| &function.flow.findings.chains);
        let taken = chains.map(|chain| chain.target.0).chain(self.relocated.values().copied());
        let taken: BTreeSet<u64> = taken.filter(|address| !self.is_in_function(*address)).collect();
        let targets: BTreeSet<u64> = targets.map(|target| target.0).collect();
        let mut has_new = false;
        for start in called.iter().chain(&taken) {
            if self.extents.add(self.object, *start) {
                let is_called = called.contains(start);
                has_new |= self.selected.is_none() || is_called;
            }
        }
        if let Some(selected) = &mut self.selected {
            let functions = targets
                .into_iter()
                .filter(|target| self.extents.starting_at(Pc(*target)).is_some());
            let before = selected.len();
            selected.extend(functions);
            has_new |= selected.len() > before;
        }
        has_new
    }

    /// Returns `true` if an address is in a function.
    fn is_in_function(&self, address: u64) -> bool {
        if self.selected.is_some() {
            return self.extents.containing(Pc(address)).is_some();
        }
        let after = self.functions.partition_point(|function| function.extent.start <= address);
        let before = after.checked_sub(1).and_then(|index| self.functions.get(index));
        before.is_some_and(|function| address < function.extent.end)
    }

    /// Start addresses of functions that indirect calls or jumps may reach. Empty if there are no indirect
    /// calls or jumps.
    fn taken(&self) -> BTreeSet<u64> {
        let has_unknown_target = |function: &FunctionSummary| {
            let is_known = |target: Option<Pc>| {
                target.is_some_and(|target| self.entries.contains_key(&target))
            };
            function.flow.findings.calls.values().any(|call| !is_known(call.target))
                || !function.flow.blocks.unresolved.is_empty()
        };
        if !self.functions.iter().any(has_unknown_target) {
            return BTreeSet::new();
        }
        let escaped = self.functions.iter().flat_map(|function| &function.flow.findings.escaped);
        let escaped: BTreeSet<u64> = escaped.copied().collect();
        // Loads from the global offset table are tracked.
        let table = self.object.section(".got");
        let in_table = |location: &u64| {
            table
                .is_some_and(|table| (table.address..table.address + table.size).contains(location))
        };
        let data = self
            .relocated
            .iter()
            .filter(|(location, _)| !in_table(location) || escaped.contains(location));
        let taken: BTreeSet<u64> =
            escaped.iter().copied().chain(data.map(|(_, address)| *address)).collect();
        // Kernels do not return, so they are not targets of calls.
        let functions = self.functions.iter().filter(|function| function.extent.kernel.is_none());
        let functions: BTreeSet<u64> = functions.map(|function| function.extent.start).collect();
        let taken: BTreeSet<u64> = taken.intersection(&functions).copied().collect();
        // If no source of pointers is found, they may refer to any function.
        if taken.is_empty() { functions } else { taken }
    }

    fn labels(&self) -> BTreeMap<Pc, BTreeSet<Option<usize>>> {
        let is_entry = |target: Pc| {
            self.functions.binary_search_by_key(&target, |function| function.first).is_ok()
        };
        let functions = self.functions.iter().enumerate();
        let chains = functions.flat_map(|(index, function)| {
            let chains = function.flow.findings.chains.iter();
            chains.map(move |chain| (chain.target, Some(index)))
        });
        let data = self.relocated.values().map(|address| (Pc(*address), None));
        let mut labels: BTreeMap<Pc, BTreeSet<Option<usize>>> = BTreeMap::new();
        for (target, taker) in chains.chain(data).filter(|(target, _)| !is_entry(*target)) {
            labels.entry(target).or_default().insert(taker);
        }
        labels
    }

    /// The functions that a function may call directly.
    fn callees(&self, function: &FunctionSummary) -> Vec<usize> {
        let mut callees = Vec::new();
        for target in function.flow.targets() {
            match target.and_then(|target| self.entries.get(&target)) {
                Some(callee) => callees.push(*callee),
                None => {
                    let taken = self.taken.iter();
                    callees.extend(taken.filter_map(|start| self.entries.get(&Pc(*start))));
                }
            }
        }
        callees
    }

    /// A function and all functions that it may call, directly or indirectly, by ascending index.
    pub(super) fn reachable(&self, from: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::from([from]);
        let mut waiting = vec![from];
        while let Some(index) = waiting.pop() {
            let callees = self.callees(&self.functions[index]);
            waiting.extend(callees.into_iter().filter(|callee| seen.insert(*callee)));
        }
        seen
    }

    /// Number of lanes of a wave.
    pub fn wave_size(&self) -> u8 {
        self.wave_size
    }

    /// Number of analyzed functions. Functions are numbered by ascending address.
    pub fn count(&self) -> usize {
        self.functions.len()
    }

    /// A function and all functions that it may call, directly or indirectly, by ascending address.
    pub fn callable(&self, from: usize) -> Vec<usize> {
        self.reachable(from).into_iter().collect()
    }

    /// The functions in groups, such that no call leads from one group to another. Groups are in the order
    /// of their first functions, and list their functions by ascending address.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut classes: UnionFind<usize> = UnionFind::new(self.functions.len());
        for (caller, function) in self.functions.iter().enumerate() {
            for callee in self.callees(function) {
                classes.union(caller, callee);
            }
        }
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for index in 0..self.functions.len() {
            groups.entry(classes.find_mut(index)).or_default().push(index);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort_by_key(|group| group.first().copied());
        groups
    }

    /// Returns `true` if only one kernel and the functions that it may call are analyzed.
    pub fn is_of_kernel(&self) -> bool {
        self.selected.is_some()
    }

    /// The ELF virtual addresses of a function.
    pub fn extent(&self, function: usize) -> Option<Range<u64>> {
        self.functions.get(function).map(|function| function.extent.start..function.extent.end)
    }

    /// The index of the kernel in the code object, if the function is a kernel.
    pub fn kernel(&self, function: usize) -> Option<usize> {
        self.functions.get(function)?.extent.kernel
    }

    /// The code of a group of [`ProgramSummary::groups`].
    pub fn disassembly(&mut self, group: &[usize]) -> Disassembly {
        self.program(group)
    }
}

fn is_selected(selected: Option<&BTreeSet<u64>>, start: u64) -> bool {
    selected.is_none_or(|selected| selected.contains(&start))
}

/// The wave size of all kernels, or of the `selected` ones.
fn wave_size(object: &CodeObject, selected: Option<&BTreeSet<usize>>) -> Result<u8, FlowError> {
    let kernels = || {
        let all = object.kernels().iter().enumerate();
        let kernels =
            all.filter(|(index, _)| selected.is_none_or(|selected| selected.contains(index)));
        kernels.map(|(_, kernel)| (kernel, kernel.descriptor.wavefront_size()))
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

/// Relocated pointers by location.
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
