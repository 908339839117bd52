//! Construction of a [`Disassembly`] from analyzed functions.

use super::block::LocalBlock;
use super::decoded::DecodedFunction;
use super::loops::loops;
use super::summary::{FunctionFlow, ProgramSummary};
use super::{
    AddressChain, Block, BlockIndex, Call, Disassembly, Edge, EdgeKind, FlowError, Function,
    FunctionIndex, IndexRange, IndexVec, InstIndex, Key, Loop, Unresolved, UnresolvedKind,
};
use crate::registers::Allocation;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Opcode, Pc};
use std::collections::BTreeMap;

impl Disassembly {
    /// Reads the code of a code object.
    ///
    /// Functions are found by symbols, descriptors and calls. Control flow that cannot be analyzed is
    /// recorded in [`Function::unresolved`].
    ///
    /// # Errors
    /// Returns an error for an unknown target, kernels of different wave sizes, and a kernel that does not
    /// start with an instruction.
    pub fn read(object: &CodeObject) -> Result<Disassembly, FlowError> {
        let mut summary = ProgramSummary::with_instructions(object)?;
        let all: Vec<usize> = (0..summary.functions.len()).collect();
        Ok(summary.program(&all))
    }

    /// Reads the code of a kernel, given by its index in the code object, and of the functions that it may
    /// call. Other code is only decoded if the kernel may call any function.
    ///
    /// # Errors
    /// Returns the errors of [`Disassembly::read`] that concern this kernel.
    pub fn of_kernel(object: &CodeObject, kernel: usize) -> Result<Disassembly, FlowError> {
        let mut summary = ProgramSummary::for_kernel(object, kernel)?;
        let mut functions = summary.functions.iter();
        let entry = functions.position(|function| function.extent.kernel == Some(kernel));
        let reachable = entry.map(|entry| summary.reachable(entry)).unwrap_or_default();
        let reachable: Vec<usize> = reachable.into_iter().collect();
        Ok(summary.program(&reachable))
    }
}

impl ProgramSummary<'_> {
    /// Combines functions, given by ascending address. `chosen` includes all functions that they call.
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
            self.add_function(&mut program, *function, chosen);
        }
        self.mark_taken_labels(&mut program, chosen);
        program
    }

    /// Appends a function to a program.
    fn add_function(&mut self, program: &mut Disassembly, function: usize, chosen: &[usize]) {
        let mut decoded = self.take_decoded(function);
        let (flow, entries) = (&self.functions[function].flow, &self.entries);
        let numbering = Numbering {
            inst: program.instructions.next_index(),
            block: program.blocks.next_index(),
        };
        let inst = |local: usize| numbering.inst(local);
        let block = |local: usize| numbering.block(local);
        let callee = |target: Option<Pc>| {
            let callee = entries.get(&target?)?;
            Some(FunctionIndex::new(chosen.binary_search(callee).ok()?))
        };
        let calls = flow.findings.calls.iter().map(|(at, call)| (*at, call.target));
        let tail_calls = flow.blocks.tail_calls.iter().map(|(at, target)| (*at, Some(*target)));
        let mut calls: Vec<Call> = calls
            .chain(tail_calls)
            .map(|(at, target)| Call { at: inst(at), callee: callee(target) })
            .collect();
        calls.sort_by_key(|call| call.at);
        let loops = loops(&flow.blocks.blocks).into_iter().map(|local| Loop {
            header: block(local.header),
            blocks: local.blocks.into_iter().map(block).collect(),
            depth: local.depth,
        });
        let index = program.functions.push(Function {
            name: decoded.extent.name.clone(),
            kernel: decoded.extent.kernel,
            allocated: decoded.extent.kernel.map(|kernel| {
                Allocation::of(&self.object.kernels()[kernel], &program.target).registers()
            }),
            instructions: IndexRange::new(inst(0), inst(decoded.insts.len())),
            blocks: IndexRange::new(block(0), block(flow.blocks.blocks.len())),
            calls,
            address_taken: self.taken.contains(&decoded.extent.start),
            loops: loops.collect(),
            unresolved: unresolved(&decoded, flow, entries)
                .into_iter()
                .map(|(at, (kind, reason))| Unresolved { at: inst(at), kind, reason })
                .collect(),
        });
        program.addresses.extend(flow.findings.chains.iter().map(|chain| AddressChain {
            getpc: inst(chain.getpc as usize),
            low: inst(chain.low as usize),
            high: inst(chain.high as usize),
            register: chain.register,
            target: chain.target,
        }));
        program.blocks.extend(numbering.blocks(index, &flow.blocks.blocks));
        if let Some(offset) = self.accum_offset {
            decoded.insts.iter_mut().for_each(|inst| inst.replace_vgpr_aliases(offset));
        }
        program.instructions.extend(decoded.insts);
    }

    /// Marks labels within functions as unknown entries if their address is used other than in a resolved
    /// jump.
    fn mark_taken_labels(&self, program: &mut Disassembly, chosen: &[usize]) {
        for (index, function) in chosen.iter().enumerate() {
            let extent = &self.functions[*function].extent;
            for (target, takers) in self.labels.range(Pc(extent.start)..Pc(extent.end)) {
                let Some(at) = program.at(*target) else { continue };
                let containing = FunctionIndex::new(index);
                let is_jump = |block: &Block| {
                    program.instructions[block.last()].operation.opcode() == Opcode::SSetpc
                        && block
                            .successors
                            .iter()
                            .any(|edge| program.blocks[edge.to].instructions.start == at)
                };
                let is_known = takers.iter().all(|taker| *taker == Some(*function))
                    && program.blocks[program.functions[containing].blocks].iter().any(is_jump);
                let unresolved = &mut program.functions[containing].unresolved;
                if !is_known && !unresolved.iter().any(|known| known.at == at) {
                    let reason = "address taken, so unknown code may jump here";
                    let kind = UnresolvedKind::Entry;
                    unresolved.push(Unresolved { at, kind, reason: reason.to_owned() });
                    unresolved.sort_by_key(|unresolved| unresolved.at);
                }
            }
        }
    }
}

/// The first indices of a function in a [`Disassembly`].
#[derive(Clone, Copy)]
struct Numbering {
    inst: InstIndex,
    block: BlockIndex,
}

impl Numbering {
    fn inst(self, local: usize) -> InstIndex {
        InstIndex::new(self.inst.number() + local)
    }

    fn block(self, local: usize) -> BlockIndex {
        BlockIndex::new(self.block.number() + local)
    }

    /// The blocks of `function`, with predecessors.
    fn blocks(self, function: FunctionIndex, local_blocks: &[LocalBlock]) -> Vec<Block> {
        let edge = |(to, kind): &(usize, EdgeKind)| Edge { to: self.block(*to), kind: *kind };
        let mut blocks: Vec<Block> = local_blocks
            .iter()
            .map(|local| Block {
                function,
                instructions: IndexRange::new(
                    self.inst(local.instructions.start),
                    self.inst(local.instructions.end),
                ),
                successors: local.successors.iter().map(edge).collect(),
                predecessors: Vec::new(),
                end: local.end,
            })
            .collect();
        for (from, local) in local_blocks.iter().enumerate() {
            for (to, _) in &local.successors {
                let predecessors = &mut blocks[*to].predecessors;
                if predecessors.last() != Some(&self.block(from)) {
                    predecessors.push(self.block(from));
                }
            }
        }
        blocks
    }
}

/// The unresolved instructions of a function.
fn unresolved(
    decoded: &DecodedFunction,
    flow: &FunctionFlow,
    entries: &BTreeMap<Pc, usize>,
) -> BTreeMap<usize, (UnresolvedKind, String)> {
    let address = |reason: String| (UnresolvedKind::Address, reason);
    let found = flow.findings.unresolved.iter();
    let mut all: BTreeMap<usize, (UnresolvedKind, String)> =
        found.map(|(at, reason)| (*at, address(reason.clone()))).collect();
    for gap in &decoded.gaps {
        all.insert(*gap, address("followed by bytes that cannot be decoded".to_owned()));
    }
    let code = decoded.extent.start..decoded.extent.end;
    for chain in &flow.findings.chains {
        let is_inst = decoded.at(chain.target).is_some() || entries.contains_key(&chain.target);
        if code.contains(&chain.target.0) && !is_inst {
            let reason = format!(
                "computes the address {} within the code, which is not an instruction",
                chain.target
            );
            all.insert(chain.getpc as usize, address(reason));
        }
    }
    let exits = flow.blocks.unresolved.iter();
    all.extend(exits.map(|(at, reason)| (*at, (UnresolvedKind::Exit, reason.clone()))));
    all
}
