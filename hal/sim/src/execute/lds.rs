//! The local data share: loads, stores, atomics, and the lane exchanges that use its hardware.
//! Reads outside the workgroup's allocation return zero, writes there are dropped (ISA manual, "LDS
//! out-of-range behavior").

mod bytes;
mod operands;
mod whole_wave;

pub use bytes::{modify, read, write};
pub use operands::{addresses, by_thread, two_offsets};
pub use whole_wave::{at_once, load, store};

use crate::execute::exchange::Loaded;
use crate::execute::vector_memory;
use crate::instruction::lds::LdsAccess;
use crate::instruction::{Element, Op, Word};
use crate::wave::level::at_each_level;
use crate::wave::{LANES, Row, RowIndex, ScalarIndex, Wave};
use bytes::u64_of;
use flipwave_device::FaultCause;

at_each_level! {
    /// Executes an LDS operation.
    pub fn execute(wave: &mut Wave, op: &Op, access: LdsAccess, lds: &mut [u8])
        -> Result<(), FaultCause> = execute_access;
}

#[inline(always)]
fn execute_access(
    wave: &mut Wave,
    op: &Op,
    access: LdsAccess,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    if !at_once(wave, op, access, lds) {
        lane_by_lane(wave, op, access, lds)?;
    }
    if let LdsAccess::ReadExchanged(elements) = access {
        vector_memory::transpose(wave, op, elements);
    }
    Ok(())
}

/// Executes an operation lane by lane, or one that needs all lanes at once.
#[inline(always)]
pub fn lane_by_lane(
    wave: &mut Wave,
    op: &Op,
    access: LdsAccess,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let exec = wave.exec();
    match access {
        LdsAccess::Read(Element::Words(words)) => {
            let addresses = addresses(wave, op, op.immediate as u32);
            read_words(wave, op, words, &addresses, [0], lds);
        }
        LdsAccess::Read(element) => {
            let addresses = addresses(wave, op, op.immediate as u32);
            for lane in exec.lanes() {
                let index = usize::from(lane.0);
                let bytes = read(lds, addresses.0[index], element.bytes());
                let loaded = u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[byte]));
                let word = &mut wave.row_mut(op.destination).0[index];
                *word = element.extend(loaded, *word);
            }
        }
        LdsAccess::Read2 { words, scale } => {
            let bases = addresses(wave, op, 0);
            let elements = two_offsets(op).map(|at| at * scale);
            read_words(wave, op, words, &bases, elements, lds);
        }
        LdsAccess::ReadExchanged(elements) => {
            let addresses = addresses(wave, op, op.immediate as u32);
            read_words(wave, op, elements.words(), &addresses, [0], lds);
        }
        LdsAccess::ReadTransposed { bits, words } => {
            let addresses = addresses(wave, op, op.immediate as u32);
            read_transposed(wave, op, bits, words, &addresses, lds);
        }
        LdsAccess::Write(element) => {
            let addresses = addresses(wave, op, op.immediate as u32);
            write_element(wave, op, 1, element, &addresses, lds);
        }
        LdsAccess::Write2 { words, scale } => {
            let [first, second] = two_offsets(op).map(|at| addresses(wave, op, at * scale));
            write_element(wave, op, 1, Element::Words(words), &first, lds);
            write_element(wave, op, 2, Element::Words(words), &second, lds);
        }
        LdsAccess::Atomic { atomic, returns } => {
            let addresses = addresses(wave, op, op.immediate as u32);
            for lane in exec.lanes() {
                let index = usize::from(lane.0);
                let first = data(wave, op, 1, atomic.bytes, index);
                // With two operands, the comparison value or the mask comes first.
                let operands = if atomic.has_second_operand() {
                    [data(wave, op, 2, atomic.bytes, index), first]
                } else {
                    [first, 0]
                };
                let old = modify(lds, addresses.0[index], lane, atomic, operands)?;
                if returns {
                    write_lane(wave, op.destination, index, old, atomic.bytes);
                }
            }
        }
        LdsAccess::Exchange2 { atomic, scale } => {
            let offsets = two_offsets(op).map(|at| at * scale);
            let addresses = offsets.map(|offset| addresses(wave, op, offset));
            for lane in exec.lanes() {
                let index = usize::from(lane.0);
                let new = [1, 2].map(|source| data(wave, op, source, atomic.bytes, index));
                for which in [0, 1] {
                    let operands = [new[which], 0];
                    let old = modify(lds, addresses[which].0[index], lane, atomic, operands)?;
                    let skip = which as u16 * u16::from(atomic.bytes / 4);
                    write_lane(wave, op.destination.plus(skip), index, old, atomic.bytes);
                }
            }
        }
        LdsAccess::ExchangeIf => {
            let addresses = addresses(wave, op, op.immediate as u32);
            for lane in exec.lanes() {
                let index = usize::from(lane.0);
                let at = addresses.0[index] & !7;
                let old = u64_of(&read(lds, at, 8));
                let new = data(wave, op, 1, 8, index);
                for half in 0..2 {
                    let word = (new >> (32 * half)) as u32;
                    if word >> 31 != 0 {
                        let at = at.wrapping_add(4 * half);
                        write(lds, at, &(word & 0x7fff_ffff).to_le_bytes());
                    }
                }
                write_lane(wave, op.destination, index, old, 8);
            }
        }
        LdsAccess::ReadByThread => {
            let addresses = by_thread(wave, op);
            read_words(wave, op, 1, &addresses, [0], lds);
        }
        LdsAccess::WriteByThread => {
            let addresses = by_thread(wave, op);
            write_element(wave, op, 1, Element::Words(1), &addresses, lds);
        }
        LdsAccess::Count { subtract } => {
            let at = (wave.scalar(ScalarIndex::M0) & 0xffff).wrapping_add(op.immediate as u32);
            let bytes = read(lds, at, 4);
            let old = u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[byte]));
            let count = exec.count();
            let new = if subtract { old.wrapping_sub(count) } else { old.wrapping_add(count) };
            write(lds, at, &new.to_le_bytes());
            wave.write_row(op.destination, &Row::splat(old));
        }
        LdsAccess::Permute
        | LdsAccess::BackwardPermute
        | LdsAccess::BackwardPermuteAny
        | LdsAccess::Swizzle => {
            exchange(wave, op, access);
        }
    }
    Ok(())
}

/// Writes the first eight bytes.
fn write_lane(wave: &mut Wave, destination: RowIndex, lane: usize, value: u64, bytes: u8) {
    wave.row_mut(destination).0[lane] = value as u32;
    if bytes == 8 {
        wave.row_mut(destination.plus(1)).0[lane] = (value >> 32) as u32;
    }
}

/// Reads elements of `words` words into consecutive destination registers, each at a byte distance
/// from the lane's address. An element that is partly out of range reads as zero as a whole.
fn read_words<const ELEMENTS: usize>(
    wave: &mut Wave,
    op: &Op,
    words: u8,
    addresses: &Row,
    elements: [u32; ELEMENTS],
    lds: &[u8],
) {
    let all = words * ELEMENTS as u8;
    for lane in wave.exec().lanes() {
        let index = usize::from(lane.0);
        let rows = wave.rows_mut(op.destination, all).chunks_mut(words.into());
        for (rows, element) in rows.zip(elements) {
            let at = addresses.0[index].wrapping_add(element);
            let bytes = read(lds, at, usize::from(words) * 4);
            for (row, bytes) in rows.iter_mut().zip(bytes.chunks_exact(4)) {
                row.0[index] = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
    }
}

/// Reads `words` words per lane, which form a row-major matrix of 16 columns among 16 lanes, and
/// gives each lane a column. The manual does not specify the element positions (CDNA 4 ISA, "MFMA
/// Transpose Load from LDS", has the layout that matrix operations expect); this is the layout that
/// compilers rely on (Triton, `ds_read_tr`; MLIR, `amdgpu.transpose_load`). EXEC must be full; an
/// inactive lane counts as zeros.
#[cold]
#[inline(never)]
fn read_transposed(wave: &mut Wave, op: &Op, bits: u8, words: u8, addresses: &Row, lds: &[u8]) {
    const COLUMNS: usize = 16;
    let mut lanes = [0u128; LANES];
    for lane in wave.exec().lanes() {
        let index = usize::from(lane.0);
        let bytes = read(lds, addresses.0[index], usize::from(words) * 4);
        lanes[index] = u128::from_le_bytes(bytes);
    }
    let each = usize::from(words) * 32 / usize::from(bits);
    Loaded { lanes, words, bits }.exchange(wave, op, |lane, row| {
        let (group, column) = (lane - lane % COLUMNS, lane % COLUMNS);
        let at = row * COLUMNS + column;
        (group + at / each, at % each)
    });
}

fn write_element(
    wave: &Wave,
    op: &Op,
    source: usize,
    element: Element,
    offsets: &Row,
    lds: &mut [u8],
) {
    let Some(first) = op.sources[source].row() else { return };
    let rows = wave.rows_of(first, element.words());
    for lane in wave.exec().lanes() {
        let index = usize::from(lane.0);
        let mut bytes = [0; 16];
        for (row, bytes) in rows.iter().zip(bytes.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&element.part(row.0[index]).to_le_bytes());
        }
        write(lds, offsets.0[index], &bytes[..element.bytes()]);
    }
}

fn data(wave: &Wave, op: &Op, source: usize, bytes: u8, lane: usize) -> u64 {
    let source = &op.sources[source];
    let Some(row) = source.row() else {
        return match source.words {
            [Word::Constant(low), Word::Constant(high)] => u64::from(low) | u64::from(high) << 32,
            _ => 0,
        };
    };
    let low = u64::from(wave.row(row).0[lane]);
    if bytes == 8 { low | u64::from(wave.row(row.plus(1)).0[lane]) << 32 } else { low }
}

/// Exchanges values between lanes. Inactive lanes provide zero.
fn exchange(wave: &mut Wave, op: &Op, access: LdsAccess) {
    // Lanes per group, a power of two, minus one.
    let within = u32::from(wave.machine.permute_lanes) - 1;
    let row = |source: usize| op.sources[source].row().map_or(Row::ZERO, |row| *wave.row(row));
    let offset = op.immediate as u32;
    // Lanes that the addresses select, for each lane.
    let named = |addresses: Row| {
        let mut lanes = addresses;
        for (lane, address) in (0..).zip(&mut lanes.0) {
            *address = lane & !within | (address.wrapping_add(offset) / 4) & within;
        }
        lanes
    };
    let active = |mut data: Row| {
        data.0.iter_mut().zip(&wave.exec_row().0).for_each(|(word, active)| *word &= active);
        data
    };
    let result = match access {
        LdsAccess::Permute => {
            let (lanes, data) = (named(row(0)), row(1));
            let mut result = Row::ZERO;
            for lane in wave.exec().lanes() {
                let index = usize::from(lane.0);
                result.0[lanes.0[index] as usize % LANES] = data.0[index];
            }
            result
        }
        LdsAccess::BackwardPermuteAny => row(1).select(&named(row(0))),
        LdsAccess::BackwardPermute => active(row(1)).select(&named(row(0))),
        _ => {
            let mut rows = [row(0)];
            if let Some(lane_move) = op.lane_move() {
                lane_move.apply(&mut rows, wave.exec_row());
            }
            rows[0]
        }
    };
    wave.write_row(op.destination, &result);
}

#[cfg(test)]
mod tests;
