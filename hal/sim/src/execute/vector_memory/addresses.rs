//! Addresses that the lanes of a vector memory operation access.

use crate::execute::buffer::Buffer;
use crate::execute::operand::scalar_word;
use crate::instruction::vector_memory::Space;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Row, ScalarIndex, Wave};
use flipwave_isa::{Generation, Lane, LaneMask};

/// Reads a word of a lane's address operand; zero if there is none.
#[inline(always)]
pub fn address_word(wave: &Wave, op: &Op, word: usize, lane: usize) -> u32 {
    match op.sources[0].words[word] {
        Word::Row(row) => wave.row(row).0[lane],
        _ => 0,
    }
}

/// Addresses in device memory, and the lanes that access it. Stored as rows of words, like
/// registers: the host's vectors of 32-bit words are fast.
pub struct Addresses {
    pub low: Row,
    pub high: Row,
    pub lanes: LaneMask,
}

impl Addresses {
    /// Addresses at the given distances from `base`.
    #[inline(always)]
    pub fn after(base: u64, low: &Row, high: &Row, lanes: LaneMask) -> Addresses {
        let (base_low, base_high) = (base as u32, (base >> 32) as u32);
        let mut addresses = Addresses { low: Row::ZERO, high: Row::ZERO, lanes };
        for lane in 0..LANES {
            let sum = low.0[lane].wrapping_add(base_low);
            let carry = u32::from(sum < base_low);
            addresses.low.0[lane] = sum;
            addresses.high.0[lane] = high.0[lane].wrapping_add(base_high).wrapping_add(carry);
        }
        addresses
    }

    /// Global and flat addresses: a 64-bit register pair, or a scalar base plus a 32-bit register.
    #[inline(always)]
    pub fn of(wave: &Wave, op: &Op, lanes: LaneMask) -> Addresses {
        let offset = op.immediate as u64;
        let row = |word| match op.sources[0].words[word] {
            Word::Row(row) => wave.row(row),
            _ => &Row::ZERO,
        };
        match op.sources[2].words {
            [Word::Constant(_), _] => Addresses::after(offset, row(0), row(1), lanes),
            [low, high] => {
                let base =
                    u64::from(scalar_word(wave, low)) | u64::from(scalar_word(wave, high)) << 32;
                Addresses::after(base.wrapping_add(offset), row(0), &Row::ZERO, lanes)
            }
        }
    }

    /// Addresses of a global or flat access in any addressing mode.
    #[inline(never)]
    pub fn of_space(wave: &Wave, op: &Op, lanes: LaneMask, space: Space) -> Addresses {
        match space.signed_offset() {
            Some(shift) => Addresses::with_signed_offset(wave, op, lanes, shift),
            None if space == Space::GlobalByThread => Addresses::by_thread(wave, op, lanes),
            None => Addresses::of(wave, op, lanes),
        }
    }

    /// Addresses with a scalar base on gfx1250: the register is a signed number of elements of `1
    /// << shift` bytes (LLVM, `hasSignedGVSOffset` and `SelectScaleOffset`).
    fn with_signed_offset(wave: &Wave, op: &Op, lanes: LaneMask, shift: u8) -> Addresses {
        let base = op.sources[2].words.map(|word| u64::from(scalar_word(wave, word)));
        let base = (base[0] | base[1] << 32).wrapping_add(op.immediate as u64);
        let offset = |lane| i64::from(address_word(wave, op, 0, lane) as i32) << shift;
        let low = Row(std::array::from_fn(|lane| offset(lane) as u32));
        let high = Row(std::array::from_fn(|lane| (offset(lane) >> 32) as u32));
        Addresses::after(base, &low, &high, lanes)
    }

    /// Addresses of four bytes per lane, starting at the base (RDNA 3 ISA,
    /// "GLOBAL_LOAD_ADDTID_B32").
    fn by_thread(wave: &Wave, op: &Op, lanes: LaneMask) -> Addresses {
        let [low, high] = op.sources[2].words.map(|word| u64::from(scalar_word(wave, word)));
        let base = (low | high << 32).wrapping_add(op.immediate as u64);
        let low = Row(std::array::from_fn(|lane| 4 * lane as u32));
        Addresses::after(base, &low, &Row::ZERO, lanes)
    }

    /// Address of a lane.
    #[inline(always)]
    pub fn at(&self, lane: usize) -> u64 {
        u64::from(self.low.0[lane]) | u64::from(self.high.0[lane]) << 32
    }

    /// Address of the first of `lanes`.
    #[inline(always)]
    pub fn first(&self, lanes: LaneMask) -> u64 {
        self.at(lanes.0.trailing_zeros() as usize % LANES)
    }

    /// Offsets of the addresses from `start`; the greatest offset for addresses that lie too far
    /// above, or below `start`.
    #[inline(always)]
    pub fn offsets_from(&self, start: u64) -> Row {
        let (start_low, start_high) = (start as u32, (start >> 32) as u32);
        let mut offsets = Row::ZERO;
        for lane in 0..LANES {
            let borrow = u32::from(self.low.0[lane] < start_low);
            let high = self.high.0[lane].wrapping_sub(start_high).wrapping_sub(borrow);
            let low = self.low.0[lane].wrapping_sub(start_low);
            offsets.0[lane] = if high == 0 { low } else { u32::MAX };
        }
        offsets
    }
}

/// Offsets in the lanes' private memory.
#[inline(always)]
pub fn private_offsets(wave: &Wave, op: &Op, space: Space) -> Row {
    let base = match op.sources[2].words[0] {
        Word::Constant(_) => 0,
        word => scalar_word(wave, word),
    };
    let base = base.wrapping_add(op.immediate as u32);
    let shift = match space {
        Space::ScaledScratch { shift } => shift,
        _ => 0,
    };
    let mut offsets = Row::splat(base);
    if let Word::Row(row) = op.sources[0].words[0] {
        let row = wave.row(row);
        for lane in 0..LANES {
            offsets.0[lane] = base.wrapping_add(row.0[lane] << shift);
        }
    }
    offsets
}

/// A lane's offset in private memory before the sum wraps. Since gfx12 registers are signed;
/// before, hardware expects them to be unsigned, and their sum must not wrap (LLVM,
/// `isFlatScratchBaseLegal`, `hasSignedScratchOffsets`).
pub fn exact_private_offset(wave: &Wave, op: &Op, space: Space, Lane(lane): Lane) -> i64 {
    let is_signed = wave.machine.generation >= Generation::Gfx12;
    let number = |word: u32| if is_signed { i64::from(word as i32) } else { i64::from(word) };
    let base = match op.sources[2].words[0] {
        Word::Constant(_) => 0,
        word => number(scalar_word(wave, word)),
    };
    let shift = match space {
        Space::ScaledScratch { shift } => shift,
        _ => 0,
    };
    base + op.immediate + (number(address_word(wave, op, 0, lane.into())) << shift)
}

/// Operands of a buffer address.
pub struct BufferOperands {
    /// Record index of each lane; zeros if the instruction has no index.
    pub indices: Row,
    /// Offset register of each lane; zeros if the instruction has none.
    registers: Row,
    /// Immediate offset.
    immediate: u32,
}

impl BufferOperands {
    /// Reads the operands of an instruction.
    #[inline(always)]
    pub fn of(wave: &Wave, op: &Op, has_offset: bool, has_index: bool) -> BufferOperands {
        let row = |is_there: bool, word: usize| match op.sources[0].words[word] {
            Word::Row(row) if is_there => *wave.row(row),
            _ => Row::ZERO,
        };
        BufferOperands {
            indices: row(has_index, 0),
            registers: row(has_offset, usize::from(has_index)),
            immediate: op.immediate as u32,
        }
    }

    /// Offsets of the lanes, in 32 bits, wrapping; `None` if one needs more bits.
    #[inline(always)]
    pub fn offsets(&self, buffer: &Buffer, active: &Row) -> Option<Row> {
        let mut offsets = Row::ZERO;
        let mut carried = 0;
        for lane in 0..LANES {
            let sum = self.registers.0[lane].wrapping_add(self.immediate);
            carried |= u32::from(sum < self.immediate) & active.0[lane];
            offsets.0[lane] = sum;
        }
        (carried == 0 || !buffer.is_wide).then_some(offsets)
    }

    /// Index and offset of a lane.
    pub fn of_lane(&self, buffer: &Buffer, Lane(lane): Lane) -> (u32, u64) {
        let lane = usize::from(lane);
        (self.indices.0[lane], buffer.offset(self.immediate, self.registers.0[lane]))
    }
}

/// LDS address of a lane's element in moves between memory and LDS: M0 plus the instruction's
/// offset, plus four bytes per lane, or 16 if the element is longer (ISA manuals, "Memory buffer
/// load to LDS"). As many bits of M0 count as an LDS address needs: 16, as the manuals say, except
/// on gfx950, whose LDS is larger.
///
/// gfx1250 also has the address in a register, to which the same offset is added (LLVM's intrinsics
/// `llvm.amdgcn.global.load.async.to.lds`: the offset applies to both addresses).
pub fn lds_place(wave: &Wave, op: &Op, lane: Lane, bytes: usize) -> u32 {
    if let Some(row) = op.sources[1].row() {
        return wave.row(row).0[usize::from(lane.0)].wrapping_add(op.immediate as u32);
    }
    let base = wave.scalar(ScalarIndex::M0) & (wave.machine.lds_bytes.next_power_of_two() - 1);
    let apart = if bytes > 4 { 16 } else { 4 };
    base.wrapping_add(op.immediate as u32).wrapping_add(u32::from(lane.0) * apart)
}
