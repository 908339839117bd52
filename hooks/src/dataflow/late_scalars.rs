//! Scalar registers that a program by itself may read before they have arrived. Compilers keep that;
//! where one has not, what is inserted need not mend it.

use crate::flow::{BlockIndex, Disassembly, EdgeKind, IndexVec, InstIndex};
use flipwave_isa::hazard::{ScalarReads, ScalarWait};
use flipwave_isa::{Inst, Opcode};
use std::collections::BTreeMap;

/// By instructions before which a program lacks a wait: what is known before them.
pub struct LateScalars(BTreeMap<InstIndex, ScalarReads>);

impl LateScalars {
    /// Those of a program; `begin` is what is known of a wave that begins. Where control comes from
    /// elsewhere anything may have been read; `is_entered` says to which instructions it does, besides
    /// those where functions begin and calls come back.
    pub fn of(
        program: &Disassembly,
        begin: ScalarReads,
        is_entered: &dyn Fn(InstIndex) -> bool,
    ) -> LateScalars {
        let mut entries = IndexVec::filled(None, program.blocks.len());
        let mut is_led_to = IndexVec::filled(false, program.blocks.len());
        for edge in program.blocks.iter().flat_map(|block| &block.successors) {
            is_led_to[edge.to] = true;
            if edge.kind == EdgeKind::Return {
                entries[edge.to] = Some(begin.called());
            }
        }
        for (block, _) in is_led_to.enumerated().filter(|(_, is_led_to)| !**is_led_to) {
            entries[block] = Some(begin.called());
        }
        for function in &program.functions {
            let state = if function.kernel.is_some() { begin } else { begin.called() };
            entries[function.blocks.start] = Some(state);
        }
        let follow = |block: BlockIndex, mut state: ScalarReads, late: &mut LateScalars| {
            for (index, inst) in program.insts_of(program.blocks[block].instructions) {
                if is_entered(index) {
                    state.join(&begin.called());
                }
                if !needed_by_program(&state, inst).is_empty() {
                    late.0.insert(index, state);
                }
                state.execute(inst);
            }
            state
        };
        // What is known only grows, so that what is late at last replaces what was before.
        let mut late = LateScalars(BTreeMap::new());
        let blocks = program.blocks.indices();
        let mut open: Vec<BlockIndex> =
            blocks.iter().filter(|own| entries[*own].is_some()).collect();
        while let Some(at) = open.pop() {
            let Some(state) = entries[at] else { continue };
            let end = follow(at, state, &mut late);
            let edges = program.blocks[at].successors.iter();
            for edge in edges.filter(|edge| edge.kind != EdgeKind::Return) {
                let is_more = match &mut entries[edge.to] {
                    Some(known) => known.join(&end),
                    unknown => unknown.replace(end) != Some(end),
                };
                if is_more {
                    open.push(edge.to);
                }
            }
        }
        late
    }

    /// What an instruction of the program needs before it with what is inserted, and not without;
    /// `state` is what is known before it with what is inserted.
    pub fn missing(&self, index: InstIndex, state: &ScalarReads, inst: &Inst) -> ScalarWait {
        match self.0.get(&index) {
            Some(by_itself) => needed_by_program(&state.beyond(by_itself), inst),
            None => needed_by_program(state, inst),
        }
    }
}

/// What an instruction of a program needs before it.
fn needed_by_program(state: &ScalarReads, inst: &Inst) -> ScalarWait {
    if leaves(inst) { state.pending() } else { state.needed(inst) }
}

/// Whether control leaves a function after an instruction. Compilers have all arrive before, and what a call
/// itself writes has arrived where it leads.
pub fn leaves(inst: &Inst) -> bool {
    inst.flags.call || inst.operation.opcode() == Opcode::SSetpc
}
