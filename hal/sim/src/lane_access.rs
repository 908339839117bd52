//! Moving whole words between vector registers and a range of bytes, one offset per lane: the
//! hot loop of loads, stores and LDS.
//!
//! All active lanes are checked against the range first; the moves themselves are unchecked.

use crate::wave::{LANES, Row, blend};

/// An offset into the range per lane.
pub type Offsets = [u32; LANES];

/// Lanes that are looked at together.
const GROUP: usize = 16;

/// Loads `rows.len()` consecutive words per active lane, the first word into the first row.
/// Inactive lanes keep their values. Gives `false`, and changes nothing, if the words of an
/// active lane do not lie in `bytes`.
#[inline(always)]
pub fn load(bytes: &[u8], offsets: &Offsets, active: &Row, rows: &mut [Row]) -> bool {
    let Some(safe) = checked(bytes.len(), offsets, active, rows.len()) else { return false };
    let (groups, _) = safe.as_chunks::<GROUP>();
    for (word, row) in rows.iter_mut().enumerate() {
        let mut loaded = Row::ZERO;
        for (offsets, words) in groups.iter().zip(loaded.0.as_chunks_mut::<GROUP>().0) {
            // SAFETY: `checked` holds, so that this word of every lane lies in the range.
            *words = unsafe { load_group(&bytes[word * 4..], offsets) };
        }
        blend(row, &loaded, active);
    }
    true
}

/// How the offsets of a group lie to each other.
enum Pattern {
    /// Each lane's word follows the one of the lane before.
    Consecutive,
    /// All lanes have the same.
    Equal,
    /// Neither.
    Scattered,
}

#[inline(always)]
fn pattern(offsets: &[u32; GROUP]) -> Pattern {
    // Comparisons of whole arrays become comparisons of vectors.
    let first = offsets[0];
    if *offsets == std::array::from_fn(|lane| first.wrapping_add(4 * lane as u32)) {
        Pattern::Consecutive
    } else if *offsets == [first; GROUP] {
        Pattern::Equal
    } else {
        Pattern::Scattered
    }
}

/// Loads a word for each lane of a group.
///
/// # Safety
/// A word lies in `bytes` at each offset.
#[inline(always)]
unsafe fn load_group(bytes: &[u8], offsets: &[u32; GROUP]) -> [u32; GROUP] {
    let at = |offset: u32| bytes.as_ptr().wrapping_add(offset as usize);
    // SAFETY: a word lies at each offset; those of the first and the last lane, and so what is
    // between them, if they are consecutive.
    let words: [u32; GROUP] = unsafe {
        match pattern(offsets) {
            Pattern::Consecutive => at(offsets[0]).cast::<[u32; GROUP]>().read_unaligned(),
            Pattern::Equal => [at(offsets[0]).cast::<u32>().read_unaligned(); GROUP],
            Pattern::Scattered => {
                let mut words = [0; GROUP];
                for (word, offset) in words.iter_mut().zip(offsets) {
                    *word = at(*offset).cast::<u32>().read_unaligned();
                }
                words
            }
        }
    };
    words.map(u32::from_le)
}

/// Stores the words of `rows` per active lane, lowest lane first: where lanes overlap, the
/// highest lane's value stays. Gives `false`, and changes nothing, if the words of an active
/// lane do not lie in `bytes`.
#[inline(always)]
pub fn store(bytes: &mut [u8], offsets: &Offsets, active: &Row, rows: &[Row]) -> bool {
    if checked(bytes.len(), offsets, active, rows.len()).is_none() {
        return false;
    }
    let start = bytes.as_mut_ptr();
    let groups = offsets.as_chunks::<GROUP>().0.iter().zip(active.0.as_chunks::<GROUP>().0);
    for (group, (offsets, active)) in groups.enumerate() {
        let all = active.iter().fold(u32::MAX, |all, lane| all & lane) != 0;
        if let ([row], true, Pattern::Consecutive) = (rows, all, pattern(offsets)) {
            let words = row.0.as_chunks::<GROUP>().0[group].map(u32::to_le);
            // SAFETY: `checked` holds for the group's first and last lane, and so what is between
            // them lies in the range.
            unsafe { start.add(offsets[0] as usize).cast::<[u32; GROUP]>().write_unaligned(words) };
            continue;
        }
        for lane in 0..GROUP {
            if active[lane] == 0 {
                continue;
            }
            for (word, row) in rows.iter().enumerate() {
                let at = offsets[lane] as usize + word * 4;
                let value = row.0[group * GROUP + lane].to_le();
                // SAFETY: `checked` holds for this lane, so that `at + 4` is at most the length.
                unsafe { start.add(at).cast::<u32>().write_unaligned(value) };
            }
        }
    }
    true
}

/// The offsets, 0 for inactive lanes, if `words` words at each of them lie in the range.
#[inline(always)]
fn checked(length: usize, offsets: &Offsets, active: &Row, words: usize) -> Option<Offsets> {
    let mut safe = [0; LANES];
    let mut highest = 0;
    for lane in 0..LANES {
        safe[lane] = offsets[lane] & active.0[lane];
        highest = highest.max(safe[lane]);
    }
    (highest as usize + words * 4 <= length).then_some(safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_isa::LaneMask;

    #[test]
    fn lanes_load_their_own_words_and_inactive_lanes_keep_theirs() {
        let bytes: Vec<u8> = (0..=255).collect();
        let offsets = std::array::from_fn(|lane| 3 * lane as u32);
        let mut rows = [Row::splat(7), Row::splat(7)];
        let active = Row::expand(LaneMask(0xf0));
        assert!(load(&bytes, &offsets, &active, &mut rows));
        assert_eq!(rows[0].0[4], u32::from_le_bytes([12, 13, 14, 15]));
        assert_eq!(rows[1].0[7], u32::from_le_bytes([25, 26, 27, 28]));
        assert_eq!(rows[0].0[3], 7);
    }

    #[test]
    fn neighbouring_equal_and_scattered_lanes_load_alike() {
        let bytes: Vec<u8> = (0..=255).chain(0..=255).collect();
        let patterns: [fn(u32) -> u32; 4] =
            [|lane| 5 + 4 * lane, |_| 201, |lane| lane * lane % 300, |lane| 4 * (lane ^ 1)];
        for pattern in patterns {
            let offsets = std::array::from_fn(|lane| pattern(lane as u32));
            let mut rows = [Row::ZERO];
            assert!(load(&bytes, &offsets, &Row::expand(LaneMask::FULL), &mut rows));
            for lane in 0..LANES {
                let at = offsets[lane] as usize;
                let expected = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
                assert_eq!(rows[0].0[lane], expected, "lane {lane}, offset {at}");
            }
        }
    }

    #[test]
    fn a_lane_one_byte_past_the_end_moves_nothing() {
        let mut bytes = vec![1; 64];
        let mut offsets = [0; LANES];
        let all = Row::expand(LaneMask::FULL);
        let mut rows = [Row::ZERO];
        offsets[63] = 60;
        assert!(load(&bytes, &offsets, &all, &mut rows));
        offsets[63] = 61;
        let mut rows = [Row::ZERO];
        assert!(!load(&bytes, &offsets, &all, &mut rows));
        assert_eq!(rows, [Row::ZERO]);
        // The same offset in an inactive lane is no reason to refuse.
        let without = Row::expand(LaneMask(u64::MAX >> 1));
        assert!(load(&bytes, &offsets, &without, &mut rows));
        assert!(!store(&mut bytes, &offsets, &all, &[Row::splat(9)]));
        assert_eq!(bytes, vec![1; 64]);
    }

    #[test]
    fn the_highest_lane_wins_where_stores_overlap() {
        let mut bytes = vec![0; 8];
        let row = Row(std::array::from_fn(|lane| lane as u32));
        assert!(store(&mut bytes, &[4; LANES], &Row::expand(LaneMask(0b1011)), &[row]));
        assert_eq!(bytes, [0, 0, 0, 0, 3, 0, 0, 0]);
    }
}
