//! What looks over the waves' shoulders. The scheduler is generic over it, and the one that looks
//! at nothing compiles to nothing.

use crate::dispatch::launch::Launch;
use crate::instruction::{Op, Stretch, Traits};
use crate::memory::Memory;
use crate::wave::Wave;
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;

/// How a checker sees what is executed as compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Not at all.
    Nothing,
    /// Stretch by stretch: it is asked before each.
    Each,
    /// In rows, after they were executed: it is asked before the first stretch of a row, and none with
    /// one of these traits follows.
    Rows(Traits),
}

/// Sees every instruction before it is executed, and after it where it wants to. It changes nothing.
pub trait Checker {
    /// Whether instructions may be executed as compiled code: it sees those that compiled code always
    /// leaves to the interpreter, and of the others how often their stretch was executed.
    const ALLOWS_COMPILED: bool = false;

    /// Which stretches it sees that are executed as compiled code.
    #[inline(always)]
    fn counting(&self) -> Counting {
        Counting::Each
    }

    /// How many times in a row a wave may execute a stretch as compiled code now.
    #[inline(always)]
    fn allows(&mut self, _wave: &Wave, _stretch: Stretch<'_>) -> u64 {
        u64::MAX
    }

    /// A wave is about to execute an instruction of a stretch that is seen alone; what it has executed
    /// before the stretch was seen.
    #[inline(always)]
    fn enters(&mut self, _stretch: Stretch<'_>) {}

    /// A wave has executed a stretch so many times, but for the instructions that are seen alone. `exec`
    /// has the lanes that were active before EXEC changed, see [`Stretch::before_exec`], and those after.
    #[inline(always)]
    fn executed(&mut self, _: &Wave, _stretch: Stretch<'_>, _times: u64, _exec: [LaneMask; 2]) {}

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

    /// A wave is about to execute an instruction that counts as a part of its stretch, though compiled code
    /// has left it to the interpreter: what it accesses may lie where compiled code accesses nothing.
    #[inline(always)]
    fn leaves(&mut self, _wave: &Wave, _op: &Op) {}

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
    fn counting(&self) -> Counting {
        Counting::Nothing
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

/// Two checkers, each of which sees what it would see alone.
pub struct Both<'a, A, B>(pub &'a mut A, pub &'a mut B);

impl<A: Checker, B: Checker> Checker for Both<'_, A, B> {
    const ALLOWS_COMPILED: bool = A::ALLOWS_COMPILED && B::ALLOWS_COMPILED;
    const SEES_RESULTS: bool = A::SEES_RESULTS || B::SEES_RESULTS;

    #[inline(always)]
    fn counting(&self) -> Counting {
        match (self.0.counting(), self.1.counting()) {
            (Counting::Nothing, own) | (own, Counting::Nothing) => own,
            (Counting::Each, _) | (_, Counting::Each) => Counting::Each,
            (Counting::Rows(own), Counting::Rows(others)) => Counting::Rows(own.or(others)),
        }
    }

    #[inline(always)]
    fn allows(&mut self, wave: &Wave, stretch: Stretch<'_>) -> u64 {
        self.0.allows(wave, stretch).min(self.1.allows(wave, stretch))
    }

    #[inline(always)]
    fn leaves(&mut self, wave: &Wave, op: &Op) {
        self.0.leaves(wave, op);
        self.1.leaves(wave, op);
    }

    #[inline(always)]
    fn enters(&mut self, stretch: Stretch<'_>) {
        self.0.enters(stretch);
        self.1.enters(stretch);
    }

    #[inline(always)]
    fn executed(&mut self, wave: &Wave, stretch: Stretch<'_>, times: u64, exec: [LaneMask; 2]) {
        self.0.executed(wave, stretch, times, exec);
        self.1.executed(wave, stretch, times, exec);
    }

    #[inline(always)]
    fn executed_first(&mut self, wave: &Wave, stretch: Stretch<'_>, count: usize, exec: LaneMask) {
        self.0.executed_first(wave, stretch, count, exec);
        self.1.executed_first(wave, stretch, count, exec);
    }

    #[inline(always)]
    fn starts(&mut self, wave: &Wave, launch: &Launch) {
        self.0.starts(wave, launch);
        self.1.starts(wave, launch);
    }

    #[inline(always)]
    fn before(&mut self, wave: &Wave, op: &Op, memory: &mut dyn Memory) {
        self.0.before(wave, op, memory);
        self.1.before(wave, op, memory);
    }

    #[inline(always)]
    fn after(&mut self, wave: &Wave, op: &Op, lanes: LaneMask) {
        self.0.after(wave, op, lanes);
        self.1.after(wave, op, lanes);
    }

    #[inline(always)]
    fn passes_barrier(&mut self, waves: &[Wave]) {
        self.0.passes_barrier(waves);
        self.1.passes_barrier(waves);
    }

    #[inline(always)]
    fn faults(&mut self, cause: &FaultCause, waves: &[Wave]) {
        self.0.faults(cause, waves);
        self.1.faults(cause, waves);
    }
}
