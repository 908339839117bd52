//! Buffer resources: where the bytes of a record lie, and which of them exist (ISA manual, "Buffer
//! resource descriptor", "Buffer addressing", "Range checking").

use crate::execute::operand::scalar_word;
use crate::execute::vector_memory::{Addresses, Placement};
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Row, ScalarIndex, Wave, mask_of};
use flipwave_isa::{BufferFormat, Generation, Lane, LaneMask};

/// A buffer resource with the scalar offset of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    base: u64,
    stride: u32,
    /// Bytes, or records where the buffer is structured.
    records: u32,
    swizzle: bool,
    /// Bytes that swizzling keeps together, as a power of two.
    element: u32,
    /// Records that swizzling puts side by side, as a power of two.
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

/// What is in range: what is less than all of these.
#[derive(Clone, Copy)]
struct Limits {
    /// Of the record.
    index: u64,
    /// Of the last byte in the record.
    last: u64,
    /// Of that byte in the buffer.
    within: u64,
}

impl Limits {
    #[inline(always)]
    fn contain(self, index: u32, last: u32, within: u64) -> bool {
        (u64::from(index) < self.index) & (u64::from(last) < self.last) & (within < self.within)
    }
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
    /// Bytes that swizzling keeps together on gfx9 and gfx10, as a power of two.
    const ELEMENT: u32 = 2;

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
            element: if is_newer && high >> 30 == 3 { 4 } else { Buffer::ELEMENT },
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
            index_stride: 0,
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
            index_stride: 3 + (flags >> 21 & 3),
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

    #[inline(always)]
    fn index(&self, lane: Lane, index: u32) -> u32 {
        index.wrapping_add(if self.add_thread { lane.0.into() } else { 0 })
    }

    /// Where the byte at `offset` of record `index` lies in the buffer.
    #[inline(always)]
    fn within(&self, index: u32, offset: u32) -> u64 {
        if !self.swizzle {
            return u64::from(index) * u64::from(self.stride) + u64::from(offset);
        }
        let low = |word: u32, bits: u32| word & ((1 << bits) - 1);
        let group = u64::from(index >> self.index_stride) * u64::from(self.stride);
        let byte = low(offset, self.element);
        let row = (group + u64::from(offset - byte)) << self.index_stride;
        row + u64::from((low(index, self.index_stride) << self.element) + byte)
    }

    /// What is less where all `bytes` bytes from `offset` of record `index` on exist. A buffer of
    /// bytes is checked where they lie, less the scalar offset; one of records by the index, and if
    /// it is swizzled also by the offset, which must stay within the record.
    #[inline(always)]
    fn limits(&self) -> Limits {
        let none = Limits { index: u64::MAX, last: u64::MAX, within: u64::MAX };
        let (records, stride) = (u64::from(self.records), u64::from(self.stride));
        let in_record = Limits { index: records, last: stride, ..none };
        match self.range {
            Some(RangeCheck::IndexAndOffset) => in_record,
            Some(RangeCheck::Index) => Limits { index: records, ..none },
            Some(RangeCheck::Empty) if self.records != 0 => none,
            Some(RangeCheck::Empty) => Limits { index: 0, ..none },
            Some(RangeCheck::Bytes) if self.swizzle && self.stride != 0 => in_record,
            Some(RangeCheck::Bytes) => Limits { within: records, ..none },
            // Neither has private memory a range check from gfx9 on (LLVM,
            // `privateMemoryResourceIsRangeChecked`).
            None if self.add_thread && !self.indexed => none,
            None if self.is_structured() && self.swizzle => in_record,
            None if self.is_structured() => Limits { index: records, ..none },
            None => {
                let within = self.records.saturating_sub(self.offset);
                Limits { within: within.into(), ..none }
            }
        }
    }

    /// Whether all `bytes` bytes from `offset` of record `index` on exist.
    pub fn contains(&self, lane: Lane, index: u32, offset: u32, bytes: u32) -> bool {
        let index = self.index(lane, index);
        let last = offset.checked_add(bytes.saturating_sub(1));
        last.is_some_and(|last| self.limits().contain(index, last, self.within(index, last)))
    }

    /// Where the elements of all active lanes lie, `bytes` bytes each that exist by the `granule`;
    /// nothing if they do not all lie alike, or not all of an element exists.
    #[inline(always)]
    pub fn place(
        &self,
        [indices, offsets]: [&Row; 2],
        (active, lanes): (&Row, LaneMask),
        bytes: u32,
        granule: u32,
    ) -> Option<Placement> {
        let chunk = 1 << self.element;
        // Words whose addresses are aligned lie one in each chunk of four bytes, or all in one chunk.
        let (alignment, apart) = match () {
            () if !self.swizzle => (u32::MAX, 4),
            () if bytes <= chunk => (chunk - bytes, 4),
            () if chunk == 4 && granule == 4 => (0, chunk << self.index_stride),
            () => return None,
        };
        let limits = self.limits();
        let (before_last, before_next) = (bytes - granule, granule - 1);
        let further = u64::from(before_last / 4 * apart + before_last % 4);
        let [mut low, mut high, mut inside] = [Row::ZERO; 3];
        let (mut odd, mut outside) = (0, 0);
        for lane in 0..LANES {
            let (index, offset) = (indices.0[lane], offsets.0[lane]);
            let index = self.index(Lane(lane as u8), index);
            let within = self.within(index, offset);
            let first_end = within + u64::from(before_next);
            // What would begin anew beyond 32 bits does not exist.
            let first_offset = offset.wrapping_add(before_next);
            let last_offset = offset.wrapping_add(bytes - 1);
            let first = limits.contain(index, first_offset, first_end) & (first_offset >= offset);
            let last =
                limits.contain(index, last_offset, first_end + further) & (last_offset >= offset);
            let is_apart = offset & (chunk - 1) > alignment;
            let exists = u32::from(last).wrapping_neg();
            odd |= u32::from((first != last) | is_apart) & active.0[lane];
            inside.0[lane] = exists & active.0[lane];
            outside |= !exists & active.0[lane];
            (low.0[lane], high.0[lane]) = (within as u32, (within >> 32) as u32);
        }
        if odd != 0 {
            return None;
        }
        let exist = if outside == 0 { lanes } else { LaneMask(mask_of(&inside)) };
        let base = self.base.wrapping_add(self.offset.into());
        let addresses = Addresses::after(base, &low, &high, exist);
        Some(Placement { addresses, apart, void: LaneMask(lanes.0 & !exist.0) })
    }

    /// The address of the byte at `offset` of record `index`.
    pub fn address(&self, lane: Lane, index: u32, offset: u32) -> u64 {
        let within = self.within(self.index(lane, index), offset);
        self.base.wrapping_add(self.offset.into()).wrapping_add(within)
    }
}

#[cfg(test)]
mod tests;
