//! What looks over the waves' shoulders. The scheduler is generic over it, and the one that looks
//! at nothing compiles to nothing.

use crate::dispatch::launch::Launch;
use crate::instruction::{Op, Stretch};
use crate::memory::Memory;
use crate::wave::Wave;
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;

/// Sees every instruction before it is executed, and after it where it wants to. It changes nothing.
pub trait Checker {
    /// Whether instructions may be executed as compiled code: it sees those that compiled code leaves to
    /// the interpreter, and of the others how often their stretch was executed.
    const ALLOWS_COMPILED: bool = false;

    /// Whether it wants to see each stretch that is executed as compiled code.
    #[inline(always)]
    fn counts_stretches(&self) -> bool {
        true
    }

    /// How many times in a row a wave may execute a stretch as compiled code now.
    #[inline(always)]
    fn allows(&mut self, _wave: &Wave, _stretch: Stretch<'_>) -> u64 {
        u64::MAX
    }

    /// A wave has executed a stretch so many times, but for the instructions that are seen alone. `exec`
    /// has the lanes that were active before, see [`Stretch::before_exec`]; the wave those after.
    #[inline(always)]
    fn executed(&mut self, _wave: &Wave, _stretch: Stretch<'_>, _times: u64, _exec: LaneMask) {}

    /// The same of the first `count` instructions of a stretch, once, before EXEC has changed.
    #[inline(always)]
    fn executed_first(
        &mut self,
        _wave: &Wave,
        _stretch: Stretch<'_>,
        _count: usize,
        _exec: LaneMask,
    ) {
    }

    /// A wave has been set up.
    fn starts(&mut self, wave: &Wave, launch: &Launch);

    /// A wave is about to execute the instruction at its PC.
    fn before(&mut self, wave: &Wave, op: &Op, memory: &mut dyn Memory);

    /// Whether it is told of each instruction that was executed, too.
    const SEES_RESULTS: bool = false;

    /// A wave has executed an instruction that did not fault; `lanes` are those whose per-lane
    /// destinations were written, as [`Executed::lanes`](crate::Executed::lanes) has them.
    #[inline(always)]
    fn after(&mut self, _wave: &Wave, _op: &Op, _lanes: LaneMask) {}

    /// The waves of a workgroup that wait at a barrier are about to go on.
    fn passes_barrier(&mut self, waves: &[Wave]);

    /// The device stops the dispatch while one of these waves, all of one workgroup, executes.
    fn faults(&mut self, cause: &FaultCause, waves: &[Wave]);
}

/// The checker that looks at nothing.
pub struct Unchecked;

impl Checker for Unchecked {
    const ALLOWS_COMPILED: bool = true;

    #[inline(always)]
    fn counts_stretches(&self) -> bool {
        false
    }

    #[inline(always)]
    fn starts(&mut self, _: &Wave, _: &Launch) {}

    #[inline(always)]
    fn before(&mut self, _: &Wave, _: &Op, _: &mut dyn Memory) {}

    #[inline(always)]
    fn passes_barrier(&mut self, _: &[Wave]) {}

    #[inline(always)]
    fn faults(&mut self, _: &FaultCause, _: &[Wave]) {}
}
