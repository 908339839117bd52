//! The barrier of a workgroup whose signal and wait are instructions of their own (RDNA 4 ISA,
//! "Barriers"; the names of the counts are those of `S_GET_BARRIER_STATE`), and the named barriers of
//! gfx1250: one completes when as many signals have arrived as it has members, and a wave waits at the
//! one that it has joined (CDNA 5 ISA, 5.6, as public tests restate it).

use crate::execute::control::BarrierRequest;
use crate::instruction::control::SplitBarrier;
use crate::wave::{Joined, Wave};
use flipwave_isa::Generation;

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
    /// The named ones; none is number 0.
    named: [NamedBarrier; 17],
}

/// How far a named barrier is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NamedBarrier {
    /// Signals that complete it.
    members: u32,
    /// Signals since it last completed.
    signals: u32,
    /// How often it has completed.
    completed: u32,
}

impl NamedBarrier {
    fn signal(&mut self, members: Option<u32>) {
        self.members = members.unwrap_or(self.members);
        self.signals += 1;
        if self.signals >= self.members {
            self.signals = 0;
            self.completed = self.completed.wrapping_add(1);
        }
    }
}

impl WorkgroupBarrier {
    /// The barrier of a workgroup of so many waves.
    pub fn new(waves: u32) -> WorkgroupBarrier {
        WorkgroupBarrier { exists: waves > 1, members: waves, ..WorkgroupBarrier::default() }
    }

    /// Does what a wave asks for; `false` if the wave has to wait. The other barriers are that of trap
    /// handlers, and for these and those without a wave as member nothing happens.
    pub fn request(&mut self, wave: &mut Wave, request: BarrierRequest) -> bool {
        if wave.machine.generation >= Generation::Gfx125
            && let Some(number) = request.named()
        {
            return self.request_named(wave, request, number);
        }
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
            // Those that are about named barriers.
            SplitBarrier::Init | SplitBarrier::Join => {}
        }
        true
    }

    /// The same of a named barrier. A wave waits at the one it has joined, whatever number it gives.
    fn request_named(&mut self, wave: &mut Wave, request: BarrierRequest, number: usize) -> bool {
        let barrier = &mut self.named[number];
        match request.operation {
            SplitBarrier::Init => {
                *barrier = NamedBarrier {
                    members: request.members.unwrap_or(0),
                    signals: 0,
                    completed: barrier.completed,
                };
            }
            SplitBarrier::Join => wave.joined = Joined::at(number, barrier.completed),
            SplitBarrier::Signal => barrier.signal(request.members),
            SplitBarrier::SignalIsFirst => {
                wave.scc = barrier.signals == 0;
                barrier.signal(request.members);
            }
            SplitBarrier::Wait => {
                wave.joined.waits = true;
                return self.let_pass(wave);
            }
            SplitBarrier::State => {
                let state = barrier.signals << 16 | barrier.members << 4 | 1;
                wave.write_scalar(request.destination, state);
            }
        }
        true
    }

    /// Whether the barrier has completed since the wave last passed it; then it passes it.
    pub fn let_pass(&self, wave: &mut Wave) -> bool {
        if wave.joined.waits {
            let completed = self.named[wave.joined.barrier()].completed;
            let passes = wave.joined.passed != completed;
            wave.joined.passed = completed;
            wave.joined.waits = !passes;
            return passes;
        }
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
