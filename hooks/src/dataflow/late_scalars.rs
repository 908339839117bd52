//! Scalar registers that a program by itself may read before they have arrived. Compilers keep that;
//! where one has not, what is inserted need not mend it.

use crate::flow::{BlockIndex, Disassembly, EdgeKind, IndexVec, InstIndex};
use flipwave_isa::hazard::{ScalarReads, ScalarWait};
use flipwave_isa::{Inst, Opcode};
use std::collections::BTreeMap;

/// What `inst`, an instruction of a program, needs before it. Compilers have all arrive before control
/// leaves a function.
pub fn needed_by_program(state: &ScalarReads, inst: &Inst) -> ScalarWait {
    let leaves = inst.flags.call || inst.operation.opcode() == Opcode::SSetpc;
    if leaves { state.pending() } else { state.needed(inst) }
}

/// The waits that are missing in a program, by the instructions before which they are; `begin` is what
/// is known of a wave that begins. Where control comes from elsewhere anything may have been read.
pub fn missing_waits(program: &Disassembly, begin: ScalarReads) -> BTreeMap<InstIndex, ScalarWait> {
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
    let blocks = program.blocks.indices();
    let mut open: Vec<BlockIndex> = blocks.iter().filter(|own| entries[*own].is_some()).collect();
    while let Some(at) = open.pop() {
        let Some(state) = entries[at] else { continue };
        let end = follow(program, at, state, |_, _| ());
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
    let mut missing = BTreeMap::new();
    for (at, state) in entries.enumerated() {
        if let Some(state) = state {
            follow(program, at, *state, |index, wait| _ = missing.insert(index, wait));
        }
    }
    missing
}

/// What is known at the end of a block, and the waits that are missing in it.
fn follow(
    program: &Disassembly,
    block: BlockIndex,
    mut state: ScalarReads,
    mut is_missing: impl FnMut(InstIndex, ScalarWait),
) -> ScalarReads {
    for (index, inst) in program.insts_of(program.blocks[block].instructions) {
        let wait = needed_by_program(&state, inst);
        if !wait.is_empty() {
            is_missing(index, wait);
        }
        state = state.after(wait);
        state.execute(inst);
    }
    state
}
