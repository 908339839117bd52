//! Lane permutations of the first source ("DPP"), and of separate instructions.

use crate::wave::{LANES, Row, mask_of};
use flipwave_isa::{Dpp, DppControl, LaneMask};

/// A DPP control or swizzle, resolved for each lane when the instruction is decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneMove {
    /// The lane that each lane reads; itself if its source does not exist.
    sources: [u32; LANES],
    /// Lanes whose source exists.
    sourced: u64,
    /// Lanes that row and bank masks enable.
    enabled: u64,
    /// `true` if lanes without a readable source are written with zero instead of not at all.
    bound_control: bool,
    /// `true` if inactive lanes can be read.
    fetch_inactive: bool,
}

impl LaneMove {
    /// Decodes `dpp`. With eight selects, lanes whose source is inactive read zero: the encoding
    /// has no bit for it (RDNA 3 ISA, "DPP8"; AMDGPUModifierSyntax, "fi").
    pub fn of(dpp: &Dpp) -> LaneMove {
        let mut sources = [0; LANES];
        let [mut sourced, mut enabled] = [0, 0];
        for lane in 0..LANES {
            let source = source_lane(dpp.control, lane);
            sources[lane] = source.unwrap_or(lane) as u32;
            sourced |= u64::from(source.is_some()) << lane;
            let bits = (dpp.row_mask >> (lane / 16)) & (dpp.bank_mask >> (lane / 4 % 4)) & 1;
            enabled |= u64::from(bits) << lane;
        }
        LaneMove {
            sources,
            sourced,
            enabled,
            bound_control: dpp.bound_control || matches!(dpp.control, DppControl::Dpp8(_)),
            fetch_inactive: dpp.fetch_inactive,
        }
    }

    /// Decodes `ds_swizzle_b32`: lanes whose source is inactive read zero.
    pub fn swizzle(pattern: u16) -> LaneMove {
        LaneMove {
            sources: std::array::from_fn(|lane| swizzle_source(pattern.into(), lane) as u32),
            sourced: u64::MAX,
            enabled: u64::MAX,
            bound_control: true,
            fetch_inactive: false,
        }
    }

    /// Lane that a lane reads, if it exists.
    pub fn source(&self, lane: usize) -> Option<usize> {
        (self.sourced >> lane & 1 != 0).then_some(self.sources[lane] as usize)
    }

    /// Lanes whose source exists.
    pub fn sourced(&self) -> LaneMask {
        LaneMask(self.sourced)
    }

    /// Lanes that can be written.
    pub fn enabled(&self) -> LaneMask {
        LaneMask(self.enabled)
    }

    /// Returns `true` if lanes without a readable source read zero; otherwise their destination is
    /// not written.
    pub fn bound_control(&self) -> bool {
        self.bound_control
    }

    /// Returns `true` if inactive lanes can be read.
    pub fn fetch_inactive(&self) -> bool {
        self.fetch_inactive
    }

    /// Moves rows between lanes; returns the written lanes. Lanes whose source does not exist or is
    /// inactive read zero with `bound_control`, and are not written without (ISA manual, "DPP").
    #[inline(always)]
    pub fn apply(&self, rows: &mut [Row], exec: &Row) -> LaneMask {
        let readable = if self.fetch_inactive {
            self.sourced
        } else {
            self.sourced & mask_of(&self.gathered(exec))
        };
        let read = Row::expand(LaneMask(readable));
        for row in rows {
            let mut moved = self.gathered(row);
            for lane in 0..LANES {
                moved.0[lane] &= read.0[lane];
            }
            *row = moved;
        }
        LaneMask(self.enabled & if self.bound_control { u64::MAX } else { readable })
    }

    #[inline(always)]
    fn gathered(&self, row: &Row) -> Row {
        Row(self.sources.map(|source| row.0[source as usize % LANES]))
    }
}

/// Lane that `lane` reads, if it exists.
fn source_lane(control: DppControl, lane: usize) -> Option<usize> {
    let row = lane & !15;
    let in_row = |at: Option<usize>| at.filter(|at| *at < 16).map(|at| row + at);
    match control {
        DppControl::QuadPerm(order) => Some((lane & !3) + usize::from(order[lane & 3])),
        DppControl::RowShiftLeft(n) => in_row(Some(lane % 16 + usize::from(n))),
        DppControl::RowShiftRight(n) => in_row((lane % 16).checked_sub(n.into())),
        DppControl::RowRotateRight(n) => Some(row + (lane + 16 - usize::from(n)) % 16),
        DppControl::WaveShiftLeft => Some(lane + 1).filter(|at| *at < LANES),
        DppControl::WaveRotateLeft => Some((lane + 1) % LANES),
        DppControl::WaveShiftRight => lane.checked_sub(1),
        DppControl::WaveRotateRight => Some((lane + LANES - 1) % LANES),
        DppControl::RowMirror => Some(row + 15 - lane % 16),
        DppControl::RowHalfMirror => Some((lane & !7) + 7 - lane % 8),
        DppControl::RowBroadcast15 => row.checked_sub(1),
        DppControl::RowBroadcast31 => (lane >= 32).then_some(31),
        DppControl::RowNewBroadcast(n) | DppControl::RowShare(n) => Some(row + usize::from(n)),
        DppControl::RowXmask(n) => Some(row + ((lane % 16) ^ usize::from(n))),
        DppControl::Dpp8(order) => Some((lane & !7) + usize::from(order[lane & 7])),
    }
}

/// Lane that `lane` reads (ISA manual, "DS_SWIZZLE_B32"): a permutation within quads, a rotation,
/// or a bit mask within groups of 32.
fn swizzle_source(pattern: u32, lane: usize) -> usize {
    if pattern >> 15 & 1 != 0 && pattern >> 14 & 1 == 0 {
        return (lane & !3) + (pattern >> (2 * (lane & 3)) & 3) as usize;
    }
    let group = lane & !31;
    let within = lane as u32 & 31;
    if pattern >> 14 & 3 == 3 {
        let (rotate, left) = (pattern >> 5 & 31, pattern >> 10 & 1 == 0);
        let keep = pattern & 31;
        let moved = if left { within + rotate } else { within.wrapping_sub(rotate) } & 31;
        return group + (within & keep | moved & !keep) as usize;
    }
    let (and, or, xor) = (pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31);
    group + ((within & and | or) ^ xor) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swizzles_select_lanes_of_their_group() {
        // Reverse within quads.
        assert_eq!(swizzle_source(0x8000 | 0b00_01_10_11, 5), 6);
        // Swap neighbours: xor 1.
        assert_eq!(swizzle_source(0x1f | 1 << 10, 33), 32);
        // Broadcast lane 3 of each group of 32.
        assert_eq!(swizzle_source(3 << 5, 60), 35);
    }
}
