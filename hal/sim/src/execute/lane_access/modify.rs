//! Atomic read-modify-write of elements.

use super::Placed;
use crate::memory::atomic::{Atomic, Modify};
use crate::memory::exchange;
use crate::wave::Row;

impl<const WORDS: usize> Placed<'_, &mut [u8], u32, WORDS> {
    /// Applies `atomic` to the words of each lane, which are contiguous, lowest lane first. `data`
    /// and `second` are its operands. Returns the old values; zeros in other lanes. `is_shared`
    /// belongs to the range: whether the host may access it at the same time.
    #[inline(always)]
    pub fn modify(
        &mut self,
        is_shared: bool,
        atomic: Atomic,
        data: [&Row; WORDS],
        second: [&Row; WORDS],
    ) -> [Row; WORDS] {
        // The most frequent operation avoids the dispatch in each lane.
        match atomic.modify {
            Modify::Add => {
                self.replace(is_shared, data, second, |old, data, _| old.wrapping_add(data))
            }
            _ => self.replace(is_shared, data, second, |old, data, second| {
                atomic.apply(old, data, second)
            }),
        }
    }

    #[inline(always)]
    fn replace(
        &mut self,
        is_shared: bool,
        data: [&Row; WORDS],
        second: [&Row; WORDS],
        new: impl Fn(u64, u64, u64) -> u64,
    ) -> [Row; WORDS] {
        let mut before = [Row::ZERO; WORDS];
        for lane in self.lanes.lanes().map(|lane| usize::from(lane.0)) {
            let start = self.offset(lane);
            let word = &mut self.bytes[start..start + 4 * WORDS];
            let value = |rows: [&Row; WORDS]| {
                rows.iter().rev().fold(0, |value, row| value << 32 | u64::from(row.0[lane]))
            };
            let (data, second) = (value(data), value(second));
            let mut old = exchange(word, is_shared, |old| new(old, data, second));
            for row in &mut before {
                row.0[lane] = old as u32;
                old >>= 32;
            }
        }
        before
    }
}
