//! Waves that have ended, to be used again: the room for all registers that a wave can have is large,
//! and new memory is slow.

use crate::wave::Wave;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Waves that the clones of a device share.
#[derive(Clone, Default)]
pub struct SpareWaves(Arc<Mutex<Vec<Wave>>>);

impl SpareWaves {
    /// Waves that one dispatch takes at most, and that are kept of one.
    const SHARE: usize = 32;
    /// Waves that are kept in all.
    const MOST: usize = 256;

    /// Some waves, none if there are none.
    pub fn take(&self) -> Vec<Wave> {
        let mut waves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = waves.len().saturating_sub(SpareWaves::SHARE);
        waves.split_off(kept)
    }

    /// Gives waves back.
    pub fn give(&self, mut own: Vec<Wave>) {
        own.truncate(SpareWaves::SHARE);
        let mut waves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waves.append(&mut own);
        waves.truncate(SpareWaves::MOST);
    }
}

impl fmt::Debug for SpareWaves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpareWaves")
    }
}
