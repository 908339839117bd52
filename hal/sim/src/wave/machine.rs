//! What a wave executes by: facts of its target and of its size, looked up when a module is
//! loaded and when a wave is launched.
//!
//! A wave of 32 lanes has rows of 64 like any other, and the upper half of EXEC is always zero.
//! So what is done lane by lane needs to know nothing of the size; only where lane masks are
//! written to scalar registers, and where lanes are counted or named, the two differ.

use super::registers::{RowIndex, ScalarIndex};
use flipwave_isa::{AccVgprs, FlatScratch, Float8, Generation, LaneMask, Register, Target};

/// A target, a wave size, and where in the file of vector registers AccVGPRs begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The target's generation.
    pub generation: Generation,
    /// Lanes of a wave: 32 or 64.
    pub lanes: u8,
    /// Lanes within which `ds_permute_b32` exchanges data.
    pub permute_lanes: u8,
    /// What 8-bit floating-point operands are.
    pub float8: Float8,
    /// Bytes of LDS that a workgroup can have.
    pub lds_bytes: u32,
    /// Where FLAT_SCRATCH is kept.
    pub flat_scratch: ScalarIndex,
    /// The row of the first AccVGPR: the kernel's ACCUM_OFFSET where one file has all, so that
    /// VGPRs and AccVGPRs that are the same register are the same row.
    pub accumulation: RowIndex,
    /// Whether all lanes of all waves share the flat addresses of private memory.
    pub has_global_scratch: bool,
    /// Whether `s_setreg_imm32_b32` sets the high bits of vector registers whatever field it writes.
    pub setreg_sets_banks: bool,
    /// Whether what loads a half of a register makes the other half zero.
    pub loads_whole_registers: bool,
}

impl Machine {
    /// The facts of a target for waves of `lanes` lanes.
    pub fn new(target: &Target, lanes: u8) -> Machine {
        Machine {
            generation: target.generation(),
            lanes,
            permute_lanes: target.permute_lanes(lanes),
            float8: target.float8(),
            lds_bytes: target.lds_bytes(),
            flat_scratch: match target.flat_scratch() {
                FlatScratch::Registers => ScalarIndex::FLAT_SCRATCH,
                FlatScratch::HardwareRegisters | FlatScratch::Architected => {
                    ScalarIndex::HIDDEN_FLAT_SCRATCH
                }
            },
            has_global_scratch: target.has_globally_addressable_scratch(),
            setreg_sets_banks: target.setreg_sets_vgpr_msb(),
            loads_whole_registers: target.d16_loads_zero_unused_bits(),
            accumulation: match target.acc_vgprs() {
                AccVgprs::None => RowIndex(target.max_vgprs()),
                AccVgprs::Separate | AccVgprs::Unified => RowIndex::UPPER_HALF,
            },
        }
    }

    /// The same for kernels whose AccVGPRs begin elsewhere.
    pub fn with_accumulation(self, accumulation: RowIndex) -> Machine {
        Machine { accumulation, ..self }
    }

    /// The ACCUM_OFFSET if VGPRs of higher numbers are AccVGPRs.
    pub fn accum_offset(self) -> Option<u16> {
        (self.accumulation < RowIndex::UPPER_HALF).then_some(self.accumulation.0)
    }

    /// The row of a vector register.
    pub fn row(self, register: Register) -> Option<RowIndex> {
        match register {
            Register::AccVgpr(_) => RowIndex::nominal(register).map(|row| self.place(row)),
            _ => RowIndex::nominal(register),
        }
    }

    /// Storage of a scalar register; `None` for other registers.
    pub fn scalar(self, register: Register) -> Option<ScalarIndex> {
        match register {
            Register::FlatScratchLo => Some(self.flat_scratch),
            Register::FlatScratchHi => Some(ScalarIndex(self.flat_scratch.0 + 1)),
            // From gfx10 on, SGPRs have these operand numbers.
            Register::XnackMaskLo | Register::XnackMaskHi
                if self.generation >= Generation::Gfx10 =>
            {
                None
            }
            _ => ScalarIndex::of(register),
        }
    }

    /// Where a row is whose number is nominal: that of an AccVGPR where these begin in the upper half.
    pub fn place(self, nominal: RowIndex) -> RowIndex {
        match nominal.0.checked_sub(RowIndex::UPPER_HALF.0) {
            Some(number) => self.accumulation.plus(number),
            None => nominal,
        }
    }

    /// All lanes of a wave.
    #[inline(always)]
    pub fn all_lanes(self) -> LaneMask {
        LaneMask(u64::MAX >> (64 - self.lanes))
    }

    /// Where a lane-mask result goes whose lowest word goes to `low`: to the next register as
    /// well only if a wave has more than 32 lanes.
    pub fn mask_destination(self, low: ScalarIndex) -> [ScalarIndex; 2] {
        let one_word = self.lanes == 32 || low == ScalarIndex::DROPPED;
        [low, if one_word { ScalarIndex::DROPPED } else { ScalarIndex(low.0 + 1) }]
    }
}

impl Default for Machine {
    /// Waves of 64 lanes of gfx90a.
    fn default() -> Machine {
        Machine {
            generation: Generation::Gfx90a,
            lanes: 64,
            permute_lanes: 64,
            float8: Float8::Ocp,
            lds_bytes: 64 << 10,
            flat_scratch: ScalarIndex::FLAT_SCRATCH,
            accumulation: RowIndex::UPPER_HALF,
            has_global_scratch: false,
            setreg_sets_banks: false,
            loads_whole_registers: true,
        }
    }
}
