//! Buffer resources: where the bytes of a record lie, and which of them exist (ISA manual, "Buffer
//! resource descriptor", "Buffer addressing", "Range checking").

use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{ScalarIndex, Wave};
use flipwave_isa::{BufferFormat, Lane};

/// A buffer resource with the scalar offset of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    base: u64,
    stride: u32,
    /// Bytes, or records where the buffer is structured.
    records: u32,
    swizzle: bool,
    /// Records that swizzling puts side by side.
    index_stride: u32,
    add_thread: bool,
    /// What the instruction's scalar offset adds to every address.
    offset: u32,
    /// The instruction has an index. Only then does the resource count records in units of its
    /// stride (the manual does not say so; Mesa and LLVM depend on it).
    indexed: bool,
    /// Format of the data in memory, for instructions that have none of their own.
    pub format: BufferFormat,
    /// Where each channel of a formatted load comes from: 0 zero, 1 one, 4 to 7 a component.
    pub channels: [u8; 4],
}

impl Buffer {
    /// Bytes that swizzling keeps together; fixed since gfx9.
    const ELEMENT: u32 = 4;

    /// The resource in source 2 of an instruction, whose scalar offset is source 3.
    pub fn read(wave: &Wave, op: &Op, indexed: bool) -> Buffer {
        let first = match op.sources[2].words[0] {
            Word::Scalar(first) => first.0,
            _ => 0,
        };
        let words = [0, 1, 2, 3].map(|word| wave.scalar(ScalarIndex(first + word)));
        Buffer::new(words, scalar_word(wave, op.sources[3].words[0]), indexed)
    }

    /// The resource that the four words describe.
    pub fn new([low, high, records, flags]: [u32; 4], offset: u32, indexed: bool) -> Buffer {
        let add_thread = flags >> 23 & 1 != 0;
        let data = (flags >> 15 & 0xf) as u8;
        // With the thread added, the data format gives the stride's upper bits.
        let more = if add_thread { u32::from(data) << 14 } else { 0 };
        Buffer {
            base: u64::from(low) | u64::from(high & 0xffff) << 32,
            stride: high >> 16 & 0x3fff | more,
            records,
            swizzle: high >> 31 != 0,
            index_stride: 8 << (flags >> 21 & 3),
            add_thread,
            offset,
            indexed,
            format: BufferFormat { data, number: (flags >> 12 & 7) as u8 },
            channels: [0, 3, 6, 9].map(|at| (flags >> at & 7) as u8),
        }
    }

    /// Whether the thread's number is added, as in the resource of private memory.
    pub fn adds_thread(&self) -> bool {
        self.add_thread
    }

    /// Whether the buffer is one of records for this instruction, rather than one of bytes.
    fn is_structured(&self) -> bool {
        self.indexed && self.stride != 0
    }

    fn index(&self, lane: Lane, index: u32) -> u32 {
        index.wrapping_add(if self.add_thread { lane.0.into() } else { 0 })
    }

    /// Where the byte at `offset` of record `index` lies in the buffer.
    fn within(&self, index: u32, offset: u32) -> u64 {
        if !self.swizzle {
            return u64::from(index) * u64::from(self.stride) + u64::from(offset);
        }
        let (group, member) = (index / self.index_stride, index % self.index_stride);
        let (element, byte) = (offset / Buffer::ELEMENT, offset % Buffer::ELEMENT);
        let row = u64::from(group) * u64::from(self.stride)
            + u64::from(element) * u64::from(Buffer::ELEMENT);
        row * u64::from(self.index_stride) + u64::from(member * Buffer::ELEMENT + byte)
    }

    /// Whether all `bytes` bytes from `offset` of record `index` on exist. A buffer of bytes is
    /// checked where they lie, less the scalar offset; one of records by the index, and if it is
    /// swizzled also by the offset, which must stay within the record.
    pub fn contains(&self, lane: Lane, index: u32, offset: u32, bytes: u32) -> bool {
        let index = self.index(lane, index);
        let Some(last) = offset.checked_add(bytes.saturating_sub(1)) else { return false };
        if self.is_structured() {
            index < self.records && !(self.swizzle && last >= self.stride)
        } else {
            self.within(index, last) < u64::from(self.records.saturating_sub(self.offset))
        }
    }

    /// The address of the byte at `offset` of record `index`.
    pub fn address(&self, lane: Lane, index: u32, offset: u32) -> u64 {
        let within = self.within(self.index(lane, index), offset);
        self.base.wrapping_add(self.offset.into()).wrapping_add(within)
    }
}

#[cfg(test)]
mod tests;
