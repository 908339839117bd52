//! Expert scheduling mode of gfx12: the hardware no longer resolves dependences between vector arithmetic
//! and memory through vector registers, so the program needs `s_wait_alu` (LLVM, `SIInsertWaitcnts`,
//! `IsExpertMode`). The hardware still resolves dependences between two vector operations.

use crate::{Class, Encoding, Family, Inst, Opcode, Operand};

/// Number of the hardware register SCHED_MODE.
pub const SCHED_MODE: i64 = 26;

/// Value of bits 1:0 of SCHED_MODE that enables the mode.
pub const EXPERT: u32 = 2;

/// An execution pipe: its operations complete in order among themselves and in any order relative to other
/// pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pipe {
    /// Vector arithmetic of the core and side units.
    Core,
    /// Double-precision arithmetic.
    Double,
    /// Transcendental operations.
    Transcendental,
    /// Matrix multiplication.
    Matrix,
    /// Flat, global and private memory.
    Flat,
    /// LDS.
    Lds,
    /// Buffers and images.
    Buffer,
}

impl Pipe {
    /// Number of pipes.
    pub const COUNT: usize = 7;

    /// The pipe of an instruction; `None` for instructions that `s_wait_alu` does not count.
    pub fn of(inst: &Inst) -> Option<Pipe> {
        let operation = inst.operation;
        match (inst.class(), inst.encoding) {
            (Class::Matrix, _) => Some(Pipe::Matrix),
            (Class::Valu, _) if operation.is(Family::Wmma) || operation.is(Family::SparseWmma) => {
                Some(Pipe::Matrix)
            }
            (Class::Valu, _) if operation.is(Family::Transcendental) => Some(Pipe::Transcendental),
            (Class::Valu, _) if operation.is(Family::AnyF64) && !operation.is(Family::CoreF64) => {
                Some(Pipe::Double)
            }
            (Class::Valu, _) => Some(Pipe::Core),
            // These instructions encode their own waits.
            (Class::Lds, _)
                if matches!(operation.opcode(), Opcode::LdsDirectLoad | Opcode::LdsParamLoad) =>
            {
                None
            }
            (Class::Lds, _) => Some(Pipe::Lds),
            (Class::Vmem, Encoding::Flat | Encoding::Global | Encoding::Scratch) => {
                Some(Pipe::Flat)
            }
            (Class::Vmem | Class::Image, _) => Some(Pipe::Buffer),
            _ => None,
        }
    }

    /// Returns `true` for vector arithmetic, which `va_vdst` counts until its results are written. `vm_vsrc`
    /// counts memory instructions until their sources are read.
    pub fn is_valu(self) -> bool {
        matches!(self, Pipe::Core | Pipe::Double | Pipe::Transcendental | Pipe::Matrix)
    }
}

/// The counts of an `s_wait_alu`, which waits until at most this many instructions are pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AluWait {
    /// Vector operations with unwritten results; `None` if the field has its maximum value and does not
    /// wait.
    pub va_vdst: Option<u8>,
    /// Memory instructions with unread vector sources; `None` as for `va_vdst`.
    pub vm_vsrc: Option<u8>,
}

impl AluWait {
    /// The counts of an instruction; `None` unless it is `s_wait_alu`.
    pub fn of(inst: &Inst) -> Option<AluWait> {
        let field = inst.immediate.filter(|_| inst.operation.opcode() == Opcode::SWaitcntDepctr)?;
        let count = |position: u32, max: u8| {
            let count = (field >> position) as u8 & max;
            (count < max).then_some(count)
        };
        Some(AluWait { va_vdst: count(12, 15), vm_vsrc: count(2, 7) })
    }
}

/// The position and mask of the bits of SCHED_MODE that an instruction writes; `None` if it does not write
/// SCHED_MODE.
pub fn sched_mode_bits(inst: &Inst) -> Option<(u32, u32)> {
    let is_write = matches!(inst.operation.opcode(), Opcode::SSetreg | Opcode::SSetregImm32);
    let field = inst.immediate.filter(|field| is_write && field & 63 == SCHED_MODE)?;
    let (position, width) = ((field >> 6 & 31) as u32, (field >> 11 & 31) as u32 + 1);
    Some((position, (((1u64 << width) - 1) as u32) << position))
}

/// Returns `true` if an instruction may enable expert scheduling mode.
pub fn may_enable(inst: &Inst) -> bool {
    let Some((position, mask)) = sched_mode_bits(inst) else { return false };
    match inst.sources().find_map(Operand::constant_bits) {
        Some(value) if inst.operation.opcode() == Opcode::SSetregImm32 => {
            (value as u32) << position & mask & 3 != 0
        }
        _ => mask & 3 != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::inst;

    #[test]
    fn pipes_match_llvm() {
        for (line, pipe) in [
            ("v_mov_b32 v0, v1", Some(Pipe::Core)),
            ("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v3, v2", Some(Pipe::Core)),
            ("v_add_f64 v[0:1], v[2:3], v[4:5]", Some(Pipe::Core)),
            ("v_cvt_f64_i32 v[0:1], v2", Some(Pipe::Core)),
            ("v_fma_f64 v[0:1], v[2:3], v[4:5], v[4:5]", Some(Pipe::Double)),
            ("v_cvt_i32_f64 v0, v[2:3]", Some(Pipe::Double)),
            ("v_rcp_f64 v[0:1], v[2:3]", Some(Pipe::Transcendental)),
            ("v_wmma_f32_16x16x16_f16 v[0:7], v[20:23], v[24:27], v[0:7]", Some(Pipe::Matrix)),
            ("global_load_b32 v0, v1, s[2:3]", Some(Pipe::Flat)),
            ("ds_load_b32 v0, v1", Some(Pipe::Lds)),
            ("buffer_load_b32 v0, off, s[4:7], null", Some(Pipe::Buffer)),
            ("ds_direct_load v0", None),
            ("s_mov_b32 s0, 0", None),
        ] {
            assert_eq!(Pipe::of(&inst("gfx1201", line)), pipe, "{line}");
        }
    }

    #[test]
    fn wait_fields_match_the_assembler() {
        for (line, va_vdst, vm_vsrc) in [
            ("s_wait_alu depctr_va_vdst(3)", Some(3), None),
            ("s_wait_alu depctr_vm_vsrc(2)", None, Some(2)),
            ("s_wait_alu depctr_va_vdst(0) depctr_vm_vsrc(0)", Some(0), Some(0)),
            ("s_wait_alu depctr_sa_sdst(0)", None, None),
        ] {
            let expected = Some(AluWait { va_vdst, vm_vsrc });
            assert_eq!(AluWait::of(&inst("gfx1201", line)), expected, "{line}");
        }
        assert_eq!(AluWait::of(&inst("gfx1201", "s_nop 0")), None);
    }

    #[test]
    fn instructions_that_may_enable_the_mode_are_recognized() {
        for (line, expected) in [
            ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2", true),
            ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 0", false),
            ("s_setreg_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), s0", true),
            ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 2, 1), 1", false),
            ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 2), 2", false),
        ] {
            assert_eq!(may_enable(&inst("gfx1201", line)), expected, "{line}");
        }
    }
}
