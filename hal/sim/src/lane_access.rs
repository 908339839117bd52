//! Moving whole words between vector registers and a range of bytes, one offset per lane: the
//! hot loop of loads, stores and LDS.
//!
//! All active lanes are checked against the range first; the moves themselves are unchecked.

use crate::vector::Level;
use crate::wave::{LANES, Row};

/// An offset into the range per lane.
pub type Offsets = [u32; LANES];

/// Most bytes a range may have: offsets are 32-bit signed in the gather instructions.
const LARGEST: usize = i32::MAX as usize;

/// Loads `rows.len()` consecutive words per active lane, the first word into the first row.
/// Inactive lanes keep their values. Gives `false`, and changes nothing, if the words of an
/// active lane do not lie in `bytes`.
pub fn load(level: Level, bytes: &[u8], offsets: &Offsets, active: &Row, rows: &mut [Row]) -> bool {
    match level {
        Level::Plain => load_plain(bytes, offsets, active, rows),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the host has the features of its level.
        Level::Avx2 => unsafe { load_avx2(bytes, offsets, active, rows) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the host has the features of its level.
        Level::Avx512 => unsafe { load_avx512(bytes, offsets, active, rows) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => load_plain(bytes, offsets, active, rows),
    }
}

/// Stores the words of `rows` per active lane, lowest lane first: where lanes overlap, the
/// highest lane's value stays. Gives `false`, and changes nothing, if the words of an active
/// lane do not lie in `bytes`.
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
    (length <= LARGEST && highest as usize + words * 4 <= length).then_some(safe)
}

#[inline(always)]
fn load_with(
    bytes: &[u8],
    offsets: &Offsets,
    active: &Row,
    rows: &mut [Row],
    gather: impl Fn(*const u8, &Offsets) -> Row,
) -> bool {
    let Some(safe) = checked(bytes.len(), offsets, active, rows.len()) else { return false };
    for (word, row) in rows.iter_mut().enumerate() {
        // `wrapping_add` stays in the range: `checked` holds for `word`.
        let loaded = gather(bytes.as_ptr().wrapping_add(word * 4), &safe);
        crate::wave::blend(row, &loaded, active);
    }
    true
}

fn load_plain(bytes: &[u8], offsets: &Offsets, active: &Row, rows: &mut [Row]) -> bool {
    load_with(bytes, offsets, active, rows, |start, safe| {
        Row(std::array::from_fn(|lane| {
            // SAFETY: `checked` holds, so that the word at this offset lies in the range.
            let word = unsafe { start.add(safe[lane] as usize).cast::<u32>().read_unaligned() };
            u32::from_le(word)
        }))
    })
}

/// # Safety
/// The host has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn load_avx2(bytes: &[u8], offsets: &Offsets, active: &Row, rows: &mut [Row]) -> bool {
    use std::arch::x86_64::{_mm256_i32gather_epi32, _mm256_loadu_si256, _mm256_storeu_si256};
    load_with(bytes, offsets, active, rows, |start, safe| {
        let mut row = Row::ZERO;
        for lane in (0..LANES).step_by(8) {
            // SAFETY: `checked` holds, so that the words at these offsets lie in the range; the
            // arrays have eight elements from `lane` on.
            unsafe {
                let index = _mm256_loadu_si256(safe.as_ptr().add(lane).cast());
                let words = _mm256_i32gather_epi32::<1>(start.cast(), index);
                _mm256_storeu_si256(row.0.as_mut_ptr().add(lane).cast(), words);
            }
        }
        row
    })
}

/// # Safety
/// The host has AVX-512 F, BW, DQ and VL.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn load_avx512(bytes: &[u8], offsets: &Offsets, active: &Row, rows: &mut [Row]) -> bool {
    use std::arch::x86_64::{_mm512_i32gather_epi32, _mm512_loadu_si512, _mm512_storeu_si512};
    load_with(bytes, offsets, active, rows, |start, safe| {
        let mut row = Row::ZERO;
        for lane in (0..LANES).step_by(16) {
            // SAFETY: `checked` holds, so that the words at these offsets lie in the range; the
            // arrays have sixteen elements from `lane` on.
            unsafe {
                let index = _mm512_loadu_si512(safe.as_ptr().add(lane).cast());
                let words = _mm512_i32gather_epi32::<1>(index, start.cast());
                _mm512_storeu_si512(row.0.as_mut_ptr().add(lane).cast(), words);
            }
        }
        row
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_isa::LaneMask;

    /// Every level the host has.
    fn levels() -> Vec<Level> {
        let best = Level::detect() as usize;
        [Level::Plain, Level::Avx2, Level::Avx512][..=best].to_vec()
    }

    #[test]
    fn lanes_load_their_own_words_and_inactive_lanes_keep_theirs() {
        let bytes: Vec<u8> = (0..=255).collect();
        let offsets = std::array::from_fn(|lane| 3 * lane as u32);
        for level in levels() {
            let mut rows = [Row::splat(7), Row::splat(7)];
            let active = Row::expand(LaneMask(0xf0));
            assert!(load(level, &bytes, &offsets, &active, &mut rows));
            assert_eq!(rows[0].0[4], u32::from_le_bytes([12, 13, 14, 15]), "{level:?}");
            assert_eq!(rows[1].0[7], u32::from_le_bytes([25, 26, 27, 28]), "{level:?}");
            assert_eq!(rows[0].0[3], 7, "{level:?}");
        }
    }

    #[test]
    fn a_lane_one_byte_past_the_end_moves_nothing() {
        let mut bytes = vec![1; 64];
        let mut offsets = [0; LANES];
        let all = Row::expand(LaneMask::FULL);
        for level in levels() {
            let mut rows = [Row::ZERO];
            offsets[63] = 60;
            assert!(load(level, &bytes, &offsets, &all, &mut rows));
            offsets[63] = 61;
            let mut rows = [Row::ZERO];
            assert!(!load(level, &bytes, &offsets, &all, &mut rows), "{level:?}");
            assert_eq!(rows, [Row::ZERO], "{level:?}");
            // The same offset in an inactive lane is no reason to refuse.
            let without = Row::expand(LaneMask(u64::MAX >> 1));
            assert!(load(level, &bytes, &offsets, &without, &mut rows), "{level:?}");
        }
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
