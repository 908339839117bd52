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
    for (word, row) in rows.iter_mut().enumerate() {
        let mut loaded = Row::ZERO;
        for group in 0..LANES / GROUP {
            let lanes = group * GROUP..(group + 1) * GROUP;
            // SAFETY: `checked` holds, so that this word of every lane lies in the range.
            unsafe { load_group(&bytes[word * 4..], &safe[lanes.clone()], &mut loaded.0[lanes]) };
        }
        blend(row, &loaded, active);
    }
    true
}

/// Loads a word for each lane of a group. Neighbouring lanes mostly read neighbouring words, or
/// all the same one.
///
/// # Safety
/// A word lies in `bytes` at each offset.
#[inline(always)]
unsafe fn load_group(bytes: &[u8], offsets: &[u32], words: &mut [u32]) {
    let first = offsets[0];
    let (mut scattered, mut different) = (0, 0);
    for (lane, offset) in offsets.iter().enumerate() {
        scattered |= offset ^ first.wrapping_add(4 * lane as u32);
        different |= offset ^ first;
    }
    let start = bytes.as_ptr();
    if scattered == 0 {
        // SAFETY: the words of the first and the last lane lie in the range, and so does what is
        // between them.
        unsafe {
            let from = start.add(first as usize);
            from.copy_to_nonoverlapping(words.as_mut_ptr().cast(), words.len() * 4);
        }
    } else if different == 0 {
        // SAFETY: the word of the first lane lies in the range.
        words.fill(unsafe { start.add(first as usize).cast::<u32>().read_unaligned() });
    } else {
        for (word, offset) in words.iter_mut().zip(offsets) {
            // SAFETY: the word of this lane lies in the range.
            *word = unsafe { start.add(*offset as usize).cast::<u32>().read_unaligned() };
        }
    }
    if cfg!(target_endian = "big") {
        words.iter_mut().for_each(|word| *word = u32::from_le(*word));
    }
}

/// Stores the words of `rows` per active lane, lowest lane first: where lanes overlap, the
/// highest lane's value stays. Gives `false`, and changes nothing, if the words of an active
/// lane do not lie in `bytes`.
#[inline(always)]
pub fn store(bytes: &mut [u8], offsets: &Offsets, active: &Row, rows: &[Row]) -> bool {
    if checked(bytes.len(), offsets, active, rows.len()).is_none() {
        return false;
    }
    for lane in 0..LANES {
        if active.0[lane] == 0 {
            continue;
        }
        for (word, row) in rows.iter().enumerate() {
            let at = offsets[lane] as usize + word * 4;
            // SAFETY: `checked` holds for this lane, so that `at + 4` is at most the length.
            unsafe {
                let place = bytes.as_mut_ptr().add(at).cast::<u32>();
                place.write_unaligned(row.0[lane].to_le());
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
