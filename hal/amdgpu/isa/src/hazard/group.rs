//! Groups of instructions that hazards involve.

use crate::{
    Class, DataType, Encoding, Family, Inst, MemoryKind, Modifiers, Opcode, Register,
    RegisterRange, SdwaSelect, Sgpr, Value,
};
use std::fmt;

/// A group of instructions, defined by a predicate.
#[derive(Clone, Copy)]
pub struct Group {
    name: &'static str,
    member: fn(&Inst) -> bool,
}

impl Group {
    /// The name of the group, in the terms of the ISA documents.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns `true` if `inst` is in the group.
    pub fn contains(&self, inst: &Inst) -> bool {
        (self.member)(inst)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub(super) const fn group(name: &'static str, member: fn(&Inst) -> bool) -> Group {
    Group { name, member }
}

pub(super) const ANY: Group = group("any instruction", |_| true);
pub(super) const VALU: Group = group("VALU", is_valu);
pub(super) const VALU_WRITES_EXEC: Group =
    group("VALU that writes EXEC", |inst| is_valu(inst) && writes(inst, Register::ExecLo));
pub(super) const VALU_WRITES_VCC: Group =
    group("VALU that writes VCC", |inst| is_valu(inst) && writes(inst, Register::VccLo));
pub(super) const VALU_READS_ZERO_FLAG: Group =
    group("VALU that reads VCCZ or EXECZ as data", |inst| {
        is_valu(inst)
            && inst
                .reads
                .iter()
                .any(|range| matches!(range.first, Register::Vccz | Register::Execz))
    });
pub(super) const VALU_WRITES_FLAGGED: Group = group("VALU that writes VCC or EXEC", |inst| {
    is_valu(inst) && (writes(inst, Register::VccLo) || writes(inst, Register::ExecLo))
});
pub(super) const NOT_MATRIX: Group =
    group("VALU other than MFMA", |inst| inst.class() == Class::Valu);
pub(super) const NOT_MATRIX_NOR_DOT: Group =
    group("VALU other than MFMA and DOT", |inst| inst.class() == Class::Valu && !is_dot(inst));
pub(super) const NOT_MATRIX_WRITES_EXEC: Group = group("VALU that writes EXEC", |inst| {
    inst.class() == Class::Valu && writes(inst, Register::ExecLo)
});
pub(super) const TRANS: Group = group("transcendental VALU", is_trans);
pub(super) const NOT_TRANS: Group =
    group("VALU that is not transcendental", |inst| is_valu(inst) && !is_trans(inst));
pub(super) const WRITES_PART: Group =
    group("VALU that writes a part of a register, or is packed", writes_part);
pub(super) const WRITES_PART_NOT_PACKED: Group =
    group("VALU that writes a part of a register", |inst| {
        inst.encoding != Encoding::Vop3p && writes_part(inst)
    });
pub(super) const LANE_READ: Group = group("v_readlane or v_readfirstlane", reads_lane);
pub(super) const SINGLE_LANE: Group = group("v_readlane, v_readfirstlane or v_writelane", |inst| {
    reads_lane(inst) || inst.operation.opcode() == Opcode::VWritelane
});
pub(super) const DPP: Group = group("DPP", |inst| inst.encoding == Encoding::Dpp);
pub(super) const DIV_FMAS: Group =
    group("v_div_fmas", |inst| inst.operation.opcode() == Opcode::VDivFmas);
pub(super) const LANE_ACCESS: Group = group("v_readlane or v_writelane", |inst| {
    matches!(inst.operation.opcode(), Opcode::VReadlane | Opcode::VWritelane)
});
pub(super) const VMEM: Group = group("VMEM", is_vmem);
pub(super) const MEMORY: Group = group("VMEM or LDS", is_memory);
pub(super) const MEMORY_OR_EXPORT: Group =
    group("VMEM, LDS or export", |inst| is_memory(inst) || inst.encoding == Encoding::Export);
pub(super) const MEMORY_OR_VALU: Group = group("VALU other than MFMA, VMEM or LDS", |inst| {
    inst.class() == Class::Valu || is_memory(inst) || inst.encoding == Encoding::Export
});
pub(super) const WIDE_STORE: Group = group("store of more than 64 bits", is_wide_store);
pub(super) const SET_REGISTER: Group =
    group("s_setreg", |inst| inst.operation.is(Family::SetRegister));
pub(super) const GET_REGISTER: Group =
    group("s_getreg", |inst| inst.operation.is(Family::GetRegister));
pub(super) const SALU_WRITES_M0: Group =
    group("SALU that writes M0", |inst| inst.class() == Class::Salu && writes(inst, Register::M0));
pub(super) const USES_M0: Group = group(
    "s_sendmsg, s_ttracedata, GDS, s_movrel, LDS add-TID, LDS direct or a load to LDS",
    uses_m0,
);
pub(super) const DOT: Group = group("DOT", is_dot);
pub(super) const FMA_F64: Group =
    group("v_fma_f64 or v_fmac_f64", |inst| inst.operation.opcode() == Opcode::VFmaF64);
pub(super) const ACC_READ: Group =
    group("v_accvgpr_read", |inst| inst.operation.opcode() == Opcode::VAccvgprRead);
pub(super) const ACC_WRITE: Group =
    group("v_accvgpr_write", |inst| inst.operation.opcode() == Opcode::VAccvgprWrite);
pub(super) const ACC_MOVE: Group = group("v_accvgpr_read or v_accvgpr_write", is_acc_move);
pub(super) const NOT_ACC: Group = group("VALU other than MFMA and moves of AccVGPRs", |inst| {
    inst.class() == Class::Valu && !is_acc_move(inst)
});
pub(super) const MATRIX_OR_ACC_WRITE: Group = group("MFMA or v_accvgpr_write", |inst| {
    inst.class() == Class::Matrix || inst.operation.opcode() == Opcode::VAccvgprWrite
});
pub(super) const COMPARE_WRITES_EXEC: Group = group("v_cmpx", |inst| {
    inst.operation.is(Family::CompareWritesExec) && writes(inst, Register::ExecLo)
});
pub(super) const PERMLANE: Group = group("v_permlane", |inst| inst.operation.is(Family::Permlane));
pub(super) const VALU_NOT_NOP: Group =
    group("VALU other than v_nop", |inst| is_valu(inst) && inst.operation.opcode() != Opcode::VNop);
pub(super) const VALU_WRITES_SCALAR: Group = group("VALU that writes a scalar register", |inst| {
    is_valu(inst) && !reads_lane(inst) && writes_scalar(inst)
});
pub(super) const SALU_WRITES_EXEC: Group =
    group("SALU that writes EXEC", |inst| is_salu(inst) && writes(inst, Register::ExecLo));
pub(super) const BRANCH: Group = group("a branch", |inst| inst.flags.branch);
/// Image instructions with non-sequential addresses (NSA) that have at least four words.
pub(super) const NSA_IMAGE: Group = group("image instruction of four words", |inst| {
    inst.encoding == Encoding::Mimg && inst.size >= 16
});
pub(super) const BUFFER_AT_NSA_BUG_OFFSET: Group =
    group("buffer access with bit 1 or 2 of its offset set", |inst| {
        matches!(inst.encoding, Encoding::Mubuf | Encoding::Mtbuf) && inst.modifiers.offset & 6 != 0
    });
pub(super) const READS_MASK: Group = group("VALU that reads a scalar register as a mask", |inst| {
    matches!(
        inst.operation.opcode(),
        Opcode::VAddcCo
            | Opcode::VSubbCo
            | Opcode::VSubbrevCo
            | Opcode::VCndmask
            | Opcode::VDivFmas
    )
});
pub(super) const LDS_OR_VMEM: Group = group("LDS or VMEM", |inst| is_lds(inst) || is_vmem(inst));
pub(super) const WAITS_FOR_STORES: Group = group("s_waitcnt_vscnt null, 0", |inst| {
    inst.operation.opcode() == Opcode::SWaitcntVscnt
        && inst.immediate == Some(0)
        && names_null(inst)
});
pub(super) const SMEM: Group = group("SMEM", |inst| inst.class() == Class::Smem);
pub(super) const SCALAR: Group =
    group("SALU or SMEM", |inst| is_salu(inst) || inst.class() == Class::Smem);
pub(super) const READS_EXEC: Group =
    group("an instruction other than VALU that reads EXEC", |inst| {
        !is_valu(inst) && inst.reads.iter().any(|range| range.contains(Register::ExecLo))
    });
pub(super) const FP_ATOMIC: Group = group("floating-point atomic", |inst| {
    is_vmem(inst)
        && inst.memory().is_some_and(|memory| memory.kind == MemoryKind::Atomic)
        && inst.data_type() != DataType::Integer
});
pub(super) const DENORM_MODE: Group =
    group("s_denorm_mode", |inst| inst.operation.opcode() == Opcode::SDenormMode);
pub(super) const WAITS: Group = group("a wait for counters", |inst| {
    matches!(
        inst.operation.opcode(),
        Opcode::SWaitcnt
            | Opcode::SWaitcntVmcnt
            | Opcode::SWaitcntLgkmcnt
            | Opcode::SWaitcntExpcnt
            | Opcode::SWaitcntVscnt
            | Opcode::SWaitIdle
    )
});
pub(super) const WAITS_FOR_ALL: Group = group("s_waitcnt 0", |inst| {
    inst.operation.opcode() == Opcode::SWaitcnt && inst.immediate == Some(0)
});
/// Instructions after which a scalar load has read its registers, so that a vector operation may overwrite
/// them.
pub(super) const RESOLVES_SMEM_READ: Group =
    group("SALU that computes, or a wait for scalar memory", resolves_smem_read);
// Fields of `s_waitcnt_depctr` (LLVM, `DepCtr`).
pub(super) const VM_VSRC_0: Group =
    group("s_waitcnt_depctr depctr_vm_vsrc(0)", |inst| depctr(inst, 2, 0b111) == Some(0));
pub(super) const VA_VDST_0: Group =
    group("s_waitcnt_depctr depctr_va_vdst(0)", |inst| depctr(inst, 12, 0b1111) == Some(0));
pub(super) const SA_SDST_0: Group =
    group("s_waitcnt_depctr depctr_sa_sdst(0)", |inst| depctr(inst, 0, 1) == Some(0));
pub(super) const VA_SDST_0: Group =
    group("s_waitcnt_depctr depctr_va_sdst(0)", |inst| depctr(inst, 9, 0b111) == Some(0));
pub(super) const VA_VCC_0: Group =
    group("s_waitcnt_depctr depctr_va_vcc(0)", |inst| depctr(inst, 1, 1) == Some(0));
pub(super) const NOT_NOP: Group =
    group("an instruction other than s_nop", |inst| inst.operation.opcode() != Opcode::SNop);
pub(super) const DEALLOCATES: Group = group("s_sendmsg MSG_DEALLOC_VGPRS", |inst| {
    inst.operation.opcode() == Opcode::SSendmsg && inst.immediate == Some(3)
});

pub(super) const COEXECUTING: Group =
    group("VALU that is neither transcendental nor a matrix operation", |inst| {
        inst.class() == Class::Valu && !is_trans(inst)
    });
pub(super) const COEXECUTING_SINGLE: Group =
    group("VALU that is neither dual, transcendental nor a matrix operation", |inst| {
        inst.class() == Class::Valu && !is_trans(inst) && inst.encoding != Encoding::Vopd
    });
pub(super) const NOT_TRANS_SINGLE: Group =
    group("VALU that is neither dual nor transcendental", |inst| {
        is_valu(inst) && !is_trans(inst) && inst.encoding != Encoding::Vopd
    });
pub(super) const WRITES_SGPR: Group = group("SALU or VALU that writes a scalar register", |inst| {
    let is_sgpr = |range: &RegisterRange| {
        matches!(
            range.first,
            Register::Sgpr(_) | Register::VccLo | Register::VccHi | Register::ExecLo | Register::M0
        )
    };
    (is_salu(inst) || is_valu(inst)) && inst.writes.iter().any(is_sgpr)
});
pub(super) const WRITES_S102: Group =
    group("an instruction that writes s102", |inst| writes(inst, Register::Sgpr(Sgpr(102))));
pub(super) const WRITES_S103: Group =
    group("an instruction that writes s103", |inst| writes(inst, Register::Sgpr(Sgpr(103))));
pub(super) const READS_SCRATCH_BASE_LO: Group =
    group("an instruction that reads the low half of the base of private memory", |inst| {
        inst.reads.iter().any(|range| range.contains(Register::FlatScratchBaseLo))
    });
pub(super) const READS_SCRATCH_BASE_HI: Group =
    group("an instruction that reads the high half of the base of private memory", |inst| {
        let reads = |register| inst.reads.iter().any(|range| range.contains(register));
        // Both halves are named by the low one.
        let is_wide = inst
            .destinations()
            .any(|operand| matches!(operand.value, Value::Register(range) if range.words > 1));
        reads(Register::FlatScratchBaseHi) || is_wide && reads(Register::FlatScratchBaseLo)
    });
pub(super) const SDST_0: Group = group("s_wait_alu depctr_sa_sdst(0) depctr_va_sdst(0)", |inst| {
    SA_SDST_0.contains(inst) && VA_SDST_0.contains(inst)
});
pub(super) const V_NOP: Group = group("v_nop", |inst| inst.operation.opcode() == Opcode::VNop);
pub(super) const NOT_V_NOP: Group =
    group("an instruction other than v_nop", |inst| inst.operation.opcode() != Opcode::VNop);
/// Hardware register 1, one bit at position 0.
pub(super) const SETS_MODE_BIT: Group = group("s_setreg of the lowest bit of MODE", |inst| {
    inst.operation.is(Family::SetRegister) && inst.immediate == Some(1)
});
pub(super) const WAITS_FOR_ALU: Group =
    group("s_wait_alu 0", |inst| depctr(inst, 0, 0xffff) == Some(0));
pub(super) const NOT_WAIT_FOR_ALU: Group =
    group("an instruction other than s_wait_alu 0", |inst| depctr(inst, 0, 0xffff) != Some(0));
/// STATUS, STATE_PRIV, EXCP_FLAG_PRIV and EXCP_FLAG_USER (LLVM, `SIDefines.h`).
pub(super) const GETS_STATUS: Group = group("s_getreg of the status or of exceptions", |inst| {
    inst.operation.is(Family::GetRegister)
        && inst.immediate.is_some_and(|field| matches!(field & 63, 2 | 4 | 17 | 18))
});
pub(super) const NOT_VM_VSRC_0: Group =
    group("an instruction other than s_wait_alu depctr_vm_vsrc(0)", |inst| {
        depctr(inst, 2, 0b111) != Some(0)
    });
pub(super) const ASYNC_ARRIVE: Group = group("ds_atomic_async_barrier_arrive", |inst| {
    inst.operation.opcode() == Opcode::DsAtomicAsyncBarrierArrive
});

/// A field of `s_waitcnt_depctr`; `None` for other instructions.
fn depctr(inst: &Inst, position: u32, mask: i64) -> Option<i64> {
    let field = inst.immediate.filter(|_| inst.operation.opcode() == Opcode::SWaitcntDepctr)?;
    Some(field >> position & mask)
}

fn names_null(inst: &Inst) -> bool {
    inst.operands.first().is_some_and(
        |first| matches!(first.value, Value::Register(range) if range.first == Register::Null),
    )
}

pub(super) fn is_lds(inst: &Inst) -> bool {
    inst.class() == Class::Lds
}

fn resolves_smem_read(inst: &Inst) -> bool {
    match inst.operation.opcode() {
        // lgkmcnt of gfx10.
        Opcode::SWaitcnt => inst.immediate.is_some_and(|field| field >> 8 & 63 == 0),
        Opcode::SWaitcntLgkmcnt => inst.immediate == Some(0) && names_null(inst),
        Opcode::SWaitcntVscnt
        | Opcode::SWaitcntVmcnt
        | Opcode::SWaitcntExpcnt
        | Opcode::SVersion => false,
        _ => is_salu(inst) && inst.encoding != Encoding::Sopp,
    }
}

/// Returns `true` for all scalar encodings, which LLVM treats as SALU.
pub(super) fn is_salu(inst: &Inst) -> bool {
    matches!(
        inst.encoding,
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk | Encoding::Sopp
    )
}

/// Returns `true` for operations that LLVM marks as `TRANS`.
fn is_trans(inst: &Inst) -> bool {
    inst.operation.is(Family::Transcendental)
}

fn reads_lane(inst: &Inst) -> bool {
    matches!(inst.operation.opcode(), Opcode::VReadlane | Opcode::VReadfirstlane)
}

/// Returns `true` for instructions that LLVM treats as writing part of a register. They include packed
/// operations that do not read their first source from its low half only, since that modifier uses the same
/// bit.
fn writes_part(inst: &Inst) -> bool {
    let sources = inst.sources().count();
    let Modifiers { sdwa, op_sel, op_sel_hi, .. } = &inst.modifiers;
    let selects = match (sdwa, inst.encoding) {
        (Some(sdwa), _) => sdwa.destination != SdwaSelect::Dword,
        (None, Encoding::Vop3p) => {
            let has_halves = ![Family::AccVgprMove, Family::DotPackedIntegers]
                .into_iter()
                .any(|family| inst.operation.is(family));
            inst.class() == Class::Valu && has_halves && op_sel_hi.is_none_or(|bits| bits & 1 != 0)
        }
        // LLVM includes stochastic conversions to FP4 regardless of the selected byte.
        (None, _) if inst.operation.is(Family::ConvertToByte) => {
            inst.operation.is(Family::ConvertStochasticToFp4)
                || op_sel.is_some_and(|bits| bits >> 2 & 3 != 0)
        }
        (None, _) => op_sel.is_some_and(|bits| bits >> sources & 1 != 0),
    };
    is_valu(inst) && selects
}

fn writes_scalar(inst: &Inst) -> bool {
    inst.writes.iter().any(|range| !range.first.is_per_lane())
}

fn writes(inst: &Inst, register: Register) -> bool {
    inst.writes.iter().any(|range| range.contains(register))
}

pub(super) fn is_valu(inst: &Inst) -> bool {
    matches!(inst.class(), Class::Valu | Class::Matrix)
}

pub(super) fn is_memory(inst: &Inst) -> bool {
    is_vmem(inst) || inst.class() == Class::Lds
}

fn is_vmem(inst: &Inst) -> bool {
    matches!(inst.class(), Class::Vmem | Class::Image)
}

fn is_acc_move(inst: &Inst) -> bool {
    inst.operation.is(Family::AccVgprMove)
}

fn is_dot(inst: &Inst) -> bool {
    inst.operation.is(Family::Dot)
}

/// Returns `true` for stores of more than 64 bits that read their data late. Buffer stores with a scalar
/// offset register read their data in time.
fn is_wide_store(inst: &Inst) -> bool {
    let has_offset_register = matches!(inst.encoding, Encoding::Mubuf | Encoding::Mtbuf)
        && inst.sources().last().is_some_and(|offset| matches!(offset.value, Value::Register(_)));
    inst.class() == Class::Vmem
        && inst.flags.stores
        && !has_offset_register
        && super::registers::stored(inst).is_some_and(|data| data.words > 2)
}

fn uses_m0(inst: &Inst) -> bool {
    const FAMILIES: [Family; 6] = [
        Family::SendMessage,
        Family::ScalarMovrel,
        Family::Interpolate,
        Family::GlobalWaveSync,
        Family::OrderedCount,
        Family::AddTid,
    ];
    inst.modifiers.gds
        || inst.modifiers.lds
        || inst.reads.iter().any(|range| range.first == Register::LdsDirect)
        || inst.operation.opcode() == Opcode::STtracedata
        || FAMILIES.into_iter().any(|family| inst.operation.is(family))
}
