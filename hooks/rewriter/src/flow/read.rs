//! The code of functions that have been looked at.

use super::draft::Draft;
use super::loops::loops;
use super::survey::{FunctionParts, Survey};
use super::{
    AddressChain, Block, BlockIndex, Call, Disassembly, Edge, FlowError, Function, FunctionIndex,
    IndexRange, IndexVec, InstIndex, Key, Loop, Unresolved, UnresolvedKind,
};
use crate::registers::Allocation;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Opcode, Pc};
use std::collections::BTreeMap;

impl Disassembly {
    /// Reads the code of a code object.
    ///
    /// Functions are what symbols and descriptors name, and besides what code without symbols
    /// calls. Where a function's flow is not understood, it is in its [`Function::unresolved`].
    ///
    /// # Errors
    /// Where nothing can be said at all: an unknown target, kernels of different wave sizes, a
    /// kernel that begins with no instruction.
    pub fn read(object: &CodeObject) -> Result<Disassembly, FlowError> {
        let mut survey = Survey::keeping(object)?;
        let all: Vec<usize> = (0..survey.functions.len()).collect();
        Ok(survey.program(&all))
    }

    /// Reads the code of a kernel, by its index in the code object, and of what it may call; nothing
    /// else is decoded. See [`Survey::of_kernel`].
    ///
    /// # Errors
    /// As [`Disassembly::read`], of this kernel.
    pub fn of_kernel(object: &CodeObject, kernel: usize) -> Result<Disassembly, FlowError> {
        let mut survey = Survey::of_kernel(object, kernel)?;
        let own = survey.functions.iter().position(|own| own.extent.kernel == Some(kernel));
        let reachable = own.map(|own| survey.reachable(own)).unwrap_or_default();
        let reachable: Vec<usize> = reachable.into_iter().collect();
        Ok(survey.program(&reachable))
    }
}

impl Survey<'_> {
    /// Puts functions together, by ascending address. Whom they call is among them.
    pub(super) fn program(&mut self, chosen: &[usize]) -> Disassembly {
        let mut program = Disassembly {
            target: self.object.target().clone(),
            wave_size: self.wave_size,
            accum_offset: self.accum_offset,
            instructions: IndexVec::new(),
            blocks: IndexVec::new(),
            functions: IndexVec::new(),
            addresses: Vec::new(),
        };
        for function in chosen {
            let mut draft = self.take_draft(*function);
            let (part, entries) = (&self.functions[*function].part, &self.entries);
            let first = program.instructions.len();
            let first_block = program.blocks.len();
            let inst = |local: usize| InstIndex::new(first + local);
            let block = |local: usize| BlockIndex::new(first_block + local);
            let index = program.functions.next_index();
            let callee = |target: Option<Pc>| {
                let callee = entries.get(&target?)?;
                Some(FunctionIndex::new(chosen.binary_search(callee).ok()?))
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
                allocated: draft.extent.kernel.map(|own| {
                    Allocation::of(&self.object.kernels()[own], &program.target).registers()
                }),
                instructions: IndexRange::new(inst(0), inst(draft.insts.len())),
                blocks: IndexRange::new(block(0), block(part.blocks.blocks.len())),
                calls,
                address_taken: self.taken.contains(&draft.extent.start),
                loops: loops.collect(),
                unresolved: unresolved(&draft, part, entries)
                    .into_iter()
                    .map(|(at, (kind, reason))| Unresolved { at: inst(at), kind, reason })
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
            if let Some(offset) = self.accum_offset {
                draft.insts.iter_mut().for_each(|inst| inst.replace_vgpr_aliases(offset));
            }
            program.instructions.extend(draft.insts);
        }
        self.mark_taken_labels(&mut program, chosen);
        program
    }

    /// A label within a function, its address taken for other than a jump that is known, is a way in
    /// that is not known.
    fn mark_taken_labels(&self, program: &mut Disassembly, chosen: &[usize]) {
        for (index, function) in chosen.iter().enumerate() {
            let extent = &self.functions[*function].extent;
            for (target, takers) in self.labels.range(Pc(extent.start)..Pc(extent.end)) {
                let Some(at) = program.at(*target) else { continue };
                let own = FunctionIndex::new(index);
                let is_jump = |block: &Block| {
                    program.instructions[block.last()].operation.opcode() == Opcode::SSetpc
                        && block
                            .successors
                            .iter()
                            .any(|edge| program.blocks[edge.to].instructions.start == at)
                };
                let is_known = takers.iter().all(|taker| *taker == Some(*function))
                    && program.blocks[program.functions[own].blocks].iter().any(is_jump);
                let unresolved = &mut program.functions[own].unresolved;
                if !is_known && !unresolved.iter().any(|own| own.at == at) {
                    let reason = "its address is taken, and it is not known who goes there";
                    let kind = UnresolvedKind::Entry;
                    unresolved.push(Unresolved { at, kind, reason: reason.to_owned() });
                    unresolved.sort_by_key(|own| own.at);
                }
            }
        }
    }
}

/// What is not understood of a function.
fn unresolved(
    draft: &Draft,
    part: &FunctionParts,
    entries: &BTreeMap<Pc, usize>,
) -> BTreeMap<usize, (UnresolvedKind, String)> {
    let address = |reason: String| (UnresolvedKind::Address, reason);
    let found = part.findings.unresolved.iter();
    let mut all: BTreeMap<usize, (UnresolvedKind, String)> =
        found.map(|(at, reason)| (*at, address(reason.clone()))).collect();
    for gap in &draft.gaps {
        all.insert(*gap, address("bytes after it are no instruction that is known".to_owned()));
    }
    let code = draft.extent.start..draft.extent.end;
    for chain in &part.findings.chains {
        let is_inst = draft.at(chain.target).is_some() || entries.contains_key(&chain.target);
        if code.contains(&chain.target.0) && !is_inst {
            let reason = format!(
                "it gives the address {} within the code, where no instruction begins",
                chain.target
            );
            all.insert(chain.getpc as usize, address(reason));
        }
    }
    let exits = part.blocks.unresolved.iter();
    all.extend(exits.map(|(at, reason)| (*at, (UnresolvedKind::Exit, reason.clone()))));
    all
}
