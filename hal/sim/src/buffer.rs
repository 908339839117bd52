//! Buffer resources: where the bytes of a record lie, and which of them exist (ISA manual, "Buffer
//! resource descriptor", "Buffer addressing", "Range checking").

use crate::op::{Op, Word};
use crate::vector::scalar_word;
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
mod tests {
    use super::*;
    use crate::operations::tests::Random;

    /// What the manual's formulas give, field by field from the words: whether the access is in
    /// range, and its address. `element` is the size that swizzling keeps together.
    fn reference(
        words: [u32; 4],
        scalar_offset: u32,
        indexed: bool,
        (thread, index, offset, bytes): (u32, u32, u32, u32),
        element: u128,
    ) -> Option<u128> {
        let bits = |from: u32, count: u32| -> u128 {
            let all = words.iter().rev().fold(0u128, |all, word| all << 32 | u128::from(*word));
            all >> from & ((1 << count) - 1)
        };
        let (base, swizzle, records) = (bits(0, 48), bits(63, 1) == 1, bits(64, 32));
        let add_thread = bits(119, 1) == 1;
        let mut stride = bits(48, 14);
        if add_thread {
            stride += bits(111, 4) * 16384;
        }
        let index_stride = [8u128, 16, 32, 64][bits(117, 2) as usize];
        let index =
            (u128::from(index) + if add_thread { u128::from(thread) } else { 0 }) % (1 << 32);
        let place = |offset: u128| {
            if swizzle {
                let msb = (index / index_stride) * stride + (offset / element) * element;
                msb * index_stride + (index % index_stride) * element + offset % element
            } else {
                index * stride + offset
            }
        };
        let first = u128::from(offset);
        let end = first + u128::from(bytes);
        let fits = if indexed && stride != 0 {
            index < records && (!swizzle || end <= stride)
        } else {
            place(end - 1) + 1 + u128::from(scalar_offset) <= records
        };
        fits.then(|| base + u128::from(scalar_offset) + place(first))
    }

    /// Compares resource and reference on many resources; gives accesses in range, accesses out
    /// of range, and differences.
    fn compare(element: u128) -> [u32; 3] {
        let mut random = Random(7);
        let mut counts = [0; 3];
        for _ in 0..200_000 {
            let stride = random.choose(&[0, 4, 8, 12, 16, 64, 100, 0x3fff]) as u32;
            let swizzle = random.choose(&[0, 1 << 31]) as u32;
            let format = random.choose(&[0, 1]) as u32;
            let words = [
                random.next() as u32,
                random.next() as u32 & 0xffff | stride << 16 | swizzle,
                random.choose(&[0, 1, 4, 16, 100, 4096, 1 << 20, 0xffff_ffff]) as u32,
                (random.next() as u32 & 3) << 21 | (random.next() as u32 & 1) << 23 | format << 15,
            ];
            let scalar_offset = random.choose(&[0, 0, 4, 20, 5000]) as u32;
            let indexed = random.next() & 1 != 0;
            let thread = random.next() as u32 & 63;
            let index = random.choose(&[0, 0, 1, 5, 15, 16, 99, 1000, 0xffff_ffff]) as u32;
            let offset = random.choose(&[0, 1, 3, 4, 7, 8, 12, 60, 96, 4092, 0xffff_fff0]) as u32;
            let bytes = random.choose(&[1, 2, 4, 8, 16]) as u32;
            let buffer = Buffer::new(words, scalar_offset, indexed);
            let lane = Lane(thread as u8);
            let found = buffer
                .contains(lane, index, offset, bytes)
                .then(|| u128::from(buffer.address(lane, index, offset)));
            let access = (thread, index, offset, bytes);
            let wanted = reference(words, scalar_offset, indexed, access, element);
            counts[usize::from(wanted.is_none())] += 1;
            if found != wanted {
                counts[2] += 1;
            }
        }
        counts
    }

    #[test]
    fn addresses_and_ranges_follow_the_manual() {
        let [inside, outside, different] = compare(4);
        assert!(inside > 20_000 && outside > 20_000, "{inside} inside, {outside} outside");
        assert_eq!(different, 0);
    }

    /// The negative control: swizzling that keeps eight bytes together is another one.
    #[test]
    fn the_comparison_sees_a_wrong_element_size() {
        assert!(compare(8)[2] > 1000);
    }

    #[test]
    fn the_format_is_read_from_the_fourth_word() {
        let words = [0, 0, 0, 4 | 5 << 3 | 6 << 6 | 7 << 9 | 7 << 12 | 14 << 15];
        let buffer = Buffer::new(words, 0, false);
        assert_eq!(buffer.format, BufferFormat { data: 14, number: 7 });
        assert_eq!(buffer.channels, [4, 5, 6, 7]);
    }
}
