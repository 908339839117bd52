//! Stores registers to bytes.

use super::{GROUP, Part, Pattern, Placed};
use crate::wave::{LANES, Row};
use flipwave_isa::LaneMask;

impl<P: Part, const PARTS: usize> Placed<'_, &mut [u8], P, PARTS> {
    /// Stores the low ends of the words of each lane, lowest lane first: where lanes overlap, the
    /// highest lane's value remains.
    #[inline(always)]
    pub fn store(&mut self, rows: &[Row; PARTS]) {
        for group in 0..LANES / GROUP {
            let members = self.members(group);
            if members == u16::MAX {
                self.store_group(group, rows);
            } else {
                for lane in LaneMask(members.into()).lanes() {
                    self.store_lane(GROUP * group + usize::from(lane.0), rows);
                }
            }
        }
    }

    /// Stores the words of a group whose lanes all participate.
    #[inline(always)]
    fn store_group(&mut self, group: usize, rows: &[Row; PARTS]) {
        let start = self.bytes.as_mut_ptr();
        match self.pattern::<true>(group, u16::MAX) {
            Pattern::Rows(first) if self.are_rows_apart() => {
                for part in 0..PARTS {
                    let words = &rows[part].0.as_chunks::<GROUP>().0[group];
                    let mut parts = [P::of(0); GROUP];
                    for lane in 0..GROUP {
                        parts[lane] = P::of(words[lane]);
                    }
                    let at = start.wrapping_add(first + self.places[part] as usize);
                    // SAFETY: this part of the group's first and last lane lies in the range, and
                    // so do the bytes between them.
                    unsafe { at.cast::<[P; GROUP]>().write_unaligned(parts) };
                }
            }
            Pattern::Elements(first) => {
                let mut elements = [[P::of(0); PARTS]; GROUP];
                for lane in 0..GROUP {
                    for part in 0..PARTS {
                        elements[lane][part] = P::of(rows[part].0[GROUP * group + lane]);
                    }
                }
                let at = start.wrapping_add(first).cast::<[[P; PARTS]; GROUP]>();
                // SAFETY: all parts of the group's first and last lane lie in the range, and so do
                // the bytes between them.
                unsafe { at.write_unaligned(elements) };
            }
            _ => {
                for lane in GROUP * group..GROUP * (group + 1) {
                    self.store_lane(lane, rows);
                }
            }
        }
    }

    /// Returns `true` if the parts of a group of neighbours do not overlap those of its next row.
    #[inline(always)]
    fn are_rows_apart(&self) -> bool {
        let mut apart = true;
        for part in 1..PARTS {
            let next = self.places[part - 1].saturating_add((GROUP * size_of::<P>()) as u32);
            apart &= self.places[part] >= next;
        }
        apart
    }

    /// Stores the words of a participating lane.
    #[inline(always)]
    fn store_lane(&mut self, lane: usize, rows: &[Row; PARTS]) {
        for part in 0..PARTS {
            let at = self.offset(lane) + self.places[part] as usize;
            let at = self.bytes.as_mut_ptr().wrapping_add(at);
            // SAFETY: the lane's parts lie in the range.
            unsafe { at.cast::<P>().write_unaligned(P::of(rows[part].0[lane])) };
        }
    }
}
