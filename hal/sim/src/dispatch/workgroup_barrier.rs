//! The barrier of a workgroup whose signal and wait are instructions of their own (RDNA 4 ISA,
//! "Barriers"; the names of the counts are those of `S_GET_BARRIER_STATE`).

use crate::execute::control::BarrierRequest;
use crate::instruction::control::SplitBarrier;
use crate::wave::Wave;

/// How far the waves of a workgroup are with their barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupBarrier {
    /// Whether the workgroup has more than one wave. For a single one nothing is to be waited for.
    exists: bool,
    /// Waves that have not ended.
    members: u32,
    /// Waves that have signalled since the barrier last completed.
    signals: u32,
    /// How often all had signalled.
    completed: u32,
}

impl WorkgroupBarrier {
    /// The barrier of a workgroup of so many waves.
    pub fn new(waves: u32) -> WorkgroupBarrier {
        WorkgroupBarrier { exists: waves > 1, members: waves, ..WorkgroupBarrier::default() }
    }

    /// Does what a wave asks for; `false` if the wave has to wait. The other barriers are that of trap
    /// handlers, and for these and those without a wave as member nothing happens.
    pub fn request(&mut self, wave: &mut Wave, request: BarrierRequest) -> bool {
        let is_own = self.exists && request.is_of_workgroup();
        match request.operation {
            SplitBarrier::Signal if is_own => self.signal(),
            SplitBarrier::Signal => {}
            SplitBarrier::SignalIsFirst => {
                wave.scc = is_own && self.signals == 0;
                if is_own {
                    self.signal();
                }
            }
            SplitBarrier::Wait => return !is_own || self.let_pass(wave),
            SplitBarrier::State => {
                let state = self.signals << 16 | self.members << 4 | 1;
                wave.write_scalar(request.destination, if is_own { state } else { 0 });
            }
        }
        true
    }

    /// Whether the barrier has completed since the wave last passed it; then it passes it.
    pub fn let_pass(&self, wave: &mut Wave) -> bool {
        let passes = wave.barriers_passed != self.completed;
        wave.barriers_passed = self.completed;
        passes
    }

    /// A wave has ended: the others do not wait for it.
    pub fn leave(&mut self) {
        self.members = self.members.saturating_sub(1);
        self.complete();
    }

    fn signal(&mut self) {
        self.signals += 1;
        self.complete();
    }

    fn complete(&mut self) {
        if self.signals > 0 && self.signals >= self.members {
            self.signals = 0;
            self.completed = self.completed.wrapping_add(1);
        }
    }
}
