//! Loads that wait for another wave.

use crate::instruction::control::Control;
use crate::instruction::{Op, Run, Shared, Word};
use crate::translate::program::Program;
use crate::wave::ScalarIndex;
use flipwave_isa::RegisterRange;

/// Instructions that a loop of this kind has at most behind the load.
const LONGEST: usize = 32;

/// Whether a load stands in a short loop that neither stores nor changes the load's address: such a loop
/// can only end when another wave writes there.
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

/// The first and the last address of the innermost loop around an instruction, if that is short.
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

/// Whether registers are among those that make the address of a load.
fn is_address(program: &Program, load: &Op, range: RegisterRange) -> bool {
    let row = program.machine().row(range.first);
    (0..range.words).any(|word| {
        let is_row = |own: u16| row.is_some_and(|row| row.plus(word.into()).0 == own);
        let first = program.machine().scalar(range.first);
        let is_scalar = |own: ScalarIndex| first.is_some_and(|low| low.0 + word == own.0);
        [0, 2, 3].into_iter().flat_map(|source: usize| load.sources[source].words).any(|own| {
            match own {
                Word::Row(own) => is_row(own.0),
                Word::Scalar(own) => is_scalar(own),
                _ => false,
            }
        })
    })
}
