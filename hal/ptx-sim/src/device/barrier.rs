//! Barriers of a workgroup (PTX ISA, "bar, barrier").

use crate::compute::LANES;
use crate::execute::Reach;
use crate::program::{BarrierCount, BarrierKind, BarrierOp, Destination};
use crate::wave::{Status, Wave};
use flipwave_device::FaultCause;

/// Number of barriers of a workgroup.
pub(super) const BARRIERS: usize = 16;

/// A barrier that some waves have reached. A wave arrives as a whole: with all its lanes, whichever execute
/// the instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Barrier {
    /// Waves that have arrived.
    waves: u32,
    /// Threads that the barrier waits for; `None` for all of the workgroup.
    threads: Option<u32>,
    /// Lanes whose predicate was true.
    count: u32,
    /// `true` if the predicate of some lane was false.
    has_false: bool,
}

/// Arrives at a barrier.
///
/// # Errors
/// The fault of a number that no barrier has.
pub(super) fn arrive(
    reach: &mut Reach<'_>,
    barriers: &mut [Barrier; BARRIERS],
    op: BarrierOp,
    lanes: u32,
) -> Result<(), FaultCause> {
    let first = lanes.trailing_zeros() as usize % LANES;
    let number = reach.row(op.number)[first];
    let word = number as u32;
    let barrier = usize::try_from(number).ok().filter(|number| *number < BARRIERS);
    let number = barrier.ok_or(FaultCause::IllegalInstruction { word })?;
    let barrier = &mut barriers[number];
    barrier.threads = match op.count {
        BarrierCount::All => None,
        BarrierCount::Threads(source) => Some(reach.row(source)[first] as u32),
    };
    barrier.waves += 1;
    if let BarrierKind::Count(value, _) | BarrierKind::All(value, _) | BarrierKind::Any(value, _) =
        op.kind
    {
        let values = reach.row(value);
        let set = Reach::lanes(lanes).filter(|lane| values[*lane] & 1 != 0).count() as u32;
        barrier.count += set;
        barrier.has_false |= set != lanes.count_ones();
    }
    if op.kind != BarrierKind::Arrive && reach.wave.status == Status::Running {
        reach.wave.status = Status::Waiting { barrier: number, lanes, kind: op.kind };
    }
    Ok(())
}

/// Continues the waves at barriers that all participants have reached. Waves that have ended do not
/// participate.
pub(super) fn release(waves: &mut [Wave], barriers: &mut [Barrier; BARRIERS]) {
    let living = waves.iter().filter(|wave| wave.status != Status::Ended).count() as u32;
    for (number, barrier) in barriers.iter_mut().enumerate().filter(|(_, found)| found.waves > 0) {
        let is_complete = match barrier.threads {
            None => barrier.waves >= living,
            Some(threads) => barrier.waves * LANES as u32 >= threads,
        };
        if !is_complete {
            continue;
        }
        let reached = std::mem::take(barrier);
        for wave in waves.iter_mut() {
            let Status::Waiting { barrier, lanes, kind } = wave.status else { continue };
            if barrier != number {
                continue;
            }
            wave.status = Status::Running;
            let result: Option<(u64, Destination)> = match kind {
                BarrierKind::Sync | BarrierKind::Arrive => None,
                BarrierKind::Count(_, result) => Some((reached.count.into(), result)),
                BarrierKind::All(_, result) => Some(((!reached.has_false).into(), result)),
                BarrierKind::Any(_, result) => Some(((reached.count > 0).into(), result)),
            };
            if let Some((value, destination)) = result {
                wave.registers.write(destination, lanes, &[value; LANES]);
            }
        }
    }
}
