//! Hazards of gfx1250 and gfx1251: matrix and transcendental operations execute next to other vector
//! operations, and VALU instructions, not wait states, keep them apart.
//!
//! These processors have neither hazards of scalar registers that vector operations read late, nor one of
//! released registers. LLVM 22 pads `s_setreg` only where it writes the lowest bit of MODE alone, and dual
//! instructions only where they read a register, not where they overwrite one.

use super::gfx10::PERMLANE_AFTER_COMPARE;
use super::gfx11::WMMA_RESULT;
use super::group::*;
use super::matrix::{COEXECUTED_2, COEXECUTED_4, COEXECUTED_8, XDL_WMMA};
use super::{Condition, Expiry, Hazard, Registers, mitigated, side};

/// gfx1250 and gfx1251.
pub(super) const GFX125: &[&[Hazard]] = &[
    PERMLANE_AFTER_COMPARE,
    WMMA_RESULT,
    AFTER_WMMA_OF_2,
    AFTER_WMMA_OF_4,
    AFTER_WMMA_OF_8,
    AFTER_TRANS,
    SCRATCH_BASE,
    MODE_WRITE,
    STATUS_READ,
    ASYNC_BARRIER,
];

/// Hazards after a matrix operation that executes next to `valu` further vector operations.
macro_rules! after_wmma {
    ($table:ident: $trigger:ident, $valu:literal $valu_nops:literal, $wmma:literal $wmma_nops:literal) => {
        #[rustfmt::skip]
        const $table: &[Hazard] = &[
            mitigated(|_| $valu_nops.into(), &[Expiry { group: VALU, count: $valu }],
                concat!("WMMA of ", $valu, " writes a VGPR, VALU reads it"),
                side($trigger, Registers::VectorsWritten), side(COEXECUTING, Registers::VectorsRead),
                Condition::Overlap),
            mitigated(|_| $valu_nops.into(), &[Expiry { group: VALU, count: $valu }],
                concat!("WMMA of ", $valu, " writes a VGPR, VALU overwrites it"),
                side($trigger, Registers::VectorsWritten), side(COEXECUTING_SINGLE, Registers::VectorsWritten),
                Condition::Overlap),
            mitigated(|_| $valu_nops.into(), &[Expiry { group: VALU, count: $valu }],
                concat!("WMMA of ", $valu, " reads a VGPR as A or B, VALU overwrites it"),
                side($trigger, Registers::SrcAB), side(COEXECUTING_SINGLE, Registers::VectorsWritten),
                Condition::Overlap),
            mitigated(|_| $wmma_nops.into(), &[Expiry { group: VALU, count: $wmma }],
                concat!("WMMA of ", $valu, " writes a VGPR, WMMA reads it as A or B"),
                side($trigger, Registers::VectorsWritten), side(XDL_WMMA, Registers::SrcAB),
                Condition::Overlap),
        ];
    };
}

after_wmma!(AFTER_WMMA_OF_2: COEXECUTED_2, 2 "v_nop\nv_nop", 3 "v_nop\nv_nop\nv_nop");
after_wmma!(AFTER_WMMA_OF_4: COEXECUTED_4,
    4 "v_nop\nv_nop\nv_nop\nv_nop", 5 "v_nop\nv_nop\nv_nop\nv_nop\nv_nop");
after_wmma!(AFTER_WMMA_OF_8: COEXECUTED_8,
    8 "v_nop\nv_nop\nv_nop\nv_nop\nv_nop\nv_nop\nv_nop\nv_nop",
    9 "v_nop\nv_nop\nv_nop\nv_nop\nv_nop\nv_nop\nv_nop\nv_nop\nv_nop");

#[rustfmt::skip]
const AFTER_TRANS: &[Hazard] = &[
    mitigated(|_| "v_nop".into(), &[Expiry { group: VALU, count: 1 }],
        "a transcendental operation writes a VGPR, other VALU reads it",
        side(TRANS, Registers::VectorsWritten), side(NOT_TRANS, Registers::VectorsRead), Condition::Overlap),
    mitigated(|_| "v_nop".into(), &[Expiry { group: VALU, count: 1 }],
        "a transcendental operation reads a VGPR, other VALU overwrites it",
        side(TRANS, Registers::VectorsRead), side(NOT_TRANS_SINGLE, Registers::VectorsWritten), Condition::Overlap),
];

/// LLVM's `hasScratchBaseForwardingHazard`.
#[rustfmt::skip]
const SCRATCH_BASE: &[Hazard] = &[
    mitigated(|_| SCALAR_RESULTS.into(), SCALAR_RESULTS_ARRIVED,
        "s102 is written, the low half of the base of private memory is read",
        side(WRITES_S102, Registers::None), side(READS_SCRATCH_BASE_LO, Registers::None), Condition::Always),
    mitigated(|_| SCALAR_RESULTS.into(), SCALAR_RESULTS_ARRIVED,
        "s103 is written, the high half of the base of private memory is read",
        side(WRITES_S103, Registers::None), side(READS_SCRATCH_BASE_HI, Registers::None), Condition::Always),
];

const SCALAR_RESULTS: &str = "s_wait_alu depctr_sa_sdst(0) depctr_va_sdst(0)";

const SCALAR_RESULTS_ARRIVED: &[Expiry] =
    &[Expiry { group: SDST_0, count: 1 }, Expiry { group: WRITES_SGPR, count: 10 }];

#[rustfmt::skip]
const MODE_WRITE: &[Hazard] = &[
    mitigated(|_| "v_nop\nv_nop".into(), &[Expiry { group: V_NOP, count: 2 }],
        "s_setreg of the lowest bit of MODE after an instruction other than v_nop",
        side(NOT_V_NOP, Registers::None), side(SETS_MODE_BIT, Registers::None), Condition::Always),
];

#[rustfmt::skip]
const STATUS_READ: &[Hazard] = &[
    mitigated(|_| "s_wait_alu 0".into(), &[Expiry { group: WAITS_FOR_ALU, count: 1 }],
        "s_getreg of the status or of exceptions without a wait for all pipelines",
        side(NOT_WAIT_FOR_ALU, Registers::None), side(GETS_STATUS, Registers::None), Condition::Always),
];

/// LLVM's `hasDsAtomicAsyncBarrierArriveB64PipeBug`.
#[rustfmt::skip]
const ASYNC_BARRIER: &[Hazard] = &[
    mitigated(|_| "s_wait_alu depctr_vm_vsrc(0)".into(), &[Expiry { group: VM_VSRC_0, count: 1 }],
        "ds_atomic_async_barrier_arrive without a wait for the sources of memory instructions",
        side(NOT_VM_VSRC_0, Registers::None), side(ASYNC_ARRIVE, Registers::None), Condition::Always),
    mitigated(|_| "s_wait_alu depctr_vm_vsrc(0)".into(), &[Expiry { group: VM_VSRC_0, count: 1 }],
        "an instruction after ds_atomic_async_barrier_arrive without a wait for its sources",
        side(ASYNC_ARRIVE, Registers::None), side(NOT_VM_VSRC_0, Registers::None), Condition::Always),
];
