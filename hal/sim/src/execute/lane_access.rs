//! Moving elements between vector registers and a range of bytes, one offset per lane: the hot
//! loop of loads, stores and LDS.
//!
//! Which lanes lie in the range is found out first; the moves themselves are unchecked.

mod load;
mod modify;
mod part;
mod store;

pub use part::{Part, extend, parts};

use crate::wave::{LANES, Row, mask_of};
use flipwave_isa::LaneMask;
use std::marker::PhantomData;
use std::ops::Deref;

/// Lanes that are looked at together.
const GROUP: usize = 16;

/// The lanes all of whose parts lie in a range of bytes, and where they lie.
pub struct Placed<'a, B, P, const PARTS: usize> {
    bytes: B,
    /// The greatest offset from which all parts lie in the range; those of the lanes that take part are
    /// at most this.
    last: u32,
    offsets: &'a Row,
    /// All ones in the lanes that take part, zero elsewhere.
    active: &'a Row,
    lanes: LaneMask,
    /// How many bytes after a lane's offset each of its parts lies.
    places: [u32; PARTS],
    part: PhantomData<P>,
}

/// How the offsets of the active lanes of a group lie to each other.
enum Pattern {
    /// Each lane's part follows the one of the lane before; where the first lane's would lie.
    Rows(usize),
    /// All of a lane's parts follow those of the lane before, likewise.
    Elements(usize),
    /// All lanes have this offset.
    Equal(usize),
    /// None of these.
    Scattered,
}

impl<'a, B: Deref<Target = [u8]>, P: Part, const PARTS: usize> Placed<'a, B, P, PARTS> {
    /// Those of `lanes`, which `active` has as a row, that lie in `bytes`; where these are fewer, `own`
    /// keeps their row. Each lane's parts lie so many bytes after its offset as `places` says. No lane
    /// with an offset of 2 GiB or more is among them.
    #[inline(always)]
    pub fn new(
        bytes: B,
        offsets: &'a Row,
        (active, lanes): (&'a Row, LaneMask),
        places: [u32; PARTS],
        own: &'a mut Option<Row>,
    ) -> Placed<'a, B, P, PARTS> {
        let mut reach = 0;
        for place in places {
            reach = reach.max(place as usize);
        }
        let room = bytes.len().checked_sub(reach + size_of::<P>());
        let (last, part) = (room.unwrap_or(0).min(i32::MAX as usize) as u32, PhantomData);
        let mut beyond = room.is_none();
        for lane in 0..LANES {
            beyond |= offsets.0[lane] > last;
        }
        if !beyond {
            return Placed { bytes, last, offsets, active, lanes, places, part };
        }
        let mut inside = Row::ZERO;
        for lane in 0..LANES {
            let is_inside = room.is_some() & (offsets.0[lane] <= last);
            inside.0[lane] = if is_inside { active.0[lane] } else { 0 };
        }
        let lanes = LaneMask(mask_of(&inside));
        Placed { bytes, last, offsets, active: own.insert(inside), lanes, places, part }
    }

    /// The lanes that lie in the range.
    #[inline(always)]
    pub fn lanes(&self) -> LaneMask {
        self.lanes
    }

    /// A lane's offset.
    #[inline(always)]
    fn offset(&self, lane: usize) -> usize {
        self.offsets.0[lane] as usize
    }

    /// The lanes of a group, the lowest bit the first.
    #[inline(always)]
    fn members(&self, group: usize) -> u16 {
        (self.lanes.0 >> (GROUP * group)) as u16
    }

    /// Whether a lane's parts follow one another.
    #[inline(always)]
    fn is_packed(&self) -> bool {
        let mut packed = true;
        for (part, place) in self.places.iter().enumerate() {
            packed &= *place == (part * size_of::<P>()) as u32;
        }
        packed
    }

    /// How the `members` of a group, one at least, lie. All parts of the lanes of
    /// [`Pattern::Rows`] and of [`Pattern::Elements`] lie in the range, of lanes that are no
    /// members too.
    #[inline(always)]
    fn pattern<const ALL: bool>(&self, group: usize, members: u16) -> Pattern {
        let offsets = &self.offsets.0.as_chunks::<GROUP>().0[group];
        let active = &self.active.0.as_chunks::<GROUP>().0[group];
        let first = if ALL { 0 } else { members.trailing_zeros() };
        let offset = offsets[first as usize % GROUP];
        let (part, element) = (size_of::<P>() as u32, (PARTS * size_of::<P>()) as u32);
        if let Some(start) = self.start(offset, first, part)
            && follow::<ALL>(offsets, active, start, part)
        {
            return Pattern::Rows(start as usize);
        }
        if follow::<ALL>(offsets, active, offset, 0) {
            return Pattern::Equal(offset as usize);
        }
        if PARTS > 1
            && self.is_packed()
            && let Some(start) = self.start(offset, first, element)
            && follow::<ALL>(offsets, active, start, element)
        {
            return Pattern::Elements(start as usize);
        }
        Pattern::Scattered
    }

    /// The offset of a group's first lane, where offsets grow by `step` from there to that of lane
    /// `first`; if the group's last lane lies in the range, too.
    #[inline(always)]
    fn start(&self, offset: u32, first: u32, step: u32) -> Option<u32> {
        let greatest = self.last.checked_sub(step * (GROUP as u32 - 1))?;
        offset.checked_sub(step * first).filter(|start| *start <= greatest)
    }
}

/// Whether the offsets of the active lanes of a group grow from `start` by `step`.
#[inline(always)]
fn follow<const ALL: bool>(
    offsets: &[u32; GROUP],
    active: &[u32; GROUP],
    start: u32,
    step: u32,
) -> bool {
    // The comparison of whole arrays becomes one of vectors.
    let expected: [u32; GROUP] = std::array::from_fn(|lane| start.wrapping_add(step * lane as u32));
    if ALL {
        return *offsets == expected;
    }
    let mut differences = [0; GROUP];
    for lane in 0..GROUP {
        differences[lane] = (offsets[lane] ^ expected[lane]) & active[lane];
    }
    differences == [0; GROUP]
}

#[cfg(test)]
mod tests;
