//! Moves elements between vector registers and a range of bytes, with one offset per lane: the hot
//! loop of loads, stores and LDS.
//!
//! The lanes inside the range are determined first; the moves are then unchecked.

mod load;
mod modify;
mod part;
mod store;

pub use part::{Part, extend, parts};

use crate::wave::{LANES, Row, mask_of};
use flipwave_isa::LaneMask;
use std::marker::PhantomData;
use std::ops::Deref;

/// Lanes that are examined together.
const GROUP: usize = 16;

/// The lanes all of whose parts lie in a range of bytes, and their offsets.
pub struct Placed<'a, B, P, const PARTS: usize> {
    bytes: B,
    /// The greatest offset from which all parts lie in the range; the offsets of the participating
    /// lanes do not exceed it.
    last: u32,
    offsets: &'a Row,
    /// All ones in the participating lanes, zero in all others.
    active: &'a Row,
    lanes: LaneMask,
    /// Byte distance of each part from the lane's offset.
    places: [u32; PARTS],
    part: PhantomData<P>,
}

/// Arrangement of the offsets of the active lanes of a group.
enum Pattern {
    /// Each lane's part follows the part of the previous lane; holds the offset of the group's
    /// first lane, active or not.
    Rows(usize),
    /// All of a lane's parts follow the parts of the previous lane; holds the offset of the group's
    /// first lane.
    Elements(usize),
    /// All lanes have this offset.
    Equal(usize),
    /// Any other arrangement.
    Scattered,
}

impl<'a, B: Deref<Target = [u8]>, P: Part, const PARTS: usize> Placed<'a, B, P, PARTS> {
    /// Selects the lanes that lie in `bytes` from `lanes`, whose row is `active`. If some lanes are
    /// out of range, `row` stores the row of the remaining ones. `places` are the byte distances of
    /// a lane's parts from its offset. Lanes with an offset of 2 GiB or more are never in range.
    #[inline(always)]
    pub fn new(
        bytes: B,
        offsets: &'a Row,
        (active, lanes): (&'a Row, LaneMask),
        places: [u32; PARTS],
        row: &'a mut Option<Row>,
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
        Placed { bytes, last, offsets, active: row.insert(inside), lanes, places, part }
    }

    /// Lanes that lie in the range.
    #[inline(always)]
    pub fn lanes(&self) -> LaneMask {
        self.lanes
    }

    /// Offset of a lane.
    #[inline(always)]
    fn offset(&self, lane: usize) -> usize {
        self.offsets.0[lane] as usize
    }

    /// Participating lanes of a group, with the first lane in the lowest bit.
    #[inline(always)]
    fn members(&self, group: usize) -> u16 {
        (self.lanes.0 >> (GROUP * group)) as u16
    }

    /// Returns `true` if a lane's parts are contiguous.
    #[inline(always)]
    fn is_packed(&self) -> bool {
        let mut packed = true;
        for (part, place) in self.places.iter().enumerate() {
            packed &= *place == (part * size_of::<P>()) as u32;
        }
        packed
    }

    /// Returns the arrangement of the participating lanes (`members`, at least one) of a group. For
    /// [`Pattern::Rows`] and [`Pattern::Elements`], the parts of all lanes of the group are in
    /// range, including those of lanes that do not participate.
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

    /// Offset of the group's first lane, if offsets grow by `step` from it to lane `first` and the
    /// group's last lane lies in the range, too.
    #[inline(always)]
    fn start(&self, offset: u32, first: u32, step: u32) -> Option<u32> {
        let greatest = self.last.checked_sub(step * (GROUP as u32 - 1))?;
        offset.checked_sub(step * first).filter(|start| *start <= greatest)
    }
}

/// Returns `true` if the offsets of the active lanes of a group grow from `start` by `step`.
#[inline(always)]
fn follow<const ALL: bool>(
    offsets: &[u32; GROUP],
    active: &[u32; GROUP],
    start: u32,
    step: u32,
) -> bool {
    // The compiler turns the comparison of whole arrays into a vector comparison.
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
