//! Moves between registers and device memory, one lane after the other, with one address per lane.

use super::addresses::Addresses;
use super::data::{atomic_operands, data_row, write_lane};
use super::scattered::{Memories, scattered};
use crate::execute::buffer::Buffer;
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Element, Op};
use crate::memory::{Memory, modify, read_bytes, write_bytes};
use crate::wave::Wave;
use flipwave_device::{AccessKind, FaultCause};
use flipwave_isa::Lane;

/// Moves data between registers and device memory.
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
        Transfer::Store(Element::Words(words)) => {
            store_words(wave, op, words, 4, addresses, memory)
        }
        Transfer::Store(element) => store_parts(wave, op, element, addresses, memory),
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
            let memories = Memories { device: memory, lds };
            scattered(wave, op, rare, addresses.lanes, &buffer, memories, place)
        }
    }
}

/// Loads words at a stride of `apart` bytes.
pub fn load_words(
    wave: &mut Wave,
    op: &Op,
    words: u8,
    apart: u32,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        let mut values = [0; 4];
        for (word, value) in values[..usize::from(words)].iter_mut().enumerate() {
            let at = addresses.at(index).wrapping_add(word as u64 * u64::from(apart));
            let mut bytes = [0; 4];
            read_bytes(memory, at, &mut bytes, AccessKind::Read, Some(lane))?;
            *value = u32::from_le_bytes(bytes);
        }
        for (row, value) in wave.rows_mut(op.destination, words).iter_mut().zip(values) {
            row.0[index] = value;
        }
    }
    Ok(())
}

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

fn store_parts(
    wave: &Wave,
    op: &Op,
    element: Element,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let Some(row) = data_row(op, 0) else { return Ok(()) };
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        let bytes = element.part(wave.row(row).0[index]).to_le_bytes();
        let bytes = &bytes[..element.bytes()];
        write_bytes(memory, addresses.at(index), bytes, AccessKind::Write, Some(lane))?;
    }
    Ok(())
}

/// Stores words at a stride of `apart` bytes, lowest lane first.
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
