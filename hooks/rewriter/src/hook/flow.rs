//! Dataflow analyses of bodies.

use super::BodyInst;
use flipwave_isa::{Family, Inst, Opcode, Register, RegisterRange, RegisterSet, Value};

/// Indices of the successors of the instruction at `at`; the number of instructions for the end.
fn successors(instructions: &[BodyInst], at: usize) -> impl Iterator<Item = usize> {
    let (next, taken) = match &instructions[at] {
        BodyInst::Branch { inst, to, .. } => {
            ((inst.flags.conditional || !inst.flags.barrier).then_some(at + 1), Some(*to))
        }
        _ => (Some(at + 1), None),
    };
    next.into_iter().chain(taken)
}

/// Registers that are live at the start if `outputs` are live at the end.
pub(super) fn live_at_start(instructions: &[BodyInst], outputs: &[RegisterRange]) -> RegisterSet {
    let end = outputs.iter().copied().collect();
    let mut live = vec![RegisterSet::EMPTY; instructions.len()];
    loop {
        let mut changed = false;
        for (at, inst) in instructions.iter().enumerate().rev() {
            let after = successors(instructions, at)
                .map(|next| live.get(next).copied().unwrap_or(end))
                .fold(RegisterSet::EMPTY, RegisterSet::union);
            let before = after.difference(inst.writes()).union(inst.reads());
            changed |= live[at] != before;
            live[at] = before;
        }
        if !changed {
            return live.first().copied().unwrap_or(end);
        }
    }
}

/// Returns `true` if EXEC may have a lane that it does not have at the start.
///
/// The analysis tracks registers with masks that are subsets of the initial EXEC: EXEC itself, results of
/// comparisons, and results of some scalar operations on such masks.
pub(super) fn widens_exec(instructions: &[BodyInst]) -> bool {
    let start: RegisterSet = [Register::ExecLo, Register::ExecHi].into_iter().collect();
    let mut inside: Vec<Option<RegisterSet>> = vec![None; instructions.len()];
    let mut work = vec![(0, start)];
    while let Some((at, masks)) = work.pop() {
        if at == instructions.len() {
            continue;
        }
        let known = &mut inside[at];
        let merged = known.map_or(masks, |known| known.intersection(masks));
        if *known == Some(merged) {
            continue;
        }
        *known = Some(merged);
        let after = match &instructions[at] {
            BodyInst::Inst { inst, .. } => masks_after(inst, merged),
            inst => merged.difference(inst.writes()),
        };
        if !after.contains(Register::ExecLo) || !after.contains(Register::ExecHi) {
            return true;
        }
        work.extend(successors(instructions, at).map(|next| (next, after)));
    }
    false
}

/// Registers with subsets of the initial EXEC after `inst`, given those before it.
fn masks_after(inst: &Inst, masks: RegisterSet) -> RegisterSet {
    let mut after = masks;
    for range in &inst.writes {
        range.iter().for_each(|register| after.remove(register));
    }
    if inst.operation.is(Family::Compare) {
        // Results are zero in inactive lanes; `v_cmpx` only disables lanes.
        inst.writes.iter().for_each(|range| after.insert_range(*range));
        return after;
    }
    let is_subset = |value: Option<&Value>| match value {
        Some(Value::Register(range)) => range.iter().all(|register| masks.contains(register)),
        Some(Value::Integer(0)) => true,
        _ => false,
    };
    let mut sources = inst.sources().map(|operand| &operand.value);
    let (first, second) = (is_subset(sources.next()), is_subset(sources.next()));
    // Whether the destination and EXEC are subsets afterwards.
    let (result, exec) = match inst.operation.opcode() {
        Opcode::SMov => (first, first),
        Opcode::SAnd => (first || second, first || second),
        Opcode::SOr | Opcode::SXor => (first && second, first && second),
        Opcode::SAndn2 => (first, first),
        Opcode::SCselect => (first && second, first && second),
        Opcode::SAndSaveexec | Opcode::SAndn1Saveexec => (true, true),
        Opcode::SOrSaveexec | Opcode::SXorSaveexec | Opcode::SAndn2Saveexec => (true, first),
        Opcode::SAndn1Wrexec => (true, true),
        Opcode::SAndn2Wrexec => (first, first),
        _ => (false, false),
    };
    let is_exec = |range: &RegisterRange| range.contains(Register::ExecLo);
    for range in &inst.writes {
        if range.first != Register::Scc && (if is_exec(range) { exec } else { result }) {
            after.insert_range(*range);
        }
    }
    after
}
