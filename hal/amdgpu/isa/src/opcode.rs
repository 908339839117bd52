//! Opcodes and families of operations that other code distinguishes. An operation's name is matched only
//! once, when the operation is first decoded; later comparisons use integers.

/// Defines [`Opcode`] from canonical names. An opcode may cover operations that differ only in the width of
/// their operands.
macro_rules! opcodes {
    ($($opcode:ident = $($name:literal)|+,)*) => {
        /// An operation that other code distinguishes individually, regardless of operand width.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)]
        pub enum Opcode {
            $($opcode,)*
            /// Any other operation.
            Other,
        }

        impl Opcode {
            /// All opcodes except [`Opcode::Other`], with the canonical names of their operations.
            #[cfg(test)]
            const ALL: &[(Opcode, &[&str])] = &[$((Opcode::$opcode, &[$($name),+])),*];

            /// The opcode of a canonical name.
            pub(crate) fn named(name: &str) -> Opcode {
                match name {
                    $($($name)|+ => Opcode::$opcode,)*
                    _ => Opcode::Other,
                }
            }
        }
    };
}

opcodes! {
    // Scalar moves and logic, conditions, arithmetic.
    SMov = "s_mov_b32" | "s_mov_b64",
    SMovk = "s_movk_i32",
    SNot = "s_not_b32" | "s_not_b64",
    SAnd = "s_and_b32" | "s_and_b64",
    SAndn2 = "s_andn2_b32" | "s_andn2_b64",
    SOr = "s_or_b32" | "s_or_b64",
    SOrn2 = "s_orn2_b32" | "s_orn2_b64",
    SXor = "s_xor_b32" | "s_xor_b64",
    SWqm = "s_wqm_b32" | "s_wqm_b64",
    SCselect = "s_cselect_b32" | "s_cselect_b64",
    SCmpEq = "s_cmp_eq_u32" | "s_cmp_eq_i32" | "s_cmpk_eq_u32" | "s_cmpk_eq_i32",
    SCmpLg = "s_cmp_lg_u32" | "s_cmp_lg_i32" | "s_cmpk_lg_u32" | "s_cmpk_lg_i32",
    SBitcmp1 = "s_bitcmp1_b32",
    SAdd = "s_add_u32",
    SAddc = "s_addc_u32",
    SAddNc64 = "s_add_nc_u64",
    SSub = "s_sub_u32",
    SSubb = "s_subb_u32",

    // EXEC writes that also save the old EXEC or the result.
    SAndSaveexec = "s_and_saveexec_b32" | "s_and_saveexec_b64",
    SAndn1Saveexec = "s_andn1_saveexec_b32" | "s_andn1_saveexec_b64",
    SAndn2Saveexec = "s_andn2_saveexec_b32" | "s_andn2_saveexec_b64",
    SOrSaveexec = "s_or_saveexec_b32" | "s_or_saveexec_b64",
    SOrn1Saveexec = "s_orn1_saveexec_b32" | "s_orn1_saveexec_b64",
    SXorSaveexec = "s_xor_saveexec_b32" | "s_xor_saveexec_b64",
    SAndn1Wrexec = "s_andn1_wrexec_b32" | "s_andn1_wrexec_b64",
    SAndn2Wrexec = "s_andn2_wrexec_b32" | "s_andn2_wrexec_b64",

    // Hardware registers and modes.
    SGetreg = "s_getreg_b32",
    SSetreg = "s_setreg_b32",
    SSetregImm32 = "s_setreg_imm32_b32",
    SRoundMode = "s_round_mode",
    SDenormMode = "s_denorm_mode",
    SSetvskip = "s_setvskip",
    SSetGprIdxOn = "s_set_gpr_idx_on",
    SSetGprIdxOff = "s_set_gpr_idx_off",
    SSetGprIdxMode = "s_set_gpr_idx_mode",
    SSetGprIdxIdx = "s_set_gpr_idx_idx",

    // Control flow and barriers.
    SBranch = "s_branch",
    SCbranchScc0 = "s_cbranch_scc0",
    SCbranchScc1 = "s_cbranch_scc1",
    SCbranchVccz = "s_cbranch_vccz",
    SCbranchVccnz = "s_cbranch_vccnz",
    SCbranchExecz = "s_cbranch_execz",
    SCbranchExecnz = "s_cbranch_execnz",
    SCbranchFork = "s_cbranch_i_fork" | "s_cbranch_g_fork",
    SCbranchJoin = "s_cbranch_join",
    SGetpc = "s_getpc_b64",
    SSextI16 = "s_sext_i32_i16",
    SSetpc = "s_setpc_b64",
    SSwappc = "s_swappc_b64",
    SCall = "s_call_b64",
    SRfe = "s_rfe_b64",
    STrap = "s_trap",
    SSethalt = "s_sethalt",
    SEndpgm = "s_endpgm" | "s_endpgm_saved" | "s_endpgm_ordered_ps_done",
    SCodeEnd = "s_code_end",
    SBarrier = "s_barrier",
    SBarrierWait = "s_barrier_wait",
    SBarrierWritesScc = "s_barrier_signal_isfirst" | "s_barrier_leave",
    SGetBarrierState = "s_get_barrier_state",

    // Waits, hints, messages.
    SNop = "s_nop",
    SAllocVgpr = "s_alloc_vgpr",
    SSleep = "s_sleep",
    SClause = "s_clause",
    SDelayAlu = "s_delay_alu",
    SVersion = "s_version",
    SInstPrefetch = "s_inst_prefetch" | "s_set_inst_prefetch_distance",
    SPrefetchPcRel = "s_prefetch_inst_pc_rel" | "s_prefetch_data_pc_rel",
    SWaitcnt = "s_waitcnt",
    SWaitcntVmcnt = "s_waitcnt_vmcnt",
    SWaitcntLgkmcnt = "s_waitcnt_lgkmcnt",
    SWaitcntExpcnt = "s_waitcnt_expcnt",
    SWaitcntVscnt = "s_waitcnt_vscnt",
    SWaitcntDepctr = "s_waitcnt_depctr" | "s_wait_alu",
    SWaitIdle = "s_wait_idle",
    SWaitLoadcnt = "s_wait_loadcnt",
    SWaitSamplecnt = "s_wait_samplecnt",
    SWaitBvhcnt = "s_wait_bvhcnt",
    SWaitExpcnt = "s_wait_expcnt",
    SWaitStorecnt = "s_wait_storecnt",
    SWaitDscnt = "s_wait_dscnt",
    SSetVgprMsb = "s_set_vgpr_msb",
    SWaitXcnt = "s_wait_xcnt",
    SWaitAsynccnt = "s_wait_asynccnt",
    SWaitTensorcnt = "s_wait_tensorcnt",
    DsAtomicAsyncBarrierArrive = "ds_atomic_async_barrier_arrive_b64",
    SWaitKmcnt = "s_wait_kmcnt",
    SWaitLoadcntDscnt = "s_wait_loadcnt_dscnt",
    SWaitStorecntDscnt = "s_wait_storecnt_dscnt",
    SSendmsg = "s_sendmsg",
    SSendmsgRtn64 = "s_sendmsg_rtn_b64",
    STtracedata = "s_ttracedata" | "s_ttracedata_imm",

    // Vector moves.
    VNop = "v_nop",
    VMov = "v_mov_b32",
    VMov64 = "v_mov_b64",
    VSwap = "v_swap_b32",
    VAnd = "v_and_b32",
    VBitop3 = "v_bitop2_b32" | "v_bitop3_b16" | "v_bitop3_b32",
    VReadlane = "v_readlane_b32",
    VReadfirstlane = "v_readfirstlane_b32",
    VWritelane = "v_writelane_b32",
    VPermlane16 = "v_permlane16_b32",
    VPermlane16Var = "v_permlane16_var_b32",
    VPermlanex16 = "v_permlanex16_b32",
    VPermlanex16Var = "v_permlanex16_var_b32",
    VPermlane64 = "v_permlane64_b32",
    VAccvgprRead = "v_accvgpr_read_b32",
    VAccvgprWrite = "v_accvgpr_write_b32",
    VAccvgprMov = "v_accvgpr_mov_b32",
    VCndmask = "v_cndmask_b16" | "v_cndmask_b32",
    VAddcCo = "v_addc_co_u32",
    VSubbCo = "v_subb_co_u32",
    VSubbrevCo = "v_subbrev_co_u32",
    VDivFixup = "v_div_fixup_f16" | "v_div_fixup_f32" | "v_div_fixup_f64" | "v_div_fixup_legacy_f16",
    VRcpIflag = "v_rcp_iflag_f32",
    VDivFmas = "v_div_fmas_f32" | "v_div_fmas_f64",
    VFmaF64 = "v_fma_f64" | "v_fmac_f64",
    VPkFmac = "v_pk_fmac_f16",
    VCvtPkAccum = "v_cvt_pkaccum_u8_f32",
    VDotMixedSign = "v_dot4_i32_iu8" | "v_dot8_i32_iu4",
    VShift64 = "v_lshlrev_b64" | "v_lshrrev_b64" | "v_ashrrev_i64",

    // Memory operations that need more than kind, space and width.
    DsSwizzle = "ds_swizzle_b32",
    DsNop = "ds_nop",
    LdsDirectLoad = "lds_direct_load" | "ds_direct_load",
    LdsParamLoad = "lds_param_load" | "ds_param_load",
    SLoad = "s_load_dword" | "s_load_dwordx2" | "s_load_dwordx3" | "s_load_dwordx4"
        | "s_load_dwordx8" | "s_load_dwordx16",
    LoadDword = "scratch_load_dword" | "buffer_load_dword",
    StoreDword = "scratch_store_dword" | "buffer_store_dword",
    SMemtime = "s_memtime",
    SMemrealtime = "s_memrealtime",
    CacheInvalidate = "buffer_wbinvl1" | "buffer_wbinvl1_vol" | "buffer_invl2" | "buffer_inv"
        | "buffer_gl1_inv",
    WorkgroupCacheInvalidate = "buffer_gl0_inv",
    GlobalInv = "global_inv",
    GlobalWb = "global_wb" | "global_wbinv",
}

/// Defines [`Family`] with the name patterns of its members.
macro_rules! families {
    ($($(#[$documentation:meta])* $family:ident = [$($name:expr),+ $(,)?],)*) => {
        /// A set of operations with a common property, defined by name patterns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Family {
            $($(#[$documentation])* $family,)*
        }

        impl Family {
            /// All families with their name patterns.
            const ALL: &[(Family, &[Pattern])] = &[$((Family::$family, &[$($name),+])),*];
        }
    };
}

use Pattern::{Contains, Prefix};

families! {
    /// `v_cmp` and `v_cmpx`: vector comparisons.
    Compare = [Prefix("v_cmp")],
    /// `v_cmpx`: comparisons that write EXEC.
    CompareWritesExec = [Prefix("v_cmpx_")],
    /// `v_cmp_class` and `v_cmpx_class`.
    CompareClass = [Prefix("v_cmp_class"), Prefix("v_cmpx_class")],
    /// `v_cvt`.
    Convert = [Prefix("v_cvt")],
    /// Conversions to integers.
    ConvertToInteger = [
        Prefix("v_cvt_i16_"),
        Prefix("v_cvt_u16_"),
        Prefix("v_cvt_i32_"),
        Prefix("v_cvt_u32_"),
        Prefix("v_cvt_rpi_"),
        Prefix("v_cvt_flr_"),
        Prefix("v_cvt_nearest_"),
        Prefix("v_cvt_floor_"),
        Prefix("v_cvt_pk_i16_"),
        Prefix("v_cvt_pk_u16_"),
        Prefix("v_cvt_pk_u8_"),
        Prefix("v_cvt_norm_"),
        Prefix("s_cvt_i32_"),
        Prefix("s_cvt_u32_"),
    ],
    /// Conversions of small floating-point formats whose `op_sel` selects parts of the first source and of
    /// the destination.
    ConvertSmallFloat = [
        Prefix("v_cvt_scalef32_"),
        Prefix("v_cvt_sr_"),
        Prefix("v_cvt_pk_fp8_"),
        Prefix("v_cvt_pk_bf8_"),
    ],
    /// Members of [`Family::ConvertSmallFloat`] that read one byte.
    ConvertFromByte = [
        Prefix("v_cvt_scalef32_f32_"),
        Prefix("v_cvt_scalef32_f16_"),
        Prefix("v_cvt_scalef32_pk_f32_fp4"),
        Prefix("v_cvt_scalef32_pk_f16_fp4"),
        Prefix("v_cvt_scalef32_pk_bf16_fp4"),
    ],
    /// Members of [`Family::ConvertSmallFloat`] that read half a register.
    ConvertFromTwoBytes = [
        Prefix("v_cvt_scalef32_pk_f32_fp8"),
        Prefix("v_cvt_scalef32_pk_f32_bf8"),
        Prefix("v_cvt_scalef32_pk_f16_fp8"),
        Prefix("v_cvt_scalef32_pk_f16_bf8"),
        Prefix("v_cvt_scalef32_pk_bf16_fp8"),
        Prefix("v_cvt_scalef32_pk_bf16_bf8"),
    ],
    /// Members of [`Family::ConvertSmallFloat`] that write one byte.
    ConvertToByte = [
        Prefix("v_cvt_sr_fp8_"),
        Prefix("v_cvt_sr_bf8_"),
        Prefix("v_cvt_scalef32_sr_fp8_"),
        Prefix("v_cvt_scalef32_sr_bf8_"),
        Prefix("v_cvt_scalef32_pk_fp4_"),
        Prefix("v_cvt_scalef32_sr_pk_fp4_"),
    ],
    /// Members of [`Family::ConvertSmallFloat`] that convert to FP4 with stochastic rounding.
    ConvertStochasticToFp4 = [Prefix("v_cvt_scalef32_sr_pk_fp4_")],
    /// `v_cvt_sr`: conversions with stochastic rounding.
    ConvertStochastic = [Prefix("v_cvt_sr_")],
    /// `s_cvt_hi`: conversions from the high half of a word.
    ConvertHighHalf = [Prefix("s_cvt_hi_")],
    /// `v_ldexp`.
    Ldexp = [Prefix("v_ldexp")],
    /// `v_frexp_exp`.
    FrexpExponent = [Prefix("v_frexp_exp")],
    /// `v_pk`: packed operations.
    Packed = [Prefix("v_pk_")],
    /// `v_fma_mix` and `v_mad_mix`: each source is half or single precision.
    MixedPrecision = [Prefix("v_fma_mix"), Prefix("v_mad_mix")],
    /// `v_dot`: dot products.
    Dot = [Prefix("v_dot")],
    /// `v_dot4` and `v_dot8`: dot products of 8-bit and 4-bit integers packed in one register.
    DotPackedIntegers = [Prefix("v_dot4"), Prefix("v_dot8")],
    /// Transcendental operations: those that LLVM marks as `TRANS`.
    Transcendental = [
        Prefix("v_rcp_"),
        Prefix("v_rsq_"),
        Prefix("v_sqrt_"),
        Prefix("v_exp_"),
        Prefix("v_log_"),
        Prefix("v_sin_"),
        Prefix("v_cos_"),
    ],
    /// Double-precision operations that LLVM assigns to the core pipe in expert scheduling mode.
    CoreF64 = [Prefix("v_add_f64"), Prefix("v_mul_f64"), Prefix("v_cvt_f64_")],
    /// Operations with a double-precision operand or result.
    AnyF64 = [Contains("_f64")],
    /// `v_s_rcp_f16` and similar: half-precision transcendental operations on scalar registers.
    ScalarTranscendentalF16 = [
        Prefix("v_s_rcp_f16"),
        Prefix("v_s_rsq_f16"),
        Prefix("v_s_sqrt_f16"),
        Prefix("v_s_exp_f16"),
        Prefix("v_s_log_f16"),
    ],
    /// `v_mad_u64_u32` and `v_mad_i64_i32`.
    Mad64 = [Prefix("v_mad_u64_u32"), Prefix("v_mad_i64_i32")],
    /// Conversions of one 8-bit float to single precision.
    ConvertFromFloat8 = [Prefix("v_cvt_f32_fp8"), Prefix("v_cvt_f32_bf8")],
    /// `v_permlane`.
    Permlane = [Prefix("v_permlane")],
    /// `v_accvgpr`: moves to, from and between AccVGPRs.
    AccVgprMove = [Prefix("v_accvgpr_")],
    /// `v_mfma`.
    Mfma = [Prefix("v_mfma_")],
    /// `v_mfma_f64`.
    MfmaF64 = [Prefix("v_mfma_f64_")],
    /// Matrix operations whose modifiers select the formats of A and B.
    MixedFormatMatrix = [Contains("_f8f6f4")],
    /// `v_smfmac`.
    SparseMfma = [Prefix("v_smfmac_")],
    /// `v_wmma`.
    Wmma = [Prefix("v_wmma_")],
    /// `v_swmmac`.
    SparseWmma = [Prefix("v_swmmac_")],
    /// `v_interp`.
    Interpolate = [Prefix("v_interp_")],
    /// `v_movrel`, `v_swaprel` and `s_movrel`: register accesses indexed by M0.
    Movrel = [Contains("_movrel"), Contains("_swaprel")],
    /// `v_movrel`.
    VectorMovrel = [Prefix("v_movrel")],
    /// `s_movrel`.
    ScalarMovrel = [Prefix("s_movrel")],
    /// `s_movreld`.
    ScalarMovrelDestination = [Prefix("s_movreld")],
    /// Unsigned `s_cmpk`, whose immediate is zero-extended.
    CompareUnsignedImmediate = [
        Prefix("s_cmpk_eq_u32"),
        Prefix("s_cmpk_lg_u32"),
        Prefix("s_cmpk_gt_u32"),
        Prefix("s_cmpk_ge_u32"),
        Prefix("s_cmpk_lt_u32"),
        Prefix("s_cmpk_le_u32"),
    ],
    /// `s_set_gpr_idx`: control of GPR-index mode.
    GprIndex = [Prefix("s_set_gpr_idx")],
    /// `s_getreg`.
    GetRegister = [Prefix("s_getreg")],
    /// `s_setreg`.
    SetRegister = [Prefix("s_setreg")],
    /// `s_sendmsg` and `s_sendmsg_rtn`.
    SendMessage = [Prefix("s_sendmsg")],
    /// `s_sendmsg_rtn`.
    SendMessageReturn = [Prefix("s_sendmsg_rtn")],
    /// Waits for counters.
    Wait = [Prefix("s_wait")],
    /// Operations whose result lanes come from other lanes.
    CrossLane = [
        Prefix("v_readlane_"),
        Prefix("v_readfirstlane_"),
        Prefix("v_permlane"),
        Prefix("v_interp_p10_"),
        Prefix("v_interp_p2_f32_inreg"),
        Prefix("v_interp_p2_f16_f32"),
        Prefix("v_interp_p2_rtz_f16_f32"),
        Prefix("ds_permute_"),
        Prefix("ds_bpermute_"),
        Prefix("ds_swizzle_"),
        Contains("_load_tr_"),
        Contains("_tr_b"),
        Prefix("ds_load_tr"),
        Prefix("ds_gws_"),
    ],
    /// `ds_gws`: global wave sync.
    GlobalWaveSync = [Prefix("ds_gws_")],
    /// LDS operations that take an address or a size from M0 on every generation.
    LdsUsesM0 = [
        Contains("addtid"),
        Prefix("ds_append"),
        Prefix("ds_consume"),
        Prefix("ds_gws_"),
        Prefix("ds_ordered_"),
    ],
    /// `addtid`: accesses that add the lane id to the address.
    AddTid = [Contains("addtid")],
    /// `ds_ordered_count`.
    OrderedCount = [Prefix("ds_ordered_count")],
    /// LDS accesses with two addresses.
    TwoAddresses = [Prefix("ds_read2"), Prefix("ds_write2"), Prefix("ds_wrxchg2")],
    /// Members of [`Family::TwoAddresses`] whose offsets count units of 64 elements.
    Stride64 = [Contains("st64")],
    /// Image operations that use a sampler; LLVM includes `image_msaa_load`.
    SampleImage = [
        Prefix("image_sample"),
        Prefix("image_gather4"),
        Prefix("image_get_lod"),
        Prefix("image_msaa_load"),
    ],
    /// Ray intersection with boxes and triangles.
    IntersectRay = [Prefix("image_bvh")],
    /// Loads to LDS with a mnemonic of their own (`global_load_lds`).
    LoadToLds = [Contains("_load_lds_")],
    /// Moves of tensors between memory and LDS.
    TensorMove = [Prefix("tensor_load_"), Prefix("tensor_store_")],
    /// Asynchronous copies between memory and LDS, which have a separate counter.
    AsyncLds = [Contains("_async_")],
}

/// A pattern of canonical names.
#[derive(Clone, Copy)]
enum Pattern {
    Prefix(&'static str),
    Contains(&'static str),
}

impl Pattern {
    fn matches(self, name: &str) -> bool {
        match self {
            Pattern::Prefix(prefix) => name.starts_with(prefix),
            Pattern::Contains(part) => name.contains(part),
        }
    }
}

/// The set of families that an operation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Families(u64);

impl Families {
    /// The families of a canonical name.
    pub fn named(name: &str) -> Families {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
        let families = Family::ALL.iter().filter(|(_, patterns)| matches(patterns));
        Families(families.map(|(family, _)| 1u64 << *family as u32).sum())
    }

    /// Returns `true` if `family` is in the set.
    pub fn contains(self, family: Family) -> bool {
        self.0 >> family as u32 & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_has_one_opcode() {
        let names: Vec<&str> = Opcode::ALL.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for (opcode, names) in Opcode::ALL {
            for name in *names {
                assert_eq!(Operation::named(name).opcode(), *opcode, "{name}");
            }
        }
        assert_eq!(Operation::named("v_add_f32").opcode(), Opcode::Other);
    }

    #[test]
    fn families_are_recognized_by_name() {
        for (name, families) in [
            (
                "v_cmpx_class_f32",
                &[Family::Compare, Family::CompareWritesExec, Family::CompareClass][..],
            ),
            ("v_mfma_f64_16x16x4f64", &[Family::AnyF64, Family::Mfma, Family::MfmaF64]),
            ("v_readlane_b32", &[Family::CrossLane]),
            (
                "s_movreld_b32",
                &[Family::Movrel, Family::ScalarMovrel, Family::ScalarMovrelDestination],
            ),
            ("s_sendmsg_rtn_b32", &[Family::SendMessage, Family::SendMessageReturn]),
            ("ds_read2st64_b32", &[Family::TwoAddresses, Family::Stride64]),
            (
                "v_cvt_sr_f16_f32",
                &[Family::Convert, Family::ConvertSmallFloat, Family::ConvertStochastic],
            ),
            ("v_mfma_f32_32x32x64_f8f6f4", &[Family::Mfma, Family::MixedFormatMatrix]),
            ("s_cmpk_ge_u32", &[Family::CompareUnsignedImmediate]),
            ("v_add_f32", &[]),
        ] {
            let operation = Operation::named(name);
            let all = Family::ALL.iter().map(|(family, _)| *family);
            let found = all.filter(|family| operation.is(*family));
            assert_eq!(found.collect::<Vec<_>>(), families, "{name}");
        }
    }
}
