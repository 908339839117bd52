//! Hardware bugs that a single instruction triggers. Most have an LLVM subtarget feature; a test
//! compares the affected processors with it. Bugs that involve several instructions are in the tables
//! of [`hazard`](crate::hazard). `docs/strict.md` lists both kinds.

use crate::{
    Encoding, Family, Generation, Inst, Opcode, Operand, Register, RegisterRange, Target, Value,
};

/// A hardware bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChipBug {
    /// gfx9: a scratch access with a scalar offset and a negative immediate offset faults.
    NegativeScratchOffset,
    /// gfx10.1: a scratch access with a vector offset and a negative immediate offset that is not a
    /// multiple of 4 accesses a wrong address.
    NegativeUnalignedScratchOffset,
    /// gfx908: MFMA reads a wrong value for an inline constant in SrcC.
    MfmaInlineLiteral,
    /// gfx940 to gfx942: the VOP1 form of conversions from 8-bit floats is unreliable.
    ConvertFloat8,
    /// gfx1100 to gfx1103: `v_mad_u64_u32` and `v_mad_i64_i32` write a source before they read it.
    MadIntraForwarding,
    /// gfx940 and gfx11: DOT instructions ignore `op_sel`.
    DotOpSel,
    /// gfx12: half-precision transcendental operations on scalar registers read a wrong value for an
    /// inline constant.
    ScalarTranscendentalConstant,
    /// gfx10.1: a flat access to global memory ignores the immediate offset.
    FlatSegmentOffset,
    /// gfx10.1: `s_inst_prefetch` can hang the wave.
    InstPrefetch,
    /// gfx11: a scratch access with vector and scalar offsets accesses a wrong address if adding the two
    /// lowest bits of the offsets carries.
    ScratchSwizzle,
    /// gfx1100 and gfx1102, wave32: scalar registers are not initialized if the kernel requests fewer
    /// than 16.
    UserSgprInit16,
    /// gfx1250: scalar instructions with a result of 64 bits cannot read `src_flat_scratch_base_hi`.
    ScratchBaseHigh,
}

impl ChipBug {
    /// All bugs.
    pub const ALL: [ChipBug; 12] = [
        ChipBug::NegativeScratchOffset,
        ChipBug::NegativeUnalignedScratchOffset,
        ChipBug::MfmaInlineLiteral,
        ChipBug::ConvertFloat8,
        ChipBug::MadIntraForwarding,
        ChipBug::DotOpSel,
        ChipBug::ScalarTranscendentalConstant,
        ChipBug::FlatSegmentOffset,
        ChipBug::InstPrefetch,
        ChipBug::ScratchSwizzle,
        ChipBug::UserSgprInit16,
        ChipBug::ScratchBaseHigh,
    ];

    /// LLVM's name of the bug: a subtarget feature as in `-mattr`, or a method of `GCNSubtarget`.
    pub fn llvm_name(self) -> &'static str {
        match self {
            ChipBug::NegativeScratchOffset => "negative-scratch-offset-bug",
            ChipBug::NegativeUnalignedScratchOffset => "negative-unaligned-scratch-offset-bug",
            ChipBug::MfmaInlineLiteral => "mfma-inline-literal-bug",
            ChipBug::ConvertFloat8 => "cvt-fp8-vop1-bug",
            ChipBug::MadIntraForwarding => "mad-intra-fwd-bug",
            ChipBug::DotOpSel => "hasDOTOpSelHazard",
            ChipBug::ScalarTranscendentalConstant => "hasNoF16PseudoScalarTransInlineConstants",
            ChipBug::FlatSegmentOffset => "flat-segment-offset-bug",
            ChipBug::InstPrefetch => "inst-fwd-prefetch-bug",
            ChipBug::ScratchSwizzle => "hasFlatScratchSVSSwizzleBug",
            ChipBug::UserSgprInit16 => "user-sgpr-init16-bug",
            ChipBug::ScratchBaseHigh => "hasFlatScratchHiInB64InstHazard",
        }
    }

    /// Description of the effect for reports.
    pub fn effect(self) -> &'static str {
        match self {
            ChipBug::NegativeScratchOffset => {
                "a scratch access with a scalar offset and a negative immediate offset faults"
            }
            ChipBug::NegativeUnalignedScratchOffset => {
                "a scratch access with a negative immediate offset that is not a multiple of 4 \
                 accesses a wrong address"
            }
            ChipBug::MfmaInlineLiteral => "MFMA reads a wrong value for a constant SrcC",
            ChipBug::ConvertFloat8 => {
                "the VOP1 form of this conversion is unreliable; use its SDWA or VOP3 form"
            }
            ChipBug::MadIntraForwarding => {
                "the destination overlaps a source, which is overwritten before it is read"
            }
            ChipBug::DotOpSel => "DOT instructions ignore op_sel",
            ChipBug::ScalarTranscendentalConstant => {
                "the instruction reads a wrong value for an inline constant"
            }
            ChipBug::FlatSegmentOffset => "accesses to global memory ignore the offset",
            ChipBug::InstPrefetch => "the instruction can hang the wave",
            ChipBug::ScratchSwizzle => {
                "adding the two lowest bits of the vector, scalar and immediate offsets carries, \
                 and the instruction accesses a wrong address"
            }
            ChipBug::UserSgprInit16 => {
                "scalar registers are not initialized because the kernel requests fewer than 16"
            }
            ChipBug::ScratchBaseHigh => {
                "scalar instructions with a result of 64 bits cannot read src_flat_scratch_base_hi"
            }
        }
    }

    /// Returns `true` if the target has the bug, for any wave size.
    pub fn affects(self, target: &Target) -> bool {
        let generation = target.generation();
        let processor = target.processor();
        match self {
            ChipBug::NegativeScratchOffset => {
                matches!(generation, Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940)
            }
            ChipBug::NegativeUnalignedScratchOffset
            | ChipBug::FlatSegmentOffset
            | ChipBug::InstPrefetch => target.is_gfx10_1(),
            ChipBug::MfmaInlineLiteral => processor == "gfx908",
            ChipBug::ConvertFloat8 => matches!(processor, "gfx940" | "gfx941" | "gfx942"),
            ChipBug::MadIntraForwarding => {
                processor.starts_with("gfx110") || processor == "gfx11-generic"
            }
            ChipBug::DotOpSel => matches!(generation, Generation::Gfx940 | Generation::Gfx11),
            ChipBug::ScalarTranscendentalConstant => {
                matches!(generation, Generation::Gfx12 | Generation::Gfx125)
            }
            ChipBug::ScratchSwizzle => generation == Generation::Gfx11,
            ChipBug::UserSgprInit16 => {
                matches!(processor, "gfx1100" | "gfx1102" | "gfx11-generic")
            }
            ChipBug::ScratchBaseHigh => generation == Generation::Gfx125,
        }
    }

    /// Returns the bug that an instruction triggers regardless of register contents.
    pub fn of(target: &Target, inst: &Inst) -> Option<ChipBug> {
        ChipBug::ALL.into_iter().find(|bug| bug.affects(target) && bug.is_triggered_by(inst))
    }

    fn is_triggered_by(self, inst: &Inst) -> bool {
        let is_scratch = inst.encoding == Encoding::Scratch;
        let offset = inst.modifiers.offset;
        match self {
            ChipBug::NegativeScratchOffset => is_scratch && offset < 0 && has_scalar_offset(inst),
            ChipBug::NegativeUnalignedScratchOffset => {
                is_scratch && offset < 0 && offset % 4 != 0 && vector_address(inst).is_some()
            }
            ChipBug::MfmaInlineLiteral => {
                let addend = inst.sources().nth(2);
                inst.operation.is(Family::Mfma) && addend.is_some_and(is_constant)
            }
            ChipBug::ConvertFloat8 => {
                inst.encoding == Encoding::Vop1 && inst.operation.is(Family::ConvertFromFloat8)
            }
            ChipBug::MadIntraForwarding => {
                let written = inst.destinations().next().and_then(vector_register);
                // Only the low register of a source counts: if just the high register of the addend is
                // overwritten, compilers have left it undefined.
                let low =
                    |source: &Operand| Some(RegisterRange::new(vector_register(source)?.first, 1));
                let is_overwritten = |source: &Operand| {
                    low(source).zip(written).is_some_and(|(low, written)| low.overlaps(written))
                };
                inst.operation.is(Family::Mad64) && inst.sources().any(is_overwritten)
            }
            ChipBug::DotOpSel => {
                let modifiers = &inst.modifiers;
                inst.encoding == Encoding::Vop3p
                    && inst.operation.is(Family::Dot)
                    && (modifiers.op_sel.is_some_and(|low| low != 0)
                        || modifiers.op_sel_hi.is_some_and(|high| high & 7 != 7))
            }
            ChipBug::ScalarTranscendentalConstant => {
                inst.operation.is(Family::ScalarTranscendentalF16)
                    && inst.sources().any(is_inline_constant)
            }
            ChipBug::FlatSegmentOffset => inst.encoding == Encoding::Flat && offset != 0,
            ChipBug::InstPrefetch => inst.operation.opcode() == Opcode::SInstPrefetch,
            ChipBug::ScratchBaseHigh => {
                let reads = |operand: &Operand| {
                    matches!(operand.value,
                    Value::Register(range) if range.first == Register::FlatScratchBaseHi)
                };
                let is_wide = |operand: &Operand| {
                    matches!(operand.value,
                    Value::Register(range) if !range.first.is_per_lane() && range.words == 2)
                };
                let is_scalar =
                    matches!(inst.encoding, Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopk);
                is_scalar && inst.sources().any(reads) && inst.destinations().any(is_wide)
            }
            // These depend on register contents or on the kernel.
            ChipBug::ScratchSwizzle | ChipBug::UserSgprInit16 => false,
        }
    }
}

fn is_constant(operand: &Operand) -> bool {
    is_inline_constant(operand)
        || matches!(operand.value, Value::Literal(_) | Value::WideLiteral(_))
}

fn is_inline_constant(operand: &Operand) -> bool {
    matches!(operand.value, Value::Integer(_) | Value::Float(_))
}

fn vector_register(operand: &Operand) -> Option<RegisterRange> {
    match operand.value {
        Value::Register(range) if range.first.is_per_lane() => Some(range),
        _ => None,
    }
}

/// The vector register that holds the address of a memory access.
fn vector_address(inst: &Inst) -> Option<RegisterRange> {
    inst.sources().next().and_then(vector_register)
}

/// Returns `true` if a scratch access adds a scalar register to its offset.
fn has_scalar_offset(inst: &Inst) -> bool {
    inst.sources().any(|operand| {
        matches!(operand.value, Value::Register(range) if matches!(range.first,
            Register::Sgpr(_) | Register::VccLo | Register::VccHi | Register::M0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::inst;
    use crate::{Isa, Pc};

    #[test]
    fn affected_processors_match_llvm_subtarget_features() {
        for name in Target::names() {
            let target: Target = name.parse().unwrap();
            let Ok(isa) = Isa::new(&target) else { continue };
            let features = isa.features();
            for bug in ChipBug::ALL {
                let feature = features.iter().find(|feature| feature.name == bug.llvm_name());
                let Some(feature) = feature else {
                    assert!(bug.llvm_name().starts_with("has"), "LLVM has no {bug:?}");
                    continue;
                };
                assert_eq!(bug.affects(&target), feature.is_enabled, "{name} {bug:?}");
            }
        }
    }

    /// For each bug, an instruction that triggers it and one that does not.
    #[test]
    fn triggering_instructions_are_recognized() {
        for (target, bug, triggering, harmless) in [
            (
                "gfx942",
                ChipBug::NegativeScratchOffset,
                "scratch_load_dword v0, off, s4 offset:-4",
                "scratch_load_dword v0, v1, off offset:-4",
            ),
            (
                "gfx1010",
                ChipBug::NegativeUnalignedScratchOffset,
                "scratch_load_dword v0, v1, off offset:-3",
                "scratch_load_dword v0, v1, off offset:-4",
            ),
            (
                "gfx942",
                ChipBug::ConvertFloat8,
                "v_cvt_f32_fp8_e32 v0, v1",
                "v_cvt_f32_fp8_sdwa v0, v1 src0_sel:BYTE_0",
            ),
            (
                "gfx1100",
                ChipBug::MadIntraForwarding,
                "v_mad_u64_u32 v[0:1], null, v1, v2, v[4:5]",
                "v_mad_u64_u32 v[0:1], null, v2, v3, v[4:5]",
            ),
            (
                "gfx1100",
                ChipBug::DotOpSel,
                "v_dot2_f32_f16 v0, v1, v2, v3 op_sel:[1,0,0]",
                "v_dot2_f32_f16 v0, v1, v2, v3",
            ),
            (
                "gfx1201",
                ChipBug::ScalarTranscendentalConstant,
                "v_s_rcp_f16 s0, 2.0",
                "v_s_rcp_f16 s0, s1",
            ),
            (
                "gfx1250",
                ChipBug::ScalarTranscendentalConstant,
                "v_s_rcp_f16 s0, 2.0",
                "v_s_rcp_f16 s0, s1",
            ),
            (
                "gfx1250",
                ChipBug::ScratchBaseHigh,
                "s_lshl_b64 s[0:1], s[2:3], src_flat_scratch_base_hi",
                "s_lshl_b32 s0, s2, src_flat_scratch_base_hi",
            ),
            (
                "gfx1010",
                ChipBug::FlatSegmentOffset,
                "flat_load_dword v0, v[2:3] offset:4",
                "flat_load_dword v0, v[2:3]",
            ),
            (
                "gfx1100",
                ChipBug::MadIntraForwarding,
                "v_mad_u64_u32 v[0:1], null, s2, s3, v[1:2]",
                "v_mad_u64_u32 v[1:2], null, s2, s3, v[0:1]",
            ),
            ("gfx1010", ChipBug::InstPrefetch, "s_inst_prefetch 0x1", "s_nop 0"),
        ] {
            let found = |line| ChipBug::of(&target.parse().unwrap(), &inst(target, line));
            assert_eq!(found(triggering), Some(bug), "{target} {triggering}");
            assert_eq!(found(harmless), None, "{target} {harmless}");
        }
    }

    /// LLVM's assembler rejects this instruction, so the test patches SrcC, bits 26:18 of the second word,
    /// from a register to the inline constant 0.
    #[test]
    fn mfma_with_a_constant_addend_is_recognized() {
        let target: Target = "gfx908".parse().unwrap();
        let isa = Isa::new(&target).unwrap();
        let mut bytes = isa.assemble("v_mfma_f32_4x4x1f32 a[0:3], v0, v1, a[0:3]").unwrap();
        let found = |bytes: &[u8]| ChipBug::of(&target, &isa.decode(bytes, Pc(0)).unwrap());
        assert_eq!(found(&bytes), None);
        let word = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let zero = word & !(0x1ff << 18) | 128 << 18;
        bytes[4..8].copy_from_slice(&zero.to_le_bytes());
        assert_eq!(found(&bytes), Some(ChipBug::MfmaInlineLiteral));
    }
}
