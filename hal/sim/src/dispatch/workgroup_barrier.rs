//! Split barriers: the workgroup barrier with separate signal and wait instructions (RDNA 4 ISA,
//! "Barriers"; the names of the counts are those of `S_GET_BARRIER_STATE`), and the named barriers
//! of gfx1250. A named barrier completes when as many signals have arrived as it has members, and a
//! wave waits at the barrier that it has joined (CDNA 5 ISA, 5.6, as public tests restate it; LLVM,
//! "AMDGPU Execution Synchronization").

use crate::execute::control::BarrierRequest;
use crate::instruction::control::SplitBarrier;
use crate::wave::{Joined, Wave};
use flipwave_isa::Generation;

/// State of a workgroup's split barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupBarrier {
    /// `true` if the workgroup has more than one wave. A single wave never waits.
    exists: bool,
    /// Number of waves that have not ended.
    members: u32,
    /// Number of waves that have signalled since the barrier last completed.
    signals: u32,
    /// Number of completions.
    completed: u32,
    /// Named barriers; number 0 is unused.
    named: [NamedBarrier; 17],
}

/// State of a named barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NamedBarrier {
    /// Number of signals that complete the barrier.
    members: u32,
    /// Number of signals since the last completion.
    signals: u32,
    /// Number of completions.
    completed: u32,
}

impl NamedBarrier {
    fn signal(&mut self, members: Option<u32>) {
        self.members = members.unwrap_or(self.members);
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

impl WorkgroupBarrier {
    /// Creates the barriers of a workgroup of `waves` waves.
    pub fn new(waves: u32) -> WorkgroupBarrier {
        WorkgroupBarrier { exists: waves > 1, members: waves, ..WorkgroupBarrier::default() }
    }

    /// Carries out a request of a wave. Returns `false` if the wave has to wait. Requests to the
    /// trap handler's barrier, and to barriers that the wave is no member of, do nothing.
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
            SplitBarrier::Leave => self.leave_named(wave),
            SplitBarrier::Join if wave.machine.generation >= Generation::Gfx125 => {
                wave.joined = Joined::default();
            }
            // Operations on named barriers only.
            SplitBarrier::Init | SplitBarrier::Join => {}
        }
        true
    }

    /// Carries out a request to a named barrier. A wave waits at the barrier that it has joined,
    /// whatever number it gives.
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
            // A wave that has joined no barrier, or barrier 0, never waits.
            SplitBarrier::Wait if wave.joined.barrier() == 0 => {}
            SplitBarrier::Wait => {
                wave.joined.waits = true;
                return self.let_pass(wave);
            }
            SplitBarrier::Leave => {}
            SplitBarrier::State => {
                let state = barrier.signals << 16 | barrier.members << 4 | 1;
                wave.write_scalar(request.destination, state);
            }
        }
        true
    }

    /// Gives up a wave's membership in the named barrier that it has joined, which may complete the barrier
    /// (LLVM, "AMDGPU Execution Synchronization", barrier *drop*).
    fn leave_named(&mut self, wave: &mut Wave) {
        let number = wave.joined.barrier();
        wave.joined = Joined::default();
        if number == 0 {
            return;
        }
        let barrier = &mut self.named[number];
        barrier.members = barrier.members.saturating_sub(1);
        wave.scc = barrier.members == 0;
        barrier.complete();
    }

    /// Returns `true` if the barrier has completed since the wave last passed it, and lets the wave
    /// pass.
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

    /// Removes a wave that has ended from the members.
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
