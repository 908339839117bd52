//! Compiled code of observed waves.

use super::checker::Checker;
use super::launch::Launch;
use super::observer::StretchObserver;
use crate::instruction::{Op, Stretch};
use crate::memory::Memory;
use crate::wave::Wave;
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;

/// A checker, combined with the observer of compiled blocks.
pub struct Watched<'a, C> {
    pub checker: &'a mut C,
    pub stretches: &'a mut dyn StretchObserver,
}

impl<C: Checker> Checker for Watched<'_, C> {
    const ALLOWS_COMPILED: bool = C::ALLOWS_COMPILED;
    const SEES_RESULTS: bool = true;

    fn allows(&mut self, wave: &Wave, stretch: Stretch<'_>) -> u64 {
        match self.checker.allows(wave, stretch) {
            0 => 0,
            times => times.min(self.stretches.allows(wave.id, wave.executed, stretch)),
        }
    }

    fn enters(&mut self, stretch: Stretch<'_>) {
        self.checker.enters(stretch);
    }

    fn executed(&mut self, wave: &Wave, stretch: Stretch<'_>, times: u64, exec: [LaneMask; 2]) {
        self.checker.executed(wave, stretch, times, exec);
        self.stretches.executed(wave.id, stretch, times, exec);
    }

    fn executed_first(&mut self, wave: &Wave, stretch: Stretch<'_>, count: usize, exec: LaneMask) {
        self.checker.executed_first(wave, stretch, count, exec);
        for (_, op) in stretch.counted().take_while(|(index, _)| *index < count) {
            self.stretches.executed_one(wave.id, &op.inst, exec);
        }
    }

    fn starts(&mut self, wave: &Wave, launch: &Launch) {
        self.checker.starts(wave, launch);
    }

    fn before(&mut self, wave: &Wave, op: &Op, memory: &mut dyn Memory) {
        self.checker.before(wave, op, memory);
    }

    fn after(&mut self, wave: &Wave, op: &Op, lanes: LaneMask) {
        if C::SEES_RESULTS {
            self.checker.after(wave, op, lanes);
        }
        self.stretches.executed_one(wave.id, &op.inst, lanes);
    }

    fn passes_barrier(&mut self, waves: &[Wave]) {
        self.checker.passes_barrier(waves);
    }

    fn faults(&mut self, cause: &FaultCause, waves: &[Wave]) {
        self.checker.faults(cause, waves);
    }
}
