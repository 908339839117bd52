//! Buffer resources: where the bytes of a record lie, and which of them exist (ISA manual, "Buffer
//! resource descriptor", "Buffer addressing", "Range checking").

use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{ScalarIndex, Wave};
use flipwave_isa::{BufferFormat, Generation, Lane};

/// A buffer resource with the scalar offset of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    base: u64,
    stride: u32,
    /// Bytes, or records where the buffer is structured.
    records: u32,
    swizzle: bool,
    /// Bytes that swizzling keeps together.
    element: u32,
    /// Records that swizzling puts side by side.
    index_stride: u32,
    add_thread: bool,
    /// What the instruction's scalar offset adds to every address.
    offset: u32,
    /// The instruction has an index. Only then does the resource count records in units of its
    /// stride (the manual does not say so; Mesa and LLVM depend on it).
    indexed: bool,
    /// What is out of range, from gfx10 on.
    range: Option<RangeCheck>,
    /// Format of the data in memory, for instructions that have none of their own.
    pub format: BufferFormat,
    /// Where each channel of a formatted load comes from: 0 zero, 1 one, 4 to 7 a component.
    pub channels: [u8; 4],
}

/// When an access is out of range (RDNA 2 and RDNA 3 ISA, "Buffer range checking", `OOB_SELECT`). The
/// scalar offset does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeCheck {
    /// By index, and by offset in the record.
    IndexAndOffset,
    /// By index.
    Index,
    /// Where there is not any record.
    Empty,
    /// By byte; of swizzled records as [`RangeCheck::IndexAndOffset`].
    Bytes,
}

impl RangeCheck {
    fn of(flags: u32) -> RangeCheck {
        match flags >> 28 & 3 {
            0 => RangeCheck::IndexAndOffset,
            1 => RangeCheck::Index,
            2 => RangeCheck::Empty,
            _ => RangeCheck::Bytes,
        }
    }
}

impl Buffer {
    /// Bytes that swizzling keeps together on gfx9 and gfx10.
    const ELEMENT: u32 = 4;

    /// The resource in source 2 of an instruction, whose scalar offset is source 3.
    pub fn read(wave: &Wave, op: &Op, indexed: bool) -> Buffer {
        let first = match op.sources[2].words[0] {
            Word::Scalar(first) => first.0,
            _ => 0,
        };
        let words = [0, 1, 2, 3].map(|word| wave.scalar(ScalarIndex(first + word)));
        let offset = scalar_word(wave, op.sources[3].words[0]);
        match wave.machine.generation {
            Generation::Gfx125 => Buffer::of_gfx125(words, offset, indexed),
            generation if generation >= Generation::Gfx10 => {
                Buffer::of_rdna(words, offset, indexed, generation)
            }
            _ => Buffer::new(words, offset, indexed),
        }
    }

    /// The resource that the four words describe from gfx10 on: data and number format are one, the
    /// range check is chosen, and from gfx11 on so is what swizzling keeps together (RDNA 2 and RDNA 3
    /// ISA, "Buffer resource descriptor").
    fn of_rdna(words: [u32; 4], offset: u32, indexed: bool, generation: Generation) -> Buffer {
        let [_, high, _, flags] = words;
        let is_newer = generation >= Generation::Gfx11;
        let format = flags >> 12 & if is_newer { 0x3f } else { 0x7f };
        Buffer {
            stride: high >> 16 & 0x3fff,
            swizzle: if is_newer { high >> 30 != 0 } else { high >> 31 != 0 },
            element: if is_newer && high >> 30 == 3 { 16 } else { Buffer::ELEMENT },
            format: BufferFormat::unified(format as u8, generation),
            range: Some(RangeCheck::of(flags)),
            ..Buffer::new(words, offset, indexed)
        }
    }

    /// The same on gfx1250: a base of 57 bits, a number of records of 45, a stride in bits 121:108 and
    /// four flags (LLVM, `lowerPointerAsRsrcIntrin`), of which the choice of the range check is where it
    /// was. Of swizzles and formats nothing is published: there are none here. Offsets have 32 bits, so
    /// that more records than fit in those are as good as the most that do.
    fn of_gfx125(words: [u32; 4], offset: u32, indexed: bool) -> Buffer {
        let [low, high, second_high, flags] = words;
        let whole = u64::from(low) | u64::from(high) << 32;
        let upper = u64::from(second_high) | u64::from(flags & 0x3f) << 32;
        let records = whole >> 57 | upper << 7;
        Buffer {
            base: whole & ((1 << 57) - 1),
            stride: flags >> 12 & 0x3fff,
            records: u32::try_from(records).unwrap_or(u32::MAX),
            element: Buffer::ELEMENT,
            index_stride: 1,
            offset,
            indexed,
            range: Some(RangeCheck::of(flags)),
            ..Buffer::default()
        }
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
            element: Buffer::ELEMENT,
            range: None,
            index_stride: 8 << (flags >> 21 & 3),
            add_thread,
            offset,
            indexed,
            format: BufferFormat { data, number: (flags >> 12 & 7) as u8 },
            channels: [0, 3, 6, 9].map(|at| (flags >> at & 7) as u8),
        }
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
        // A resource of no memory has none.
        let size = self.element.max(1);
        let (element, byte) = (offset / size, offset % size);
        let row = u64::from(group) * u64::from(self.stride) + u64::from(element) * u64::from(size);
        row * u64::from(self.index_stride) + u64::from(member * size + byte)
    }

    /// Whether all `bytes` bytes from `offset` of record `index` on exist. A buffer of bytes is
    /// checked where they lie, less the scalar offset; one of records by the index, and if it is
    /// swizzled also by the offset, which must stay within the record.
    pub fn contains(&self, lane: Lane, index: u32, offset: u32, bytes: u32) -> bool {
        let index = self.index(lane, index);
        let Some(last) = offset.checked_add(bytes.saturating_sub(1)) else { return false };
        if let Some(range) = self.range {
            let is_record = index < self.records;
            return match range {
                RangeCheck::IndexAndOffset => is_record && last < self.stride,
                RangeCheck::Index => is_record,
                RangeCheck::Empty => self.records != 0,
                RangeCheck::Bytes if self.swizzle && self.stride != 0 => {
                    is_record && last < self.stride
                }
                RangeCheck::Bytes => self.within(index, last) < u64::from(self.records),
            };
        }
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
