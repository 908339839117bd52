//! Properties of the target and the wave size that affect execution, determined when a module is
//! loaded and when a wave is launched.
//!
//! A wave of 32 lanes has rows of 64 like any other, and the upper half of EXEC is always zero, so
//! lane-by-lane code does not depend on the size. The two sizes differ only where lane masks are
//! written to scalar registers, and where lanes are counted or addressed.

use super::registers::{RowIndex, ScalarIndex};
use flipwave_isa::{AccVgprs, FlatScratch, Float8, Generation, LaneMask, Register, Target};

/// A target, a wave size, and the position of the AccVGPRs in the file of vector registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The target's generation.
    pub generation: Generation,
    /// Lanes of a wave: 32 or 64.
    pub lanes: u8,
    /// Size of the lane groups within which `ds_permute_b32` exchanges data.
    pub permute_lanes: u8,
    /// Encoding of 8-bit floating-point operands.
    pub float8: Float8,
    /// Maximum LDS bytes of a workgroup.
    pub lds_bytes: u32,
    /// Registers that hold FLAT_SCRATCH.
    pub flat_scratch: ScalarIndex,
    /// Row of the first AccVGPR: the kernel's ACCUM_OFFSET on targets with a unified file, so that
    /// a VGPR and an AccVGPR that are the same register share a row.
    pub accumulation: RowIndex,
    /// `true` if all lanes of all waves share the flat addresses of private memory.
    pub has_global_scratch: bool,
    /// `true` if `s_setreg_imm32_b32` sets the high bits of vector registers regardless of the
    /// field it writes.
    pub setreg_sets_banks: bool,
    /// `true` if loads of half a register clear the other half.
    pub loads_whole_registers: bool,
}

impl Machine {
    /// Properties of a target for waves of `lanes` lanes.
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

    /// Copy for kernels whose AccVGPRs begin at another row.
    pub fn with_accumulation(self, accumulation: RowIndex) -> Machine {
        Machine { accumulation, ..self }
    }

    /// ACCUM_OFFSET, if VGPRs with higher numbers are AccVGPRs.
    pub fn accum_offset(self) -> Option<u16> {
        (self.accumulation < RowIndex::UPPER_HALF).then_some(self.accumulation.0)
    }

    /// Row of a vector register.
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
            // Since gfx10, SGPRs have these operand numbers.
            Register::XnackMaskLo | Register::XnackMaskHi
                if self.generation >= Generation::Gfx10 =>
            {
                None
            }
            _ => ScalarIndex::of(register),
        }
    }

    /// Row with this nominal number: for an AccVGPR, nominal numbers begin in the upper half.
    pub fn place(self, nominal: RowIndex) -> RowIndex {
        match nominal.0.checked_sub(RowIndex::UPPER_HALF.0) {
            Some(number) => self.accumulation.plus(number),
            None => nominal,
        }
    }

    /// Mask of all lanes of a wave.
    #[inline(always)]
    pub fn all_lanes(self) -> LaneMask {
        LaneMask(u64::MAX >> (64 - self.lanes))
    }

    /// Destination of a lane mask whose low word is written to `low`: includes the next register
    /// only if a wave has more than 32 lanes.
    pub fn mask_destination(self, low: ScalarIndex) -> [ScalarIndex; 2] {
        let one_word = self.lanes == 32 || low == ScalarIndex::DROPPED;
        [low, if one_word { ScalarIndex::DROPPED } else { ScalarIndex(low.0 + 1) }]
    }
}

impl Default for Machine {
    /// Machine for waves of 64 lanes of gfx90a.
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
