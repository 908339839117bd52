//! Buffer resources: the addresses of a record's bytes, and the range checks. [`rules`] has the
//! rules of each generation.

pub mod rules;

use crate::execute::operand::scalar_word;
use crate::execute::vector_memory::{Addresses, Placement};
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Row, ScalarIndex, Wave, mask_of};
use flipwave_isa::{BufferFormat, Generation, Lane, LaneMask};
use rules::{Check, Facts, LaneIndex, Rules, ScalarOffset};
use std::ops::Range;

/// Fields of a buffer resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    base: u64,
    stride: u32,
    /// Number of records, or of bytes.
    records: u64,
    /// Base-2 logarithm of the bytes per swizzle element; `None` if swizzling is off.
    element: Option<u32>,
    /// Base-2 logarithm of the records per swizzle group.
    index_stride: u32,
    /// `ADD_TID_ENABLE`.
    adds_lane: bool,
    /// `OOB_SELECT`; zero before gfx10.
    mode: u8,
    /// Upper bits of the stride, used where the lane number is added and nothing is converted: gfx9
    /// has the data format in these bits.
    stride_high: u32,
    /// Format of the data in memory, for instructions that do not specify one.
    format: BufferFormat,
    /// Source of each channel of a formatted load: 0 is zero, 1 is one, 4 to 7 are the components.
    channels: [u8; 4],
    /// `true` if the resource has another type, such as an image.
    is_other: bool,
}

impl Resource {
    /// Decodes the four words of a buffer resource.
    pub fn new(words: [u32; 4], generation: Generation) -> Resource {
        match generation {
            Generation::Gfx125 => Resource::gfx125(words),
            _ if generation >= Generation::Gfx11 => {
                let [_, high, _, flags] = words;
                let element = match high >> 30 {
                    0 => None,
                    3 => Some(4),
                    _ => Some(2),
                };
                let format = BufferFormat::unified((flags >> 12 & 0x3f) as u8, generation);
                Resource { element, format, mode: mode(flags), ..Resource::gfx9(words) }
            }
            Generation::Gfx10 => {
                let flags = words[3];
                let format = BufferFormat::unified((flags >> 12 & 0x7f) as u8, generation);
                Resource { format, mode: mode(flags), ..Resource::gfx9(words) }
            }
            _ => Resource::gfx9(words),
        }
    }

    /// gfx9 (GCN 5 and CDNA 1 to 4 ISA, "Buffer resource descriptor"). gfx10 and later share base,
    /// stride, records, index stride and `ADD_TID_ENABLE`.
    fn gfx9([low, high, records, flags]: [u32; 4]) -> Resource {
        Resource {
            base: u64::from(low) | u64::from(high & 0xffff) << 32,
            stride: high >> 16 & 0x3fff,
            records: records.into(),
            element: (high >> 31 != 0).then_some(2),
            index_stride: 3 + (flags >> 21 & 3),
            adds_lane: flags >> 23 & 1 != 0,
            mode: 0,
            stride_high: (flags >> 15 & 0xf) << 14,
            format: BufferFormat {
                data: (flags >> 15 & 0xf) as u8,
                number: (flags >> 12 & 7) as u8,
            },
            channels: [0, 3, 6, 9].map(|at| (flags >> at & 7) as u8),
            is_other: false,
        }
    }

    /// gfx1250 (CDNA 5 ISA 9.6): a base of 57 bits, a record count of 45 bits, a stride with a
    /// multiplier, one bit that enables swizzling, one bit that selects the range check, and a
    /// type, which is zero for buffers.
    fn gfx125([low, high, second_high, flags]: [u32; 4]) -> Resource {
        let lower = u64::from(low) | u64::from(high) << 32;
        let upper = u64::from(second_high) | u64::from(flags & 0x3f) << 32;
        let multiplier = [1, 4, 8, 32][flags as usize >> 26 & 3];
        Resource {
            base: lower & ((1 << 57) - 1),
            stride: (flags >> 12 & 0x3fff) * multiplier,
            records: lower >> 57 | upper << 7,
            element: (flags >> 28 & 1 != 0).then_some(4),
            index_stride: 5,
            mode: (flags >> 29 & 1) as u8,
            is_other: flags >> 30 != 0,
            ..Resource::default()
        }
    }

    /// Number of bytes that scalar loads may read (RDNA 3 and RDNA 4 ISA 8.1.2: the number of
    /// records, times the stride unless that is zero).
    pub fn scalar_bytes(&self, generation: Generation) -> u64 {
        match generation {
            // The record count is in bytes here.
            Generation::Gfx125 => self.records,
            _ => self.records * u64::from(self.stride.max(1)),
        }
    }

    /// Address of the buffer's first byte.
    pub fn base(&self) -> u64 {
        self.base
    }
}

fn mode(flags: u32) -> u8 {
    (flags >> 28 & 3) as u8
}

/// Properties of an instruction that affect buffer addressing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// The instruction has an index register.
    pub indexed: bool,
    /// The instruction converts the data.
    pub formatted: bool,
    /// Value of the scalar offset.
    pub scalar_offset: u32,
}

/// A buffer resource combined with the properties of the instruction that uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Base address, including the scalar offset where the rules add it to the address.
    base: u64,
    stride: u32,
    /// The swizzled layout; `None` if the buffer is linear.
    swizzle: Option<Swizzle>,
    /// `true` if the lane number is added to the index.
    adds_lane: bool,
    /// `true` if the lane number is also added to the index that is range-checked.
    checks_lane: bool,
    /// Offset added before swizzling.
    inner: u32,
    limits: Limits,
    /// `true` if sums of offsets have more than 32 bits.
    pub is_wide: bool,
    /// `true` if the resource has another type, so that accesses do nothing.
    pub is_other: bool,
    /// Format of the data in memory, for instructions that do not specify one.
    pub format: BufferFormat,
    /// Source of each channel of a formatted load: 0 is zero, 1 is one, 4 to 7 are the components.
    pub channels: [u8; 4],
}

/// A layout in which the elements at the same offset of neighbouring records are adjacent. Sizes
/// are powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Swizzle {
    /// Bytes per element.
    element: u32,
    /// Records per group.
    index_stride: u32,
}

/// Limits of the range check; an access is in range if each part is less than its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Limits {
    index: u64,
    /// Limit of the last byte's offset in its record, without the scalar offset.
    record: u64,
    /// Limit of the last byte's offset in the buffer, without the scalar offset.
    buffer: u64,
}

impl Limits {
    fn of(check: Check, resource: &Resource, scalar_offset: u32) -> Limits {
        let all = Limits { index: u64::MAX, record: u64::MAX, buffer: u64::MAX };
        let (records, stride) = (resource.records, u64::from(resource.stride));
        let less = |limit: u64| limit.saturating_sub(scalar_offset.into());
        match check {
            Check::Nothing => all,
            Check::AnyRecords if records != 0 => all,
            Check::AnyRecords => Limits { index: 0, ..all },
            Check::Index => Limits { index: records, ..all },
            Check::IndexAndRecord => Limits { index: records, record: stride, ..all },
            Check::Bytes => Limits { record: less(records), ..all },
            Check::Address => Limits { buffer: less(records), ..all },
            Check::AddressAndRecord => {
                Limits { buffer: less(records), record: less(stride), ..all }
            }
        }
    }

    #[inline(always)]
    fn contain(self, index: u32, in_record: u64, in_buffer: u64) -> bool {
        (u64::from(index) < self.index) & (in_record < self.record) & (in_buffer < self.buffer)
    }
}

impl Buffer {
    /// Reads the buffer resource in source 2 of an instruction whose scalar offset is source 3.
    pub fn read(wave: &Wave, op: &Op, transfer: Transfer, indexed: bool) -> Buffer {
        let first = match op.sources[2].words[0] {
            Word::Scalar(first) => first.0,
            _ => 0,
        };
        let words = [0, 1, 2, 3].map(|word| wave.scalar(ScalarIndex(first + word)));
        let scalar_offset = scalar_word(wave, op.sources[3].words[0]);
        let access = Use { indexed, formatted: transfer.is_formatted(), scalar_offset };
        Buffer::new(words, access, wave.machine.generation)
    }

    /// Decodes a buffer resource of four words.
    pub fn new(words: [u32; 4], access: Use, generation: Generation) -> Buffer {
        Buffer::by_rules(&Resource::new(words, generation), access, Rules::of(generation))
    }

    fn by_rules(resource: &Resource, access: Use, rules: &Rules) -> Buffer {
        let Use { indexed, formatted, scalar_offset } = access;
        let swizzle = resource.element.filter(|_| rules.swizzle.is_on(resource.adds_lane, indexed));
        let swizzle =
            swizzle.map(|element| Swizzle { element, index_stride: resource.index_stride });
        let adds_lane = resource.adds_lane
            && match rules.lane_index {
                LaneIndex::UnlessLinearIndexed => swizzle.is_some() || !indexed,
                LaneIndex::UnlessIndexed => !indexed,
                LaneIndex::Never => false,
            };
        let has_high_stride =
            rules.lane_index == LaneIndex::UnlessLinearIndexed && adds_lane && !formatted;
        let facts = Facts {
            mode: resource.mode,
            adds_lane: resource.adds_lane,
            indexed,
            has_stride: resource.stride != 0,
            is_swizzled: swizzle.is_some(),
        };
        let limits = Limits::of(rules.check(facts), resource, scalar_offset);
        let is_inner = rules.scalar_offset == ScalarOffset::InElement && swizzle.is_some();
        let outer = if is_inner { 0 } else { u64::from(scalar_offset) };
        Buffer {
            base: resource.base.wrapping_add(outer),
            stride: resource.stride | if has_high_stride { resource.stride_high } else { 0 },
            swizzle,
            adds_lane,
            checks_lane: rules.lane_index == LaneIndex::UnlessIndexed,
            inner: if is_inner { scalar_offset } else { 0 },
            limits,
            is_wide: rules.sum_is_wide,
            is_other: resource.is_other,
            format: resource.format,
            channels: resource.channels,
        }
    }

    /// Returns `true` if the buffer describes private memory inside the launch's, with separate
    /// dwords for each lane.
    pub fn is_private(&self, launch: Range<u64>) -> bool {
        self.adds_lane && self.swizzle.is_some() && launch.contains(&self.base)
    }

    /// Returns the offset in a lane's private memory, which starts at `base`, of this buffer's
    /// offset 0; `None` if the buffer is laid out in another way.
    pub fn private_start(&self, base: u64, lanes: u8) -> Option<i64> {
        let is_by_lane =
            self.swizzle == Some(Swizzle { element: 2, index_stride: lanes.trailing_zeros() });
        let before = self.base.checked_sub(base)?;
        let is_whole = before.is_multiple_of(4 * u64::from(lanes)) && before < 1 << 40;
        (is_by_lane && is_whole).then_some((before / u64::from(lanes)) as i64)
    }

    /// Sum of the immediate offset and the offset register.
    pub fn offset(&self, immediate: u32, register: u32) -> u64 {
        if self.is_wide {
            u64::from(immediate) + u64::from(register)
        } else {
            immediate.wrapping_add(register).into()
        }
    }

    /// Index used for the address, and index that is range-checked.
    #[inline(always)]
    fn indices(&self, lane: u8, index: u32) -> [u32; 2] {
        let added = index.wrapping_add(if self.adds_lane { lane.into() } else { 0 });
        [added, if self.checks_lane { added } else { index }]
    }

    /// Offset in the buffer of the byte at `offset` of record `index`.
    #[inline(always)]
    fn within(&self, index: u32, offset: u64) -> u64 {
        let Some(Swizzle { element, index_stride }) = self.swizzle else {
            return (u64::from(index) * u64::from(self.stride)).wrapping_add(offset);
        };
        let offset = offset.wrapping_add(self.inner.into());
        let byte = offset & ((1 << element) - 1);
        let beside = u64::from(index & ((1 << index_stride) - 1)) << element;
        let group = u64::from(index >> index_stride) * u64::from(self.stride);
        (group.wrapping_add(offset - byte) << index_stride).wrapping_add(beside + byte)
    }

    /// Returns `true` if all `bytes` bytes from `offset` of record `index` are in range.
    pub fn contains(&self, lane: Lane, index: u32, offset: u64, bytes: u32) -> bool {
        let [index, checked] = self.indices(lane.0, index);
        let last = offset.checked_add(bytes.saturating_sub(1).into());
        last.is_some_and(|last| self.limits.contain(checked, last, self.within(index, last)))
            && !self.is_other
    }

    /// Placement of the elements of all active lanes, of `bytes` bytes each, which are
    /// range-checked in units of `granule` bytes. `None` if the lanes' elements are not laid out
    /// alike, or part of an element is out of range.
    #[inline(always)]
    pub fn place(
        &self,
        [indices, offsets]: [&Row; 2],
        (active, lanes): (&Row, LaneMask),
        bytes: u32,
        granule: u32,
    ) -> Option<Placement> {
        if self.is_other || self.inner != 0 {
            return None;
        }
        // Aligned words lie one in each chunk of four bytes, or all in one chunk.
        let (chunk, alignment, apart) = match self.swizzle {
            None => (1, 0, 4),
            Some(Swizzle { element, .. }) if bytes <= 1 << element => {
                (1 << element, (1 << element) - bytes, 4)
            }
            Some(Swizzle { element: 2, index_stride }) if granule == 4 => (4, 0, 4 << index_stride),
            Some(_) => return None,
        };
        let [mut low, mut high, mut inside] = [Row::ZERO; 3];
        let (mut odd, mut outside) = (0, 0);
        for lane in 0..LANES {
            let offset = offsets.0[lane];
            let [index, checked] = self.indices(lane as u8, indices.0[lane]);
            let within = self.within(index, offset.into());
            let exists = |last: u32| {
                let (in_record, in_buffer) = (u64::from(offset), within);
                self.limits.contain(
                    checked,
                    in_record + u64::from(last),
                    in_buffer + u64::from(last),
                )
            };
            let (first, last) = (exists(granule - 1), exists(bytes - 1));
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
        let addresses = Addresses::after(self.base, &low, &high, exist);
        Some(Placement { addresses, apart, void: LaneMask(lanes.0 & !exist.0) })
    }

    /// Address of the byte at `offset` of record `index`.
    pub fn address(&self, lane: Lane, index: u32, offset: u64) -> u64 {
        let [index, _] = self.indices(lane.0, index);
        self.base.wrapping_add(self.within(index, offset))
    }
}

#[cfg(test)]
mod tests;
