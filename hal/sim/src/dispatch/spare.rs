//! What dispatches have used, to be used again: the room for all registers that a wave can have is large,
//! as is that for notes of what is touched, and new memory is slow.

use crate::memory::TouchedRegions;
use crate::wave::Wave;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// What one dispatch has of it.
#[derive(Default)]
pub struct Spare {
    /// Waves that have ended.
    pub waves: Vec<Wave>,
    /// Where it is noted what compiled code touches: nothing yet.
    pub touched: TouchedRegions,
}

/// What the clones of a device share.
#[derive(Clone, Default)]
pub struct Spares(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    waves: Vec<Wave>,
    touched: Vec<TouchedRegions>,
}

impl Spares {
    /// Waves that one dispatch takes at most, and that are kept of one.
    const SHARE: usize = 32;
    /// Waves that are kept in all.
    const MOST: usize = 256;
    /// The most of the others that are kept in all.
    const MOST_TOUCHED: usize = 16;

    /// Some, none if there is none.
    pub fn take(&self) -> Spare {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = kept.waves.len().saturating_sub(Spares::SHARE);
        let touched = kept.touched.pop().unwrap_or_default();
        Spare { waves: kept.waves.split_off(left), touched }
    }

    /// Gives what was taken back.
    pub fn give(&self, Spare { mut waves, touched }: Spare) {
        waves.truncate(Spares::SHARE);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.waves.append(&mut waves);
        kept.waves.truncate(Spares::MOST);
        if kept.touched.len() < Spares::MOST_TOUCHED && touched.is_worth_keeping() {
            kept.touched.push(touched);
        }
    }
}

impl fmt::Debug for Spares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spares")
    }
}
