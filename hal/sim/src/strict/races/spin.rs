//! Loads that wait for another wave's store.

use crate::instruction::control::Control;
use crate::instruction::{Op, Run, Shared, Word};
use crate::translate::program::Program;
use crate::wave::ScalarIndex;
use flipwave_isa::RegisterRange;

/// Maximum number of instructions after the load in such a loop.
const LONGEST: usize = 32;

/// Returns `true` if a load is in a short loop that neither stores nor changes the load's address:
/// such a loop ends only when another wave writes there.
pub fn waits_for_change(program: &Program, pc: u64, load: &Op) -> bool {
    let Some((start, end)) = enclosing_loop(program, pc) else { return false };
    let mut place = start;
    while place < end {
        let Ok(op) = program.fetch(place) else { return false };
        let changes_address = op.inst.writes.iter().any(|range| is_address(program, load, *range));
        if changes_address || stores(op) {
            return false;
        }
        place += u64::from(op.size);
    }
    true
}

/// First and last address of the innermost loop around an instruction, if it is short.
fn enclosing_loop(program: &Program, pc: u64) -> Option<(u64, u64)> {
    let mut place = pc;
    for _ in 0..LONGEST {
        let op = program.fetch(place).ok()?;
        if let Run::Control(control) = op.run {
            let target = op.inst.branch_target.map(|target| program.device_address(target));
            match (control, target) {
                (Control::Branch(_), Some(target)) if target <= pc => {
                    return (pc - target <= 4 * LONGEST as u64 * 2).then_some((target, place));
                }
                (Control::Branch(_), _) | (Control::Nothing, _) => {}
                _ => return None,
            }
        }
        place += u64::from(op.size);
    }
    None
}

fn stores(op: &Op) -> bool {
    op.inst.flags.stores || op.shared == Shared::Write
}

/// Returns `true` if the registers overlap those of a load's address.
fn is_address(program: &Program, load: &Op, range: RegisterRange) -> bool {
    let row = program.machine().row(range.first);
    (0..range.words).any(|word| {
        let is_row = |part: u16| row.is_some_and(|row| row.plus(word.into()).0 == part);
        let first = program.machine().scalar(range.first);
        let is_scalar = |part: ScalarIndex| first.is_some_and(|low| low.0 + word == part.0);
        [0, 2, 3].into_iter().flat_map(|source: usize| load.sources[source].words).any(|part| {
            match part {
                Word::Row(part) => is_row(part.0),
                Word::Scalar(part) => is_scalar(part),
                _ => false,
            }
        })
    })
}
