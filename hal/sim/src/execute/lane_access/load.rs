//! Loads bytes into registers.

use super::{GROUP, Part, Pattern, Placed};
use crate::wave::{LANES, Row};

impl<P: Part, const PARTS: usize> Placed<'_, &[u8], P, PARTS> {
    /// Loads the parts of each lane, each into a separate row, zero-extended. Other lanes keep
    /// their values.
    #[inline(always)]
    pub fn load(&self, rows: &mut [Row; PARTS]) {
        for group in 0..LANES / GROUP {
            let members = self.members(group);
            if members == u16::MAX {
                self.load_group::<true>(group, members, rows);
            } else if members != 0 {
                self.load_group::<false>(group, members, rows);
            }
        }
    }

    /// Loads the parts of the `members` of a group; `ALL` means all lanes are members.
    #[inline(always)]
    fn load_group<const ALL: bool>(&self, group: usize, members: u16, rows: &mut [Row; PARTS]) {
        let active = &self.active.0.as_chunks::<GROUP>().0[group];
        match self.pattern::<ALL>(group, members) {
            Pattern::Rows(first) => {
                for part in 0..PARTS {
                    let at = self.place(part).wrapping_add(first).cast::<[P; GROUP]>();
                    // SAFETY: this part of the group's first and last lane lies in the range, and
                    // so do the bytes between them.
                    let parts = unsafe { at.read_unaligned() };
                    let mut loaded = [0; GROUP];
                    for lane in 0..GROUP {
                        loaded[lane] = parts[lane].word();
                    }
                    put::<ALL>(&mut rows[part], group, &loaded, active);
                }
            }
            Pattern::Elements(first) => {
                let at = self.bytes.as_ptr().wrapping_add(first).cast::<[[P; PARTS]; GROUP]>();
                // SAFETY: all parts of the group's first and last lane lie in the range, and so do
                // the bytes between them.
                let elements = unsafe { at.read_unaligned() };
                for part in 0..PARTS {
                    let mut loaded = [0; GROUP];
                    for lane in 0..GROUP {
                        loaded[lane] = elements[lane][part].word();
                    }
                    put::<ALL>(&mut rows[part], group, &loaded, active);
                }
            }
            Pattern::Equal(offset) => {
                for part in 0..PARTS {
                    let at = self.place(part).wrapping_add(offset).cast::<P>();
                    // SAFETY: this is the offset of a participating lane.
                    let loaded = [unsafe { at.read_unaligned() }.word(); GROUP];
                    put::<ALL>(&mut rows[part], group, &loaded, active);
                }
            }
            Pattern::Scattered => {
                let offsets = &self.offsets.0.as_chunks::<GROUP>().0[group];
                if ALL {
                    for part in 0..PARTS {
                        let words = &mut rows[part].0.as_chunks_mut::<GROUP>().0[group];
                        // SAFETY: parts lie in the range at the offsets of all lanes.
                        unsafe { scattered::<P>(self.place(part), offsets, words) };
                    }
                    return;
                }
                let mut inside = [0; GROUP];
                for lane in 0..GROUP {
                    inside[lane] = offsets[lane] & active[lane];
                }
                for part in 0..PARTS {
                    let mut loaded = [0; GROUP];
                    // SAFETY: parts lie in the range at the offsets of all members; other lanes use
                    // offset 0, which is not greater.
                    unsafe { scattered::<P>(self.place(part), &inside, &mut loaded) };
                    put::<ALL>(&mut rows[part], group, &loaded, active);
                }
            }
        }
    }

    /// Address of a part of a lane with offset 0.
    #[inline(always)]
    fn place(&self, part: usize) -> *const u8 {
        self.bytes.as_ptr().wrapping_add(self.places[part] as usize)
    }
}

/// Writes the loaded words to the active lanes of a group, or to all lanes with `ALL`.
#[inline(always)]
fn put<const ALL: bool>(row: &mut Row, group: usize, loaded: &[u32; GROUP], active: &[u32; GROUP]) {
    let words = &mut row.0.as_chunks_mut::<GROUP>().0[group];
    for lane in 0..GROUP {
        words[lane] = if ALL {
            loaded[lane]
        } else {
            loaded[lane] & active[lane] | words[lane] & !active[lane]
        };
    }
}

/// Loads the words of parts at these offsets from `start`. This is a separate function, compiled
/// without vector extensions, because the gather loads of AVX-512 are slower than sequential loads
/// (on Zen 4 kernels that gather take a third longer).
///
/// # Safety
/// A part can be read at each offset.
#[inline(never)]
unsafe fn scattered<P: Part>(start: *const u8, offsets: &[u32; GROUP], words: &mut [u32; GROUP]) {
    for lane in 0..GROUP {
        let at = start.wrapping_add(offsets[lane] as usize).cast::<P>();
        // SAFETY: promised by the caller.
        words[lane] = unsafe { at.read_unaligned() }.word();
    }
}
