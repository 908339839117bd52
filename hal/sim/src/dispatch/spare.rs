//! Reuse of memory of earlier dispatches: the registers of waves and the footprint regions are
//! large, and new memory is slow.

use crate::memory::TouchedRegions;
use crate::wave::Wave;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Reusable memory of one dispatch.
#[derive(Default)]
pub struct Spare {
    /// Waves that have ended.
    pub waves: Vec<Wave>,
    /// Empty footprint regions of compiled code.
    pub touched: TouchedRegions,
}

/// Reusable memory that the clones of a device share.
#[derive(Clone, Default)]
pub struct Spares(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    waves: Vec<Wave>,
    touched: Vec<TouchedRegions>,
}

impl Spares {
    /// Maximum number of waves that a dispatch takes and returns.
    const SHARE: usize = 32;
    /// Maximum number of waves kept.
    const MOST: usize = 256;
    /// Maximum number of footprint regions kept.
    const MOST_TOUCHED: usize = 16;

    /// Takes reusable memory, if there is any.
    pub fn take(&self) -> Spare {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = kept.waves.len().saturating_sub(Spares::SHARE);
        let touched = kept.touched.pop().unwrap_or_default();
        Spare { waves: kept.waves.split_off(left), touched }
    }

    /// Returns reusable memory.
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
