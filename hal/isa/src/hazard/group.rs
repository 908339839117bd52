//! Kinds of instructions that hazards are about.

use crate::{Class, Encoding, Inst, Register};
use std::fmt;

/// A kind of instruction.
#[derive(Clone, Copy)]
pub struct Group {
    name: &'static str,
    member: fn(&Inst) -> bool,
}

impl Group {
    /// What the manual would call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether `inst` is of this kind.
    pub fn contains(&self, inst: &Inst) -> bool {
        (self.member)(inst)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn group(name: &'static str, member: fn(&Inst) -> bool) -> Group {
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
pub(super) const DPP: Group = group("DPP", |inst| inst.encoding == Encoding::Dpp);
pub(super) const DIV_FMAS: Group =
    group("v_div_fmas", |inst| inst.operation.name().starts_with("v_div_fmas_"));
pub(super) const LANE_ACCESS: Group = group("v_readlane or v_writelane", |inst| {
    matches!(inst.operation.name(), "v_readlane_b32" | "v_writelane_b32")
});
pub(super) const VMEM: Group = group("VMEM", |inst| inst.class() == Class::Vmem);
pub(super) const MEMORY: Group = group("VMEM or LDS", is_memory);
pub(super) const MEMORY_OR_EXPORT: Group =
    group("VMEM, LDS or export", |inst| is_memory(inst) || inst.encoding == Encoding::Export);
pub(super) const MEMORY_OR_VALU: Group = group("VALU other than MFMA, VMEM or LDS", |inst| {
    inst.class() == Class::Valu || is_memory(inst) || inst.encoding == Encoding::Export
});
pub(super) const WIDE_STORE: Group = group("store of more than 64 bits", is_wide_store);
pub(super) const SET_REGISTER: Group =
    group("s_setreg", |inst| inst.operation.name().starts_with("s_setreg"));
pub(super) const GET_REGISTER: Group =
    group("s_getreg", |inst| inst.operation.name().starts_with("s_getreg"));
pub(super) const SALU_WRITES_M0: Group =
    group("SALU that writes M0", |inst| inst.class() == Class::Salu && writes(inst, Register::M0));
pub(super) const USES_M0: Group = group(
    "s_sendmsg, s_ttracedata, GDS, s_movrel, LDS add-TID, LDS direct or a load to LDS",
    uses_m0,
);
pub(super) const DOT: Group = group("DOT", is_dot);
pub(super) const FMA_F64: Group = group("v_fma_f64 or v_fmac_f64", |inst| {
    matches!(inst.operation.name(), "v_fma_f64" | "v_fmac_f64")
});
pub(super) const MATRIX: Group = group("MFMA", |inst| inst.class() == Class::Matrix);
pub(super) const DGEMM: Group = group("double-precision MFMA", is_dgemm);
pub(super) const DGEMM_4X4: Group =
    group("v_mfma_f64_4x4x4", |inst| is_dgemm(inst) && shape(inst) == Some("4x4"));
pub(super) const DGEMM_16X16: Group =
    group("v_mfma_f64_16x16x4", |inst| is_dgemm(inst) && shape(inst) == Some("16x16"));
pub(super) const SGEMM: Group = group("MFMA other than double precision", |inst| {
    inst.class() == Class::Matrix && !is_dgemm(inst)
});
pub(super) const SGEMM_2_PASSES: Group =
    group("MFMA of 2 passes (4x4)", |inst| is_sgemm(inst, "4x4"));
pub(super) const SGEMM_8_PASSES: Group =
    group("MFMA of 8 passes (16x16)", |inst| is_sgemm(inst, "16x16"));
pub(super) const SGEMM_16_PASSES: Group =
    group("MFMA of 16 passes (32x32)", |inst| is_sgemm(inst, "32x32"));

fn writes(inst: &Inst, register: Register) -> bool {
    inst.writes.iter().any(|range| range.contains(register))
}

fn is_valu(inst: &Inst) -> bool {
    matches!(inst.class(), Class::Valu | Class::Matrix)
}

fn is_memory(inst: &Inst) -> bool {
    matches!(inst.class(), Class::Vmem | Class::Lds)
}

fn is_dot(inst: &Inst) -> bool {
    inst.operation.name().starts_with("v_dot")
}

fn is_dgemm(inst: &Inst) -> bool {
    inst.operation.name().starts_with("v_mfma_f64_")
}

fn is_sgemm(inst: &Inst, wanted: &str) -> bool {
    inst.class() == Class::Matrix && !is_dgemm(inst) && shape(inst) == Some(wanted)
}

/// Rows and columns of a matrix operation: `16x16` of `v_mfma_f32_16x16x4f32`. The number of
/// passes follows from them.
fn shape(inst: &Inst) -> Option<&'static str> {
    let sizes = inst.operation.name().strip_prefix("v_mfma_")?.split('_').nth(1)?;
    ["4x4", "16x16", "32x32"].into_iter().find(|shape| sizes.starts_with(shape))
}

/// Buffer stores with a scalar offset register read their data in time.
fn is_wide_store(inst: &Inst) -> bool {
    let has_offset_register = matches!(inst.encoding, Encoding::Mubuf | Encoding::Mtbuf)
        && inst
            .sources()
            .last()
            .is_some_and(|offset| matches!(offset.value, crate::Value::Register(_)));
    inst.class() == Class::Vmem
        && inst.flags.stores
        && !has_offset_register
        && super::part::stored(inst).is_some_and(|data| data.words > 2)
}

fn uses_m0(inst: &Inst) -> bool {
    let name = inst.operation.name();
    inst.modifiers.gds
        || inst.modifiers.lds
        || inst.reads.iter().any(|range| range.first == Register::LdsDirect)
        || name.contains("_addtid")
        || ["s_sendmsg", "s_ttracedata", "s_movrel", "v_interp_", "ds_gws_", "ds_ordered_count"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
