//! Reads the code of a code object.

use super::block::{Blocks, Jump};
use super::draft::Draft;
use super::extent::Extents;
use super::loops::loops;
use super::track::{Findings, Surroundings, track};
use super::{
    AddressChain, Block, BlockIndex, Call, Edge, FlowError, Function, FunctionIndex, IndexRange,
    IndexVec, InstIndex, Key, Loop, Program, Unresolved,
};
use flipwave_codeobj::{CodeObject, Definition, RelocationKind};
use flipwave_isa::{Isa, Opcode, Pc, RegisterSet, Sgpr};
use std::collections::{BTreeMap, BTreeSet};

/// How often the functions are looked at again, as long as what is known of one tells more of
/// another.
const ROUNDS: usize = 8;

/// Where the return address is (AMDGPUUsage, "Non-Kernel Functions").
const RETURN_PAIR: Sgpr = Sgpr(30);

/// Most instructions of a program.
const INSTRUCTIONS_LIMIT: u32 = u32::MAX / 2;

impl Program {
    /// Reads the code of a code object.
    ///
    /// Functions are what symbols and descriptors name, and besides what code without symbols
    /// calls. Where a function's flow is not understood, it is in its [`Function::unresolved`].
    ///
    /// # Errors
    /// Where nothing can be said at all: an unknown target, kernels of different wave sizes, a
    /// kernel that begins with no instruction.
    pub fn read(object: &CodeObject) -> Result<Program, FlowError> {
        let wave_size = wave_size(object)?;
        let isa = Isa::with_wave_size(object.target(), wave_size)?;
        let mut extents = Extents::of(object);
        let mut known: BTreeMap<u64, Draft> = BTreeMap::new();
        loop {
            let mut drafts = Vec::new();
            for extent in extents.iter() {
                let same = known.remove(&extent.start).filter(|draft| draft.extent == *extent);
                drafts.push(same.unwrap_or_else(|| Draft::decode(object, &isa, extent)));
            }
            refuse_empty_kernels(object, &drafts)?;
            drafts.retain(|draft| !draft.insts.is_empty());
            let reader = Reader::new(object, drafts);
            let parts = reader.understand();
            let found = reader.without_symbols(&parts);
            let added = found.into_iter().filter(|start| extents.add(object, *start)).count();
            if added == 0 {
                let mut program = reader.program(parts, wave_size);
                program.name_shared_vgprs(object)?;
                return Ok(program);
            }
            known = reader.drafts.into_iter().map(|draft| (draft.extent.start, draft)).collect();
        }
    }
}

/// Lanes of the waves of the kernels.
fn wave_size(object: &CodeObject) -> Result<u8, FlowError> {
    let sizes = || object.kernels().iter().map(|own| (own, own.descriptor.wavefront_size()));
    let Some((first, first_size)) = sizes().next() else {
        return Ok(object.target().default_wave_size());
    };
    match sizes().find(|(_, size)| *size != first_size) {
        Some((second, second_size)) => Err(FlowError::WaveSizes {
            first: first.name.to_string(),
            first_size,
            second: second.name.to_string(),
            second_size,
        }),
        None => Ok(first_size as u8),
    }
}

fn refuse_empty_kernels(object: &CodeObject, drafts: &[Draft]) -> Result<(), FlowError> {
    for draft in drafts {
        let begins = draft.insts.first().is_some_and(|inst| inst.pc.0 == draft.extent.start);
        if let Some(kernel) = draft.extent.kernel.filter(|_| !begins) {
            return Err(FlowError::NoInstruction {
                kernel: object.kernels()[kernel].name.to_string(),
                start: Pc(draft.extent.start),
                target: object.target().to_string(),
            });
        }
    }
    let count: usize = drafts.iter().map(|draft| draft.insts.len()).sum();
    if count > INSTRUCTIONS_LIMIT as usize {
        return Err(FlowError::TooLarge { limit: INSTRUCTIONS_LIMIT });
    }
    Ok(())
}

/// What is understood of a function.
#[derive(Clone, Debug, Default)]
struct Part {
    blocks: Blocks,
    findings: Findings,
}

struct Reader<'a> {
    object: &'a CodeObject,
    drafts: Vec<Draft>,
    /// Functions by where they begin.
    entries: BTreeMap<Pc, usize>,
    /// What relocations put where.
    relocated: BTreeMap<u64, u64>,
}

impl<'a> Reader<'a> {
    fn new(object: &'a CodeObject, drafts: Vec<Draft>) -> Reader<'a> {
        let begin = drafts.iter().map(|draft| Pc(draft.extent.start));
        let relocated = object.relocations().iter().filter_map(|relocation| {
            let base = match (relocation.kind, &relocation.symbol) {
                (RelocationKind::Relative64, None) => 0,
                (RelocationKind::Abs64, Some(symbol))
                    if symbol.definition == Definition::Address =>
                {
                    symbol.address
                }
                _ => return None,
            };
            Some((relocation.place, base.wrapping_add_signed(relocation.addend)))
        });
        Reader { object, entries: begin.zip(0..).collect(), relocated: relocated.collect(), drafts }
    }

    /// Looks at all functions, until nothing new is found.
    fn understand(&self) -> Vec<Part> {
        let mut parts = vec![Part::default(); self.drafts.len()];
        let mut written = BTreeMap::new();
        let mut pairs = BTreeMap::new();
        for _ in 0..ROUNDS {
            let calls = |parts: &[Part]| -> Vec<_> {
                parts.iter().map(|part| part.findings.calls.clone()).collect()
            };
            let before = calls(&parts);
            for (draft, part) in self.drafts.iter().zip(&mut parts) {
                let own = pairs.get(&Pc(draft.extent.start)).copied().unwrap_or(RETURN_PAIR);
                let around = Surroundings {
                    generation: self.object.target().generation(),
                    relocated: &self.relocated,
                    written: &written,
                    return_pair: draft.extent.kernel.is_none().then_some(own),
                };
                *part = self.function(draft, &around);
            }
            let (now_written, now_pairs) = (self.written(&parts), self.return_pairs(&parts));
            let is_final = calls(&parts) == before && now_written == written && now_pairs == pairs;
            (written, pairs) = (now_written, now_pairs);
            if is_final {
                break;
            }
        }
        parts
    }

    /// Divides a function into blocks and follows its addresses; the ones tell more of the others.
    fn function(&self, draft: &Draft, around: &Surroundings<'_>) -> Part {
        let mut jumps: BTreeMap<usize, Jump> = BTreeMap::new();
        let mut part = Part::default();
        for _ in 0..ROUNDS {
            let is_entry = |pc| self.entries.contains_key(&pc);
            part.blocks = Blocks::of(draft, around.generation, &jumps, is_entry);
            part.findings = track(draft, &part.blocks, around);
            if part.findings.jumps == jumps {
                break;
            }
            jumps.clone_from(&part.findings.jumps);
        }
        part
    }

    /// What functions write, what they call included, by where they begin; of those that call or
    /// go to unknown places nothing is said.
    fn written(&self, parts: &[Part]) -> BTreeMap<u64, RegisterSet> {
        let mut written: BTreeMap<Pc, RegisterSet> = BTreeMap::new();
        let mut callees: BTreeMap<Pc, Vec<Pc>> = BTreeMap::new();
        for (draft, part) in self.drafts.iter().zip(parts) {
            let start = Pc(draft.extent.start);
            let targets = part.findings.calls.values().map(|call| call.target);
            let tails = part.blocks.tail_calls.values().map(|target| Some(*target));
            let targets: Option<Vec<Pc>> = targets
                .chain(tails)
                .map(|target| target.filter(|own| self.entries.contains_key(own)))
                .collect();
            let is_known = part.blocks.unresolved.is_empty() && draft.gaps.is_empty();
            if let Some(targets) = targets.filter(|_| is_known) {
                let own = draft.insts.iter().flat_map(|inst| inst.writes.iter().copied());
                written.insert(start, own.collect());
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
    fn return_pairs(&self, parts: &[Part]) -> BTreeMap<Pc, Sgpr> {
        let mut pairs: BTreeMap<Pc, BTreeSet<Sgpr>> = BTreeMap::new();
        for call in parts.iter().flat_map(|part| part.findings.calls.values()) {
            if let Some((target, pair)) = call.target.zip(call.pair) {
                pairs.entry(target).or_default().insert(pair);
            }
        }
        let agreed = pairs.into_iter().filter(|(_, own)| own.len() == 1);
        agreed.filter_map(|(target, own)| Some((target, own.first().copied()?))).collect()
    }

    /// Where functions must begin that no symbol names: what is called, and code whose address is
    /// taken and that belongs to no function.
    fn without_symbols(&self, parts: &[Part]) -> BTreeSet<u64> {
        let calls = parts.iter().flat_map(|part| part.findings.calls.values());
        let called = calls.filter_map(|call| Some(call.target?.0));
        let chains = parts.iter().flat_map(|part| &part.findings.chains);
        let taken = chains.map(|chain| chain.target.0).chain(self.relocated.values().copied());
        let belongs = |address: u64| {
            self.drafts
                .iter()
                .any(|draft| (draft.extent.start..draft.extent.end).contains(&address))
        };
        let called = called.filter(|address| !self.entries.contains_key(&Pc(*address)));
        called.chain(taken.filter(|address| !belongs(*address))).collect()
    }

    /// Puts the functions together.
    fn program(self, parts: Vec<Part>, wave_size: u8) -> Program {
        let taken = self.taken(&parts);
        let mut program = Program {
            target: self.object.target().clone(),
            wave_size,
            accum_offset: None,
            instructions: IndexVec::new(),
            blocks: IndexVec::new(),
            functions: IndexVec::new(),
            addresses: Vec::new(),
        };
        let entries = &self.entries;
        for (draft, part) in self.drafts.into_iter().zip(parts) {
            let first = program.instructions.len();
            let first_block = program.blocks.len();
            let inst = |local: usize| InstIndex::new(first + local);
            let block = |local: usize| BlockIndex::new(first_block + local);
            let index = program.functions.next_index();
            let callee = |target: Option<Pc>| {
                let callee = entries.get(&target?)?;
                Some(FunctionIndex::new(*callee))
            };
            let mut calls: Vec<Call> = part
                .findings
                .calls
                .iter()
                .map(|(at, call)| Call { at: inst(*at), callee: callee(call.target) })
                .chain(
                    part.blocks
                        .tail_calls
                        .iter()
                        .map(|(at, target)| Call { at: inst(*at), callee: callee(Some(*target)) }),
                )
                .collect();
            calls.sort_by_key(|call| call.at);
            let loops = loops(&part.blocks.blocks).into_iter().map(|own| Loop {
                header: block(own.header),
                blocks: own.blocks.into_iter().map(block).collect(),
                depth: own.depth,
            });
            program.functions.push(Function {
                name: draft.extent.name.clone(),
                kernel: draft.extent.kernel,
                instructions: IndexRange::new(inst(0), inst(draft.insts.len())),
                blocks: IndexRange::new(block(0), block(part.blocks.blocks.len())),
                calls,
                address_taken: taken.contains(&draft.extent.start),
                loops: loops.collect(),
                unresolved: unresolved(&draft, &part, entries)
                    .into_iter()
                    .map(|(at, reason)| Unresolved { at: inst(at), reason })
                    .collect(),
            });
            program.addresses.extend(part.findings.chains.iter().map(|chain| AddressChain {
                getpc: inst(chain.getpc as usize),
                low: inst(chain.low as usize),
                high: inst(chain.high as usize),
                register: chain.register,
                target: chain.target,
            }));
            let mut blocks: Vec<Block> = part
                .blocks
                .blocks
                .iter()
                .map(|own| Block {
                    function: index,
                    instructions: IndexRange::new(
                        inst(own.instructions.start),
                        inst(own.instructions.end),
                    ),
                    successors: own
                        .successors
                        .iter()
                        .map(|(to, kind)| Edge { to: block(*to), kind: *kind })
                        .collect(),
                    predecessors: Vec::new(),
                    end: own.end,
                })
                .collect();
            for (from, own) in part.blocks.blocks.iter().enumerate() {
                for (to, _) in &own.successors {
                    let predecessors = &mut blocks[*to].predecessors;
                    if predecessors.last() != Some(&block(from)) {
                        predecessors.push(block(from));
                    }
                }
            }
            program.blocks.extend(blocks);
            program.instructions.extend(draft.insts);
        }
        mark_taken_labels(&mut program, &self.relocated);
        program
    }

    /// Where functions begin whose address is taken. It only counts if something calls or goes to
    /// unknown places.
    fn taken(&self, parts: &[Part]) -> BTreeSet<u64> {
        let is_unknown = |part: &Part| {
            let known =
                |target: Option<Pc>| target.is_some_and(|own| self.entries.contains_key(&own));
            part.findings.calls.values().any(|call| !known(call.target))
                || !part.blocks.unresolved.is_empty()
        };
        if !parts.iter().any(is_unknown) {
            return BTreeSet::new();
        }
        let escaped: BTreeSet<u64> =
            parts.iter().flat_map(|part| part.findings.escaped.iter().copied()).collect();
        // Slots of the global offset table are loaded from by code that is followed.
        let table = self.object.section(".got");
        let in_table = |place: &u64| {
            table.is_some_and(|own| (own.address..own.address + own.size).contains(place))
        };
        let data =
            self.relocated.iter().filter(|(place, _)| !in_table(place) || escaped.contains(place));
        let taken: BTreeSet<u64> =
            escaped.iter().copied().chain(data.map(|(_, address)| *address)).collect();
        let functions = self.drafts.iter().filter(|draft| draft.extent.kernel.is_none());
        let functions: BTreeSet<u64> = functions.map(|draft| draft.extent.start).collect();
        // Pointers come from somewhere: if it is not seen where from, they may be any.
        if taken.is_disjoint(&functions) { functions } else { taken }
    }
}

/// What is not understood of a function.
fn unresolved(
    draft: &Draft,
    part: &Part,
    entries: &BTreeMap<Pc, usize>,
) -> BTreeMap<usize, String> {
    let mut all = part.findings.unresolved.clone();
    for gap in &draft.gaps {
        all.insert(*gap, "bytes behind it are no instruction that is known".to_owned());
    }
    let code = draft.extent.start..draft.extent.end;
    for chain in &part.findings.chains {
        let is_inst = draft.at(chain.target).is_some() || entries.contains_key(&chain.target);
        if code.contains(&chain.target.0) && !is_inst {
            let reason = format!(
                "it gives the address {} within the code, where no instruction begins",
                chain.target
            );
            all.insert(chain.getpc as usize, reason);
        }
    }
    all.extend(part.blocks.unresolved.clone());
    all
}

/// A label within a function, its address taken for other than a jump that is known, is a way in
/// that is not known.
fn mark_taken_labels(program: &mut Program, relocated: &BTreeMap<u64, u64>) {
    let entries: BTreeSet<Pc> =
        program.functions.iter().map(|function| program.entry(function)).collect();
    let chains = program.addresses.iter().map(|chain| (chain.target, Some(chain.getpc)));
    let data = relocated.values().map(|address| (Pc(*address), None));
    let mut labels: Vec<(InstIndex, String)> = Vec::new();
    for (target, getpc) in chains.chain(data).filter(|(target, _)| !entries.contains(target)) {
        let Some(at) = program.at(target) else { continue };
        let is_jump = |block: &Block| {
            program.instructions[block.last()].operation.opcode() == Opcode::SSetpc
                && block
                    .successors
                    .iter()
                    .any(|edge| program.blocks[edge.to].instructions.start == at)
        };
        let function = program.function_of(at);
        let is_known = getpc.map(|own| program.function_of(own)) == Some(function)
            && program.blocks[program.functions[function].blocks].iter().any(is_jump);
        if !is_known {
            labels
                .push((at, "its address is taken, and it is not known who goes there".to_owned()));
        }
    }
    for (at, reason) in labels {
        let function = program.function_of(at);
        let unresolved = &mut program.functions[function].unresolved;
        if !unresolved.iter().any(|own| own.at == at) {
            unresolved.push(Unresolved { at, reason });
            unresolved.sort_by_key(|own| own.at);
        }
    }
}
