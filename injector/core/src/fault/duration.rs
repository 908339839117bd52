//! Duration of a fault.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

/// Duration of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// The fault strikes once.
    Transient,
    /// The fault strikes repeatedly within a window.
    Intermittent(Intermittent),
    /// The fault strikes every execution of an operation on one lane slot of one of this many compute
    /// units.
    Permanent(NonZeroU32),
}

/// An intermittent fault. It strikes one execution of an instruction, and a fraction of the wave's
/// further executions of the instruction up to the end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Intermittent {
    /// Length of the window in executions of the instruction by the wave, including the first.
    pub window: NonZeroU64,
    /// Number of struck executions per 2^32 executions in the window.
    pub rate: u32,
}

impl Intermittent {
    /// Returns `true` if execution `n` of the window is struck by the fault with this `key`.
    ///
    /// A hash of the number decides, so that the result depends on nothing else: the 32-bit mixer
    /// `lowbias32` of C. Wellons' "Prospecting for hash functions" (2018).
    pub(crate) fn strikes(self, key: u32, n: u64) -> bool {
        n == 0 || (n < self.window.get() && mix(key ^ n as u32) < self.rate)
    }
}

/// See [`Intermittent::strikes`].
fn mix(word: u32) -> u32 {
    let word = (word ^ word >> 16).wrapping_mul(0x7feb_352d);
    let word = (word ^ word >> 15).wrapping_mul(0x846c_a68b);
    word ^ word >> 16
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Duration::Transient => "transient",
            Duration::Intermittent(_) => "intermittent",
            Duration::Permanent(_) => "permanent",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intermittent_faults_strike_at_their_rate_within_the_window() {
        let window = NonZeroU64::new(100_000).unwrap();
        for (rate, expected) in [(0, 0.0), (1 << 30, 0.25), (u32::MAX, 1.0)] {
            let fault = Intermittent { window, rate };
            assert!(fault.strikes(7, 0));
            let struck = (1..100_000).filter(|n| fault.strikes(7, *n)).count() as f64;
            assert!((struck / 99_999.0 - expected).abs() < 0.006, "{rate}: {struck}");
            assert!(!(100_000..200_000).any(|n| fault.strikes(7, n)));
        }
        let fault = Intermittent { window, rate: 1 << 31 };
        let pattern = |key| (1..64).map(|n| fault.strikes(key, n)).collect::<Vec<_>>();
        assert_ne!(pattern(1), pattern(2));
    }
}
