//! The named barrier that a wave has joined (gfx1250).

/// A wave's membership in a named barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    barrier: u8,
    /// Number of completions of the barrier that the wave has seen.
    pub passed: u32,
    /// `true` if the wave waits at the barrier.
    pub waits: bool,
}

impl Joined {
    /// Membership in barrier `number`, which has completed `completed` times.
    pub fn at(number: usize, completed: u32) -> Joined {
        Joined { barrier: number as u8, passed: completed, waits: false }
    }

    /// Number of the barrier, at most 16; 0 for none, which never completes.
    pub fn barrier(self) -> usize {
        usize::from(self.barrier).min(16)
    }
}
