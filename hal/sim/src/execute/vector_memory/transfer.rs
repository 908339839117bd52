//! Moves between registers and device memory of lanes each of which has one address.

use super::addresses::Addresses;
use super::data::{atomic_operands, data_row, write_lane};
use super::scattered::scattered;
use crate::execute::buffer::Buffer;
use crate::execute::lane_access;
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Element, Op};
use crate::memory::{Memory, modify, read_bytes, write_bytes};
use crate::wave::{Active, Row, Wave};
use flipwave_device::{AccessKind, FaultCause};
use flipwave_isa::{Lane, LaneMask};

/// Moves data between registers and device memory.
#[inline(always)]
pub fn transfer(
    wave: &mut Wave,
    op: &Op,
    transfer: Transfer,
    addresses: &Addresses,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    match transfer {
        Transfer::Load(Element::Words(words)) => load_words(wave, op, words, 4, addresses, memory),
        Transfer::Load(element) => load_parts(wave, op, element, addresses, memory),
        Transfer::Store(element) => store(wave, op, element, addresses, memory),
        Transfer::Atomic { atomic, returns } => {
            for lane in addresses.lanes.lanes() {
                let at = addresses.at(lane.0.into());
                let operands = atomic_operands(wave, op, atomic, lane);
                let old = modify(memory, at, Some(lane), atomic, operands)?;
                if returns {
                    write_lane(wave, op, lane, old, atomic.bytes);
                }
            }
            Ok(())
        }
        rare => {
            let place =
                |lane: Lane, byte: u32| Some(addresses.at(lane.0.into()).wrapping_add(byte.into()));
            let buffer = Buffer::default();
            scattered(wave, op, rare, addresses.lanes, &buffer, (memory, lds), place)
        }
    }
}

/// All ones in the lanes that take part.
#[inline(always)]
fn active_row(wave: &Wave, lanes: LaneMask) -> Row {
    if lanes == wave.exec() { *wave.exec_row() } else { Row::expand(lanes) }
}

/// Loads words that lie `apart` bytes from one to the next.
#[inline(always)]
pub fn load_words(
    wave: &mut Wave,
    op: &Op,
    words: u8,
    apart: u32,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let row = active_row(wave, addresses.lanes);
    // Mostly all lanes fall into one region.
    if let Some(region) = memory.readable(addresses.first(), 4)
        && let Some(offsets) = addresses.offsets_from(region.base, &row)
    {
        let rows = wave.rows_mut(op.destination, words).0;
        let active = Active { row: &row, all: addresses.lanes == LaneMask::FULL };
        let done = match words {
            1 => load_rows::<1>(region.bytes, &offsets, active, rows, apart),
            2 => load_rows::<2>(region.bytes, &offsets, active, rows, apart),
            3 => load_rows::<3>(region.bytes, &offsets, active, rows, apart),
            _ => load_rows::<4>(region.bytes, &offsets, active, rows, apart),
        };
        if done {
            return Ok(());
        }
    }
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        let mut values = [0; 4];
        for (word, value) in values[..usize::from(words)].iter_mut().enumerate() {
            let at = addresses.at(index).wrapping_add(word as u64 * u64::from(apart));
            let mut bytes = [0; 4];
            read_bytes(memory, at, &mut bytes, AccessKind::Read, Some(lane))?;
            *value = u32::from_le_bytes(bytes);
        }
        for (row, value) in wave.rows_mut(op.destination, words).0.iter_mut().zip(values) {
            row.0[index] = value;
        }
    }
    Ok(())
}

/// The same for all lanes at once; `false`, and nothing done, if a word is out of range.
#[inline(always)]
fn load_rows<const WORDS: usize>(
    bytes: &[u8],
    offsets: &Row,
    active: Active<'_>,
    rows: &mut [Row],
    apart: u32,
) -> bool {
    let places = std::array::from_fn(|word| apart * word as u32);
    rows.first_chunk_mut::<WORDS>()
        .is_some_and(|rows| lane_access::load(bytes, offsets, active, rows, &places))
}

#[inline(never)]
fn load_parts(
    wave: &mut Wave,
    op: &Op,
    element: Element,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    for lane in addresses.lanes.lanes() {
        let at = addresses.at(lane.0.into());
        let mut bytes = [0; 4];
        let length = element.bytes();
        read_bytes(memory, at, &mut bytes[..length], AccessKind::Read, Some(lane))?;
        let word = &mut wave.row_mut(op.destination).0[usize::from(lane.0)];
        *word = element.extend(u32::from_le_bytes(bytes), *word);
    }
    Ok(())
}

#[inline(always)]
fn store(
    wave: &mut Wave,
    op: &Op,
    element: Element,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    if let Element::Words(words) = element {
        return store_words(wave, op, words, 4, addresses, memory);
    }
    let Some(row) = data_row(op, 0) else { return Ok(()) };
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        let bytes = element.part(wave.row(row).0[index]).to_le_bytes();
        let bytes = &bytes[..element.bytes()];
        write_bytes(memory, addresses.at(index), bytes, AccessKind::Write, Some(lane))?;
    }
    Ok(())
}

/// Stores words that lie `apart` bytes from one to the next, lowest lane first.
#[inline(always)]
pub fn store_words(
    wave: &Wave,
    op: &Op,
    words: u8,
    apart: u32,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let Some(first) = data_row(op, 0) else { return Ok(()) };
    let rows = wave.rows_of(first, words);
    let row = active_row(wave, addresses.lanes);
    let active = Active { row: &row, all: addresses.lanes == LaneMask::FULL };
    if let Some(region) = memory.writable(addresses.first(), 4)
        && let Some(offsets) = addresses.offsets_from(region.base, &row)
        && lane_access::store(region.bytes, &offsets, active, rows, apart)
    {
        return Ok(());
    }
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        for (word, row) in rows.iter().enumerate() {
            let at = addresses.at(index).wrapping_add(word as u64 * u64::from(apart));
            let bytes = row.0[index].to_le_bytes();
            write_bytes(memory, at, &bytes, AccessKind::Write, Some(lane))?;
        }
    }
    Ok(())
}
