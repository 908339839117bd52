//! Moving whole words between vector registers and a range of bytes, one offset per lane: the
//! hot loop of loads, stores and LDS.
//!
//! All active lanes are checked against the range first; the moves themselves are unchecked.

use crate::wave::{Active, LANES, Row};

/// Lanes that are looked at together.
const GROUP: usize = 16;

/// Loads words of each active lane: the `n`-th lies `places[n]` bytes after the lane's offset, and
/// goes to row `n`. Inactive lanes keep their values. Gives `false`, and changes nothing, if a
/// word of an active lane does not lie in `bytes`.
#[inline(always)]
pub fn load<const WORDS: usize>(
    bytes: &[u8],
    offsets: &Row,
    active: Active<'_>,
    rows: &mut [Row; WORDS],
    places: &[u32; WORDS],
) -> bool {
    let reach = places.iter().fold(0, |reach, place| reach.max(*place));
    if active.all {
        return in_range(bytes, offsets, reach) && {
            // SAFETY: `in_range` has looked at the farthest word of every lane.
            unsafe { load_words::<true, WORDS>(bytes, offsets, active.row, rows, places) };
            true
        };
    }
    let safe = confined(offsets, active.row);
    in_range(bytes, &safe, reach) && {
        // SAFETY: `in_range` has looked at the farthest word of every lane.
        unsafe { load_words::<false, WORDS>(bytes, &safe, active.row, rows, places) };
        true
    }
}

/// # Safety
/// A word lies in `bytes` at each offset plus each place.
#[inline(always)]
unsafe fn load_words<const ALL: bool, const WORDS: usize>(
    bytes: &[u8],
    offsets: &Row,
    active: &Row,
    rows: &mut [Row; WORDS],
    places: &[u32; WORDS],
) {
    let groups = offsets.0.as_chunks::<GROUP>().0.iter().zip(active.0.as_chunks::<GROUP>().0);
    for (group, (offsets, active)) in groups.enumerate() {
        let first = offsets[0] as usize;
        let mut put = |word: usize, loaded: [u32; GROUP]| {
            let words = &mut rows[word].0.as_chunks_mut::<GROUP>().0[group];
            for lane in 0..GROUP {
                words[lane] = if ALL {
                    u32::from_le(loaded[lane])
                } else {
                    u32::from_le(loaded[lane]) & active[lane] | words[lane] & !active[lane]
                };
            }
        };
        let starts = places.iter().map(|place| bytes.as_ptr().wrapping_add(*place as usize));
        match pattern(offsets) {
            Pattern::Consecutive => {
                for (word, start) in starts.enumerate() {
                    let at = start.wrapping_add(first).cast::<[u32; GROUP]>();
                    // SAFETY: words lie at the offsets of the first and the last lane, and so does
                    // what is between them.
                    put(word, unsafe { at.read_unaligned() });
                }
            }
            Pattern::Equal => {
                for (word, start) in starts.enumerate() {
                    let at = start.wrapping_add(first).cast::<u32>();
                    // SAFETY: a word lies there.
                    put(word, [unsafe { at.read_unaligned() }; GROUP]);
                }
            }
            Pattern::Scattered => {
                for (word, start) in starts.enumerate() {
                    let at = |lane: usize| start.wrapping_add(offsets[lane] as usize).cast::<u32>();
                    // SAFETY: a word lies at the offset of every lane.
                    put(word, std::array::from_fn(|lane| unsafe { at(lane).read_unaligned() }));
                }
            }
        }
    }
}

/// How the offsets of a group lie to each other.
#[derive(Clone, Copy)]
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

/// Stores the words of `rows` per active lane, `apart` bytes from one to the next, lowest lane
/// first: where lanes overlap, the highest lane's value stays. Gives `false`, and changes
/// nothing, if a word of an active lane does not lie in `bytes`.
#[inline(always)]
pub fn store(
    bytes: &mut [u8],
    offsets: &Row,
    active: Active<'_>,
    rows: &[Row],
    apart: u32,
) -> bool {
    let safe = if active.all { *offsets } else { confined(offsets, active.row) };
    let reach = apart * rows.len().saturating_sub(1) as u32;
    if !in_range(bytes, &safe, reach) {
        return false;
    }
    let start = bytes.as_mut_ptr();
    let groups = safe.0.as_chunks::<GROUP>().0.iter().zip(active.row.0.as_chunks::<GROUP>().0);
    for (group, (offsets, active)) in groups.enumerate() {
        let all = active.iter().fold(u32::MAX, |all, lane| all & lane) != 0;
        // Words of several rows do not overlap if they lie as far apart as the group is long.
        let apart_enough = rows.len() == 1 || apart as usize >= 4 * GROUP;
        if let (true, true, Pattern::Consecutive) = (apart_enough, all, pattern(offsets)) {
            for (word, row) in rows.iter().enumerate() {
                let at = offsets[0] as usize + word * apart as usize;
                let words = row.0.as_chunks::<GROUP>().0[group].map(u32::to_le);
                // SAFETY: this word of the group's first and last lane lies in the range, and so
                // does what is between them.
                unsafe { start.add(at).cast::<[u32; GROUP]>().write_unaligned(words) };
            }
            continue;
        }
        for lane in 0..GROUP {
            if active[lane] == 0 {
                continue;
            }
            for (word, row) in rows.iter().enumerate() {
                let at = offsets[lane] as usize + word * apart as usize;
                let value = row.0[group * GROUP + lane].to_le();
                // SAFETY: this word of this lane lies in the range.
                unsafe { start.add(at).cast::<u32>().write_unaligned(value) };
            }
        }
    }
    true
}

/// The offsets, 0 for inactive lanes.
#[inline(always)]
fn confined(offsets: &Row, active: &Row) -> Row {
    Row(std::array::from_fn(|lane| offsets.0[lane] & active.0[lane]))
}

/// Whether a word lies in the range `reach` bytes after each offset.
#[inline(always)]
fn in_range(bytes: &[u8], offsets: &Row, reach: u32) -> bool {
    let Some(last) = bytes.len().checked_sub(reach as usize + 4) else { return false };
    let last = u32::try_from(last).unwrap_or(u32::MAX);
    let mut beyond = false;
    for lane in 0..LANES {
        beyond |= offsets.0[lane] > last;
    }
    !beyond
}

#[cfg(test)]
mod tests;
