//! Accesses of all lanes at once, with one memory lookup for each region that lanes access.
//! Accesses that cannot be made this way, above all those that fault, are left to the lane-by-lane
//! path.

use super::data::data_row;
use super::placement::Placement;
use crate::execute::lane_access::{self, Part, Placed};
use crate::execute::lds;
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Element, Op};
use crate::memory::atomic::Atomic;
use crate::memory::{LanePlaces, Memory, Region, RegionMut};
use crate::wave::{LANES, Row, Wave};
use flipwave_isa::LaneMask;
use std::ops::Range;

/// Maximum number of regions that one access may touch.
const REGIONS: usize = 8;

/// Moves data between registers and device memory; returns `false` without effect if the access
/// must be made lane by lane.
#[inline(always)]
pub fn transfer(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    placement: &Placement,
    memory: &mut dyn Memory,
) -> bool {
    match what {
        Transfer::Load(Element::Words(1)) => load_words::<1>(wave, op, placement, memory),
        Transfer::Load(Element::Words(2)) => load_words::<2>(wave, op, placement, memory),
        Transfer::Load(Element::Words(3)) => load_words::<3>(wave, op, placement, memory),
        Transfer::Load(Element::Words(_)) => load_words::<4>(wave, op, placement, memory),
        Transfer::Load(element @ Element::Part { bytes: 1, .. }) => {
            load_part::<u8>(wave, op, element, placement, memory)
        }
        Transfer::Load(element) => load_part::<u16>(wave, op, element, placement, memory),
        Transfer::Store(Element::Words(1)) => store_words::<1>(wave, op, placement, memory),
        Transfer::Store(Element::Words(2)) => store_words::<2>(wave, op, placement, memory),
        Transfer::Store(Element::Words(3)) => store_words::<3>(wave, op, placement, memory),
        Transfer::Store(Element::Words(_)) => store_words::<4>(wave, op, placement, memory),
        Transfer::Store(element @ Element::Part { bytes: 1, .. }) => {
            store_part::<u8>(wave, op, element, placement, memory)
        }
        Transfer::Store(element) => store_part::<u16>(wave, op, element, placement, memory),
        Transfer::Atomic { atomic, returns } => {
            modify(wave, op, atomic, returns, placement, memory)
        }
        _ => false,
    }
}

/// Moves data between registers and LDS; returns `false` like [`transfer`].
#[inline(always)]
pub fn transfer_lds(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    offsets: &Row,
    lds: &mut [u8],
) -> bool {
    match what {
        Transfer::Load(element) => lds::load(wave, op.destination, element, offsets, lds),
        Transfer::Store(element) => {
            data_row(op, 0).is_some_and(|row| lds::store(wave, row, element, offsets, lds))
        }
        _ => false,
    }
}

#[inline(always)]
fn load_words<const WORDS: usize>(
    wave: &mut Wave,
    op: &Op,
    placement: &Placement,
    memory: &mut dyn Memory,
) -> bool {
    let (rows, exec) = wave.rows_and_exec(op.destination, WORDS as u8);
    let Some(rows) = rows.first_chunk_mut::<WORDS>() else { return false };
    if !load_rows::<u32, WORDS>(memory, placement, exec, rows) {
        return false;
    }
    if placement.void != LaneMask::EMPTY {
        let void = Row::expand(placement.void);
        for row in rows {
            for lane in 0..LANES {
                row.0[lane] &= !void.0[lane];
            }
        }
    }
    true
}

#[inline(always)]
fn load_part<P: Part>(
    wave: &mut Wave,
    op: &Op,
    element: Element,
    placement: &Placement,
    memory: &mut dyn Memory,
) -> bool {
    // Void lanes load these zeros.
    let mut loaded = [Row::ZERO];
    let (rows, exec) = wave.rows_and_exec(op.destination, 1);
    let Some(row) = rows.first_mut() else { return false };
    load_rows::<P, 1>(memory, placement, exec, &mut loaded) && {
        lane_access::extend(element, row, &loaded[0], exec);
        true
    }
}

#[inline(always)]
fn store_words<const WORDS: usize>(
    wave: &Wave,
    op: &Op,
    placement: &Placement,
    memory: &mut dyn Memory,
) -> bool {
    let Some(first) = data_row(op, 0) else { return false };
    let Some(rows) = wave.rows_of(first, WORDS as u8).first_chunk::<WORDS>() else { return false };
    store_rows::<u32, WORDS>(memory, placement, wave.exec_row(), rows)
}

#[inline(always)]
fn store_part<P: Part>(
    wave: &Wave,
    op: &Op,
    element: Element,
    placement: &Placement,
    memory: &mut dyn Memory,
) -> bool {
    let Some(row) = data_row(op, 0) else { return false };
    let parts = [lane_access::parts(element, wave.row(row))];
    store_rows::<P, 1>(memory, placement, wave.exec_row(), &parts)
}

/// Loads the parts of the lanes that access memory.
#[inline(always)]
fn load_rows<P: Part, const PARTS: usize>(
    memory: &mut dyn Memory,
    placement: &Placement,
    exec: &Row,
    rows: &mut [Row; PARTS],
) -> bool {
    let addresses = &placement.addresses;
    let (mut remaining, mut remaining_row, mut are_there) = (addresses.lanes, Row::ZERO, false);
    let mut active = placement.active(exec, &mut remaining_row);
    while remaining != LaneMask::EMPTY {
        let at = addresses.first(remaining);
        let asked = placement.asked::<P, PARTS>();
        let Some(region) = memory.readable_by_lanes(at, asked) else { return false };
        let Region { base, bytes } = region.near(at);
        let offsets = addresses.offsets_from(base);
        let (places, mut placed_row) = (placement.places(), None);
        let placed = Placed::<_, P, PARTS>::new(
            bytes,
            &offsets,
            (active, remaining),
            places,
            &mut placed_row,
        );
        if placed.lanes() != remaining && !are_there {
            if !are_all_there::<P, PARTS>(placement, |at, bytes| {
                memory.readable_by_lanes(at, bytes).map(|region| region.near(at).range())
            }) {
                return false;
            }
            are_there = true;
            continue;
        }
        if placed.lanes() == LaneMask::EMPTY {
            return false;
        }
        placed.load(rows);
        let lanes = placed.lanes();
        memory.note_read(&placement.accessed::<P, PARTS>(base, &offsets, lanes));
        remaining.0 &= !lanes.0;
        if remaining != LaneMask::EMPTY {
            remaining_row = Row::expand(remaining);
            active = &remaining_row;
        }
    }
    true
}

/// Stores the parts of the lanes that access memory.
#[inline(always)]
fn store_rows<P: Part, const PARTS: usize>(
    memory: &mut dyn Memory,
    placement: &Placement,
    exec: &Row,
    rows: &[Row; PARTS],
) -> bool {
    let addresses = &placement.addresses;
    let (mut remaining, mut remaining_row, mut are_there) = (addresses.lanes, Row::ZERO, false);
    let mut active = placement.active(exec, &mut remaining_row);
    while remaining != LaneMask::EMPTY {
        let at = addresses.first(remaining);
        let asked = placement.asked::<P, PARTS>();
        let Some(region) = memory.writable_by_lanes(at, asked) else { return false };
        let RegionMut { base, bytes, .. } = region.near(at);
        let offsets = addresses.offsets_from(base);
        let (places, mut placed_row) = (placement.places(), None);
        let mut placed = Placed::<_, P, PARTS>::new(
            bytes,
            &offsets,
            (active, remaining),
            places,
            &mut placed_row,
        );
        if placed.lanes() != remaining && !are_there {
            if !are_all_there::<P, PARTS>(placement, |at, bytes| {
                memory.writable_by_lanes(at, bytes).map(|region| region.near(at).range())
            }) {
                return false;
            }
            are_there = true;
            continue;
        }
        if placed.lanes() == LaneMask::EMPTY {
            return false;
        }
        placed.store(rows);
        let lanes = placed.lanes();
        memory.note_written(&placement.accessed::<P, PARTS>(base, &offsets, lanes));
        remaining.0 &= !lanes.0;
        if remaining != LaneMask::EMPTY {
            remaining_row = Row::expand(remaining);
            active = &remaining_row;
        }
    }
    true
}

/// Returns `true` if all lanes fall into a few regions that do not overlap, so that their order
/// does not matter. `region` looks up the region around an address, of at least the given size.
#[cold]
#[inline(never)]
fn are_all_there<P: Part, const PARTS: usize>(
    placement: &Placement,
    mut region: impl FnMut(u64, usize) -> Option<Range<u64>>,
) -> bool {
    let Placement { addresses, .. } = placement;
    let asked = placement.asked::<P, PARTS>();
    let reach = placement.places::<PARTS>().into_iter().max().unwrap_or(0) as u64;
    let extent = reach + size_of::<P>() as u64;
    let mut known: [Range<u64>; REGIONS] = std::array::from_fn(|_| 0..0);
    let mut count = 0;
    for lane in addresses.lanes.lanes() {
        let at = addresses.at(lane.0.into());
        let holds =
            |range: &Range<u64>| at >= range.start && at < range.end && range.end - at >= extent;
        if known[..count].iter().any(holds) {
            continue;
        }
        let Some(new) = region(at, asked) else { return false };
        let overlaps = |range: &Range<u64>| range.start < new.end && new.start < range.end;
        // Memory that hands out exactly the requested bytes has a region for each lane.
        let is_exact = new.end - new.start <= asked as u64;
        if is_exact || count == REGIONS || !holds(&new) || known[..count].iter().any(overlaps) {
            return false;
        }
        known[count] = new;
        count += 1;
    }
    true
}

impl Placement {
    /// Byte offsets of the parts of an element.
    #[inline(always)]
    fn places<const PARTS: usize>(&self) -> [u32; PARTS] {
        let mut places = [0; PARTS];
        for part in 0..PARTS {
            places[part] = self.apart * part as u32;
        }
        places
    }

    /// Number of bytes to look up, all of which are accessed.
    #[inline(always)]
    fn asked<P: Part, const PARTS: usize>(&self) -> usize {
        let is_whole = self.apart as usize == size_of::<P>();
        size_of::<P>() * if is_whole { PARTS } else { 1 }
    }

    /// Bytes that some of the lanes access, with offsets from `base`.
    #[inline(always)]
    fn accessed<'a, P: Part, const PARTS: usize>(
        &self,
        base: u64,
        offsets: &'a Row,
        lanes: LaneMask,
    ) -> LanePlaces<'a> {
        // A contiguous element is one part.
        let (offsets, bytes) = (&offsets.0, size_of::<P>() as u32);
        let apart = if PARTS == 1 { bytes } else { self.apart };
        LanePlaces { base, offsets, lanes, parts: PARTS as u32, bytes, apart }
    }

    /// Row with all ones in the lanes that access memory: either EXEC, which the caller has, or a
    /// row computed into `computed`.
    #[inline(always)]
    fn active<'a>(&self, exec: &'a Row, computed: &'a mut Row) -> &'a Row {
        if self.void == LaneMask::EMPTY {
            return exec;
        }
        *computed = Row::expand(self.addresses.lanes);
        computed
    }
}

/// Reads, modifies and writes a word of each lane, lowest lane first.
#[inline(always)]
fn modify(
    wave: &mut Wave,
    op: &Op,
    atomic: Atomic,
    returns: bool,
    placement: &Placement,
    memory: &mut dyn Memory,
) -> bool {
    match atomic.bytes {
        4 => modify_words::<1>(wave, op, atomic, returns, placement, memory),
        _ => modify_words::<2>(wave, op, atomic, returns, placement, memory),
    }
}

#[inline(always)]
fn modify_words<const WORDS: usize>(
    wave: &mut Wave,
    op: &Op,
    atomic: Atomic,
    returns: bool,
    placement: &Placement,
    memory: &mut dyn Memory,
) -> bool {
    let addresses = &placement.addresses;
    let mut computed_row = Row::ZERO;
    let active = placement.active(wave.exec_row(), &mut computed_row);
    let mut low_bits = 0;
    for lane in 0..LANES {
        low_bits |= addresses.low.0[lane] & active.0[lane];
    }
    if low_bits % (4 * WORDS as u32) != 0 {
        return false;
    }
    let mut before = [Row::ZERO; WORDS];
    if addresses.lanes != LaneMask::EMPTY {
        let (at, places) = (addresses.first(addresses.lanes), placement.places());
        let (lanes, mut fewer, mut fewer_written) = ((active, addresses.lanes), None, None);
        // An atomic reads before it writes, and is recorded as both.
        let Some(region) = memory.readable(at, 4 * WORDS) else { return false };
        let Region { base, bytes } = region.near(at);
        let offsets = addresses.offsets_from(base);
        let read = Placed::<_, u32, WORDS>::new(bytes, &offsets, lanes, places, &mut fewer);
        if read.lanes() != addresses.lanes {
            return false;
        }
        let Some(region) = memory.writable(at, 4 * WORDS) else { return false };
        let RegionMut { base, bytes, is_shared } = region.near(at);
        let offsets = addresses.offsets_from(base);
        let mut placed =
            Placed::<_, u32, WORDS>::new(bytes, &offsets, lanes, places, &mut fewer_written);
        if placed.lanes() != addresses.lanes {
            return false;
        }
        let word = |word| data_row(op, word).map_or(&Row::ZERO, |row| wave.row(row));
        let data = std::array::from_fn(word);
        let second = if atomic.has_second_operand() {
            std::array::from_fn(|index| word(WORDS + index))
        } else {
            [&Row::ZERO; WORDS]
        };
        before = placed.modify(is_shared, atomic, data, second);
    }
    if returns {
        wave.write_rows(op.destination, &before);
    }
    true
}
