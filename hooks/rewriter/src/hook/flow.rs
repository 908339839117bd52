//! What is true along all ways through a body.

use super::BodyInst;
use flipwave_isa::{Family, Inst, Opcode, Register, RegisterRange, RegisterSet, Value};

/// Indices of the instructions that may run after the one at `at`; their number for the end.
fn successors(instructions: &[BodyInst], at: usize) -> impl Iterator<Item = usize> {
    let (next, taken) = match &instructions[at] {
        BodyInst::Branch { inst, to, .. } => {
            ((inst.flags.conditional || !inst.flags.barrier).then_some(at + 1), Some(*to))
        }
        _ => (Some(at + 1), None),
    };
    next.into_iter().chain(taken)
}

/// The registers whose values at the beginning matter, where `outputs` matter at the end.
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

/// Whether EXEC may ever have a lane that it does not have at the beginning.
///
/// Followed are the masks that have no such lane: EXEC at first, what comparisons give, and what
/// scalar operations make of these. EXEC must stay one of them.
pub(super) fn widens_exec(instructions: &[BodyInst]) -> bool {
    let start: RegisterSet = [Register::ExecLo, Register::ExecHi].into_iter().collect();
    let mut inside: Vec<Option<RegisterSet>> = vec![None; instructions.len()];
    let mut work = vec![(0, start)];
    while let Some((at, masks)) = work.pop() {
        if at == instructions.len() {
            continue;
        }
        let known = &mut inside[at];
        let met = known.map_or(masks, |known| known.intersection(masks));
        if *known == Some(met) {
            continue;
        }
        *known = Some(met);
        let after = match &instructions[at] {
            BodyInst::Inst { inst, .. } => masks_after(inst, met),
            other => met.difference(other.writes()),
        };
        if !after.contains(Register::ExecLo) || !after.contains(Register::ExecHi) {
            return true;
        }
        work.extend(successors(instructions, at).map(|next| (next, after)));
    }
    false
}

/// The masks after `inst` that have only lanes of the first EXEC, where `masks` are those before.
fn masks_after(inst: &Inst, masks: RegisterSet) -> RegisterSet {
    let mut after = masks;
    for range in &inst.writes {
        range.iter().for_each(|register| after.remove(register));
    }
    if inst.operation.is(Family::Compare) {
        // Lanes that EXEC masks give zero; v_cmpx leaves EXEC no others either.
        inst.writes.iter().for_each(|range| after.insert_range(*range));
        return after;
    }
    let within = |value: Option<&Value>| match value {
        Some(Value::Register(range)) => range.iter().all(|register| masks.contains(register)),
        Some(Value::Integer(0)) => true,
        _ => false,
    };
    let mut sources = inst.sources().map(|operand| &operand.value);
    let (first, second) = (within(sources.next()), within(sources.next()));
    // Whether the destination is a mask inside, and whether EXEC then is.
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
