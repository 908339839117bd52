//! Register storage of a wave: vector registers with a word per lane, and scalar registers.

use flipwave_isa::{LaneMask, Register, Sgpr, Ttmp, Vgpr};
use std::ops::Range;

/// Lanes of a wave.
pub const LANES: usize = 64;

/// One vector register: a word per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct Row(pub [u32; LANES]);

impl Row {
    /// All lanes zero.
    pub const ZERO: Row = Row([0; LANES]);

    /// A row with the same word in every lane.
    #[inline(always)]
    pub fn splat(word: u32) -> Row {
        Row([word; LANES])
    }

    /// A row whose lane i has the word of the lane that `lanes` has in lane i, modulo [`LANES`].
    #[inline(always)]
    pub fn select(&self, lanes: &Row) -> Row {
        Row(lanes.0.map(|lane| self.0[lane as usize % LANES]))
    }

    /// All ones in the lanes of `mask`, zero elsewhere.
    #[inline(always)]
    pub fn expand(mask: LaneMask) -> Row {
        let mut row = Row::ZERO;
        for (lanes, byte) in row.0.as_chunks_mut().0.iter_mut().zip(mask.0.to_le_bytes()) {
            *lanes = EXPANDED[usize::from(byte)];
        }
        row
    }
}

/// Rows of eight lanes for each eight-bit mask: all ones, or zero.
static EXPANDED: [[u32; 8]; 256] = {
    let mut all = [[0; 8]; 256];
    let mut place = 0;
    while place < 8 * 256 {
        if (place / 8) >> (place % 8) & 1 != 0 {
            all[place / 8][place % 8] = u32::MAX;
        }
        place += 1;
    }
    all
};

/// Index of a vector register in a wave's file: architectural registers first, then the
/// accumulation registers, see [`Machine::accumulation`](super::machine::Machine::accumulation).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowIndex(pub u16);

impl RowIndex {
    /// The row after that of v255. Accumulation registers begin here or, in a unified file, below.
    pub const UPPER_HALF: RowIndex = RowIndex(256);
    /// Number of rows of a wave: the maximum number of registers, and two more.
    pub const COUNT: usize = Vgpr::COUNT as usize + 2;
    /// Rows that a wave's file has room for: a power of two, so that masking a row number is enough
    /// to keep it inside the file, which is cheaper than a comparison. The rows beyond
    /// [`RowIndex::COUNT`] are never used.
    pub const ROOM: usize = RowIndex::COUNT.next_power_of_two();
    /// Row outside the registers that holds the first result of a dual instruction, and results of
    /// vector operations on scalar registers.
    pub const WAITING: RowIndex = RowIndex(Vgpr::COUNT);

    /// The row of an architectural register.
    pub fn of_vgpr(register: Vgpr) -> RowIndex {
        RowIndex(register.0)
    }

    /// Row of a vector register if AccVGPRs begin in the upper half.
    pub fn nominal(register: Register) -> Option<RowIndex> {
        match register {
            Register::Vgpr(v) => Some(RowIndex::of_vgpr(v)),
            Register::AccVgpr(a) => Some(RowIndex::UPPER_HALF.plus(a.0.into())),
            _ => None,
        }
    }

    /// Number of rows of each half of the file, from its first row on, up to the end of the given
    /// ranges.
    pub fn halves(ranges: impl IntoIterator<Item = Range<usize>>) -> [u16; 2] {
        let border = usize::from(RowIndex::UPPER_HALF.0);
        let mut reached = [0; 2];
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            let lower = if range.start < border { range.end.min(border) } else { 0 };
            let halves = [lower, range.end.min(RowIndex::COUNT).saturating_sub(border)];
            reached = [0, 1].map(|half| halves[half].max(reached[half]));
        }
        reached.map(|count| count as u16)
    }

    /// Index in a wave's file, which has [`RowIndex::ROOM`] rows.
    #[inline(always)]
    pub fn slot(self) -> usize {
        usize::from(self.0) % RowIndex::ROOM
    }

    /// Index among the existing rows; out-of-range numbers share the last row.
    #[inline(always)]
    pub fn place(self) -> usize {
        usize::from(self.0).min(RowIndex::COUNT - 1)
    }

    /// The row `words` rows after this one.
    #[inline(always)]
    pub fn plus(self, words: u16) -> RowIndex {
        RowIndex(self.0 + words)
    }
}

/// Index of a 32-bit scalar operand in the encoding of gfx9 operand fields (ISA manual, "Scalar
/// operand encoding"): SGPRs, FLAT_SCRATCH, XNACK_MASK, VCC, trap registers, M0, EXEC. Since gfx10,
/// SGPRs replace FLAT_SCRATCH and XNACK_MASK. Higher indices are storage that no operand encodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScalarIndex(pub u8);

impl ScalarIndex {
    /// FLAT_SCRATCH, low half.
    pub const FLAT_SCRATCH: ScalarIndex = ScalarIndex(102);
    /// XNACK_MASK, low half.
    pub const XNACK_MASK: ScalarIndex = ScalarIndex(104);
    /// VCC, low half.
    pub const VCC: ScalarIndex = ScalarIndex(106);
    /// First trap register.
    pub const TTMP: ScalarIndex = ScalarIndex(108);
    /// M0.
    pub const M0: ScalarIndex = ScalarIndex(124);
    /// EXEC, low half.
    pub const EXEC: ScalarIndex = ScalarIndex(126);
    /// Destination of results that no register takes: up to sixteen words that nothing reads.
    pub const DROPPED: ScalarIndex = ScalarIndex(128);
    /// Low half of FLAT_SCRATCH on targets where it is not a pair of scalar operands.
    pub const HIDDEN_FLAT_SCRATCH: ScalarIndex = ScalarIndex(144);
    /// Sources of vector operations on scalar registers: up to three words.
    pub const OPERANDS: ScalarIndex = ScalarIndex(146);
    /// Result of comparisons among them.
    pub const COMPARED: ScalarIndex = ScalarIndex(149);
    /// Word of LDS that is a source operand.
    pub const LDS_DIRECT: ScalarIndex = ScalarIndex(150);
    /// `src_flat_scratch_base`, low half (gfx1250).
    pub const FLAT_SCRATCH_BASE: ScalarIndex = ScalarIndex(151);
    /// Number of scalar indices.
    pub const COUNT: usize = 256;

    /// Operand index of a scalar register; `None` for other registers. For its storage use
    /// [`Machine::scalar`](super::Machine::scalar).
    pub fn of(register: Register) -> Option<ScalarIndex> {
        let next = |index: ScalarIndex| ScalarIndex(index.0 + 1);
        Some(match register {
            Register::Sgpr(Sgpr(n)) if n < 106 => ScalarIndex(n),
            Register::FlatScratchLo => ScalarIndex::FLAT_SCRATCH,
            Register::FlatScratchHi => next(ScalarIndex::FLAT_SCRATCH),
            Register::XnackMaskLo => ScalarIndex::XNACK_MASK,
            Register::XnackMaskHi => next(ScalarIndex::XNACK_MASK),
            Register::VccLo => ScalarIndex::VCC,
            Register::VccHi => next(ScalarIndex::VCC),
            Register::Ttmp(Ttmp(n)) => ScalarIndex(ScalarIndex::TTMP.0 + n),
            Register::M0 => ScalarIndex::M0,
            Register::ExecLo => ScalarIndex::EXEC,
            Register::ExecHi => next(ScalarIndex::EXEC),
            _ => return None,
        })
    }

    /// Returns `true` for either half of EXEC.
    #[inline(always)]
    pub fn is_exec(self) -> bool {
        self.0 & !1 == ScalarIndex::EXEC.0
    }

    /// Destination of a scalar result. Writes to read-only registers (`null`) are dropped.
    pub fn of_destination(register: Register) -> ScalarIndex {
        ScalarIndex::of(register).unwrap_or(ScalarIndex::DROPPED)
    }
}

/// Mask of the lanes whose word has its highest bit set.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn mask_of(set: &Row) -> u64 {
    use std::arch::x86_64::{_mm_load_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32};
    let mut mask = 0;
    for (sixteen, words) in set.0.chunks_exact(16).enumerate() {
        // Signed saturation keeps the highest bits.
        // SAFETY: SSE2 is part of x86-64, and a row's sixteen words are 64 aligned bytes.
        let bits = unsafe {
            let four = |index: usize| _mm_load_si128(words.as_ptr().add(4 * index).cast());
            let low = _mm_packs_epi32(four(0), four(1));
            let high = _mm_packs_epi32(four(2), four(3));
            _mm_movemask_epi8(_mm_packs_epi16(low, high))
        };
        mask |= u64::from(bits as u16) << (16 * sixteen);
    }
    mask
}

/// Mask of the lanes whose word has its highest bit set.
#[cfg(not(target_arch = "x86_64"))]
pub fn mask_of(set: &Row) -> u64 {
    (0..LANES).fold(0, |mask, lane| mask | u64::from(set.0[lane] >> 31) << lane)
}

/// Writes `value` to the lanes of `row` where `mask` is all ones.
#[inline(always)]
pub fn blend(row: &mut Row, value: &Row, mask: &Row) {
    for lane in 0..LANES {
        row.0[lane] = (value.0[lane] & mask.0[lane]) | (row.0[lane] & !mask.0[lane]);
    }
}
