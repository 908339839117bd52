//! Checkers: observers of all waves that do not change anything. The scheduler is generic over
//! them, so that [`Unchecked`] costs nothing.

use crate::dispatch::launch::Launch;
use crate::instruction::{Op, Stretch, Traits};
use crate::memory::Memory;
use crate::wave::Wave;
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;

/// Granularity in which a checker counts what is executed as compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Counts nothing.
    Nothing,
    /// Counts each block separately: the checker is consulted before each one.
    Each,
    /// Counts rows of blocks after their execution: the checker is consulted before the first block of
    /// a row, and no block with one of these traits follows.
    Rows(Traits),
}

/// Receives every instruction before its execution, and after it on request. Changes nothing.
pub trait Checker {
    /// `true` if instructions may be executed as compiled code. The checker then receives single
    /// instructions only where compiled code always calls the interpreter; for the others it learns
    /// how often their block was executed.
    const ALLOWS_COMPILED: bool = false;

    /// Granularity in which the checker counts compiled code.
    #[inline(always)]
    fn counting(&self) -> Counting {
        Counting::Each
    }

    /// Number of times in a row that a wave may execute a block as compiled code now.
    #[inline(always)]
    fn allows(&mut self, _wave: &Wave, _stretch: Stretch<'_>) -> u64 {
        u64::MAX
    }

    /// Called before a wave executes a separately seen instruction of a block. Everything executed
    /// before the block was reported.
    #[inline(always)]
    fn enters(&mut self, _stretch: Stretch<'_>) {}

    /// Called after a wave has executed a block `times` times, except for separately seen
    /// instructions. `exec` has the active lanes before EXEC changed, see [`Stretch::before_exec`],
    /// and after it.
    #[inline(always)]
    fn executed(&mut self, _: &Wave, _stretch: Stretch<'_>, _times: u64, _exec: [LaneMask; 2]) {}

    /// Called after a wave has executed the first `count` instructions of a block once, before EXEC
    /// changed.
    #[inline(always)]
    fn executed_first(
        &mut self,
        _wave: &Wave,
        _stretch: Stretch<'_>,
        _count: usize,
        _exec: LaneMask,
    ) {
    }

    /// Called after a wave was set up.
    fn starts(&mut self, wave: &Wave, launch: &Launch);

    /// Called before a wave executes the instruction at its PC.
    fn before(&mut self, wave: &Wave, op: &Op, memory: &mut dyn Memory);

    /// Called before the interpreter executes an instruction for compiled code that counts as a
    /// part of its block: it may access memory that compiled code never accesses.
    #[inline(always)]
    fn leaves(&mut self, _wave: &Wave, _op: &Op) {}

    /// `true` if the checker also receives instructions after their execution.
    const SEES_RESULTS: bool = false;

    /// Called after a wave has executed an instruction that did not fault; `lanes` are the lanes
    /// whose per-lane destinations were written, as in [`Executed::lanes`](crate::Executed::lanes).
    #[inline(always)]
    fn after(&mut self, _wave: &Wave, _op: &Op, _lanes: LaneMask) {}

    /// Called before the waves of a workgroup pass a barrier.
    fn passes_barrier(&mut self, waves: &[Wave]);

    /// Called when the device stops the dispatch because a wave of this workgroup faulted.
    fn faults(&mut self, cause: &FaultCause, waves: &[Wave]);
}

/// The checker that does nothing.
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

/// Two checkers that both receive everything.
pub struct Both<'a, A, B>(pub &'a mut A, pub &'a mut B);

impl<A: Checker, B: Checker> Checker for Both<'_, A, B> {
    const ALLOWS_COMPILED: bool = A::ALLOWS_COMPILED && B::ALLOWS_COMPILED;
    const SEES_RESULTS: bool = A::SEES_RESULTS || B::SEES_RESULTS;

    #[inline(always)]
    fn counting(&self) -> Counting {
        match (self.0.counting(), self.1.counting()) {
            (Counting::Nothing, counting) | (counting, Counting::Nothing) => counting,
            (Counting::Each, _) | (_, Counting::Each) => Counting::Each,
            (Counting::Rows(first), Counting::Rows(second)) => Counting::Rows(first.or(second)),
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
