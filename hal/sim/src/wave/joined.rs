//! The named barrier that a wave has joined (gfx1250).

/// Which one, and how often it had completed when the wave last heard of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    barrier: u8,
    /// How often it had completed.
    pub passed: u32,
    /// Whether the wave waits at it.
    pub waits: bool,
}

impl Joined {
    /// The named barrier of a number, which has completed so often.
    pub fn at(number: usize, completed: u32) -> Joined {
        Joined { barrier: number as u8, passed: completed, waits: false }
    }

    /// Its number, at most 16; 0 for none, which never completes.
    pub fn barrier(self) -> usize {
        usize::from(self.barrier).min(16)
    }
}
