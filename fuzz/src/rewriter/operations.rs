//! Instructions of random kernels, as text with placeholders for operands.

use flipwave_isa::{Generation, Isa};
use flipwave_tests::{Machine, Once};
use std::sync::Arc;

/// Wait required before the result of an instruction is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Nothing.
    AtOnce,
    /// A load of vector memory.
    Vector,
    /// LDS or scalar memory.
    Scalar,
    /// Both, as for flat addresses.
    Both,
}

/// A pattern of one instruction, or of several that belong together.
///
/// Placeholders: `{d}` a VGPR that is written, `{v}` a VGPR that is read, `{x}` any first source of a
/// vector instruction, `{s}` an SGPR that is written, `{t}` an SGPR that is read or a constant, `{a}` an
/// AccVGPR. Letters are doubled for a pair; `{dq}`, `{sq}` and `{aq}` are four registers. `{m}` is a lane
/// mask that is written, `{n}` a lane mask that is read, `{c}` is VCC. `{o}` is an offset in the buffer at
/// `{b}`, which the buffer resource `{r}` also describes; `{l}` is an offset in LDS. `{i}` is a small
/// offset, `{k}` any word, `{e}` a number below 32.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Text with placeholders.
    pub text: &'static str,
    /// Wait required before the results are available.
    pub delivery: Delivery,
}

/// Patterns, each with its spellings in different generations. The first spelling that a machine supports
/// is used.
const PATTERNS: &[(Delivery, &[&str])] = &[
    (Delivery::AtOnce, &["v_add_u32 {d}, {x}, {v}", "v_add_nc_u32 {d}, {x}, {v}"]),
    (Delivery::AtOnce, &["v_sub_u32 {d}, {x}, {v}", "v_sub_nc_u32 {d}, {x}, {v}"]),
    (Delivery::AtOnce, &["v_mul_lo_u32 {d}, {v}, {v}"]),
    (Delivery::AtOnce, &["v_xor_b32 {d}, {x}, {v}"]),
    (Delivery::AtOnce, &["v_and_b32 {d}, {k}, {v}"]),
    (Delivery::AtOnce, &["v_lshlrev_b32 {d}, {e}, {v}"]),
    (Delivery::AtOnce, &["v_mov_b32 {d}, {x}"]),
    (Delivery::AtOnce, &["v_mov_b32 {d}, {k}"]),
    (Delivery::AtOnce, &["v_add_f32 {d}, {x}, {v}"]),
    (Delivery::AtOnce, &["v_fma_f32 {d}, {v}, {v}, {v}"]),
    (Delivery::AtOnce, &["v_fmac_f32 {d}, {v}, {v}", "v_mac_f32 {d}, {v}, {v}"]),
    (Delivery::AtOnce, &["v_rcp_f32 {d}, {v}"]),
    (Delivery::AtOnce, &["v_bfe_u32 {d}, {v}, {e}, {e}"]),
    (Delivery::AtOnce, &["v_alignbit_b32 {d}, {v}, {v}, {e}"]),
    (Delivery::AtOnce, &["v_add3_u32 {d}, {v}, {v}, {v}"]),
    (Delivery::AtOnce, &["v_add_co_u32 {d}, {c}, {x}, {v}", "v_add_co_u32 {d}, {m}, {v}, {v}"]),
    (
        Delivery::AtOnce,
        &["v_addc_co_u32 {d}, {c}, {v}, {v}, {c}", "v_add_co_ci_u32 {d}, {c}, {v}, {v}, {c}"],
    ),
    (Delivery::AtOnce, &["v_cndmask_b32 {d}, {x}, {v}, {c}"]),
    (Delivery::AtOnce, &["v_cndmask_b32 {d}, {v}, {v}, {n}"]),
    (Delivery::AtOnce, &["v_cmp_gt_u32 {c}, {x}, {v}"]),
    (Delivery::AtOnce, &["v_cmp_lt_i32 {m}, {v}, {v}"]),
    (Delivery::AtOnce, &["v_cmp_lt_f32 {c}, {x}, {v}"]),
    (Delivery::AtOnce, &["v_mad_u64_u32 {dd}, {m}, {v}, {v}, {vv}"]),
    (Delivery::AtOnce, &["v_add_f64 {dd}, {vv}, {vv}"]),
    (Delivery::AtOnce, &["v_lshlrev_b64 {dd}, {e}, {vv}"]),
    (Delivery::AtOnce, &["v_pk_add_f32 {dd}, {vv}, {vv}", "v_pk_add_f16 {d}, {v}, {v}"]),
    (Delivery::AtOnce, &["v_readfirstlane_b32 {s}, {v}"]),
    (Delivery::AtOnce, &["v_readlane_b32 {s}, {v}, {e}"]),
    (Delivery::AtOnce, &["v_writelane_b32 {d}, {t}, {e}"]),
    (Delivery::AtOnce, &["v_mov_b32_dpp {d}, {v} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"]),
    (Delivery::AtOnce, &["v_mov_b32_dpp {d}, {v} row_shr:3 row_mask:0xa bank_mask:0xf"]),
    (
        Delivery::AtOnce,
        &[
            "v_add_f32_dpp {d}, {v}, {v} row_bcast:15 row_mask:0xa bank_mask:0xf",
            "v_add_f32_dpp {d}, {v}, {v} row_share:5 row_mask:0x3 bank_mask:0xe",
        ],
    ),
    (
        Delivery::AtOnce,
        &[
            "v_max_u32_dpp {d}, {v}, {v} wave_ror:1 row_mask:0xf bank_mask:0x7",
            "v_max_u32_dpp {d}, {v}, {v} row_xmask:9 row_mask:0xf bank_mask:0xf bound_ctrl:1 fi:1",
        ],
    ),
    (
        Delivery::AtOnce,
        &[
            "v_xor_b32_dpp {d}, {v}, {v} wave_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:0",
            "v_xor_b32_dpp {d}, {v}, {v} dpp8:[7,0,3,3,1,2,5,4]",
        ],
    ),
    (Delivery::AtOnce, &["v_permlane16_b32 {d}, {v}, {t}, {t}"]),
    (Delivery::AtOnce, &["v_permlanex16_b32 {d}, {v}, {t}, {t} op_sel:[1,0]"]),
    (Delivery::AtOnce, &["v_permlane64_b32 {d}, {v}"]),
    (
        Delivery::AtOnce,
        &[
            "v_add_u32_sdwa {d}, {v}, {v} dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE \
             src0_sel:WORD_1 src1_sel:DWORD",
            "v_add_nc_u32_sdwa {d}, {v}, {v} dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE \
             src0_sel:WORD_1 src1_sel:DWORD",
        ],
    ),
    (Delivery::AtOnce, &["v_swap_b32 {d}, {d}"]),
    (Delivery::AtOnce, &["v_accvgpr_write_b32 {a}, {v}"]),
    (Delivery::AtOnce, &["v_accvgpr_read_b32 {d}, {a}"]),
    (
        Delivery::AtOnce,
        &[
            "v_mfma_f32_4x4x1f32 {aq}, {v}, {v}, {aq}\ns_nop 7\ns_nop 7",
            "v_mfma_f32_4x4x1_16b_f32 {aq}, {v}, {v}, {aq}\ns_nop 7\ns_nop 7",
        ],
    ),
    (
        Delivery::AtOnce,
        &["s_mov_b32 s6, {e}\ns_and_b32 s6, s6, 3\ns_set_gpr_idx_on s6, gpr_idx(SRC0)\n\
           v_mov_b32 {d}, v2\ns_set_gpr_idx_off"],
    ),
    (
        Delivery::AtOnce,
        &["s_mov_b32 s6, {e}\ns_and_b32 s6, s6, 3\ns_set_gpr_idx_on s6, gpr_idx(DST)\n\
           v_mov_b32 v3, {v}\ns_set_gpr_idx_off"],
    ),
    (Delivery::AtOnce, &["s_and_b32 m0, {e}, 3\ns_nop 4\nv_movrels_b32 {d}, v2"]),
    (Delivery::AtOnce, &["s_and_b32 m0, {e}, 3\ns_nop 4\nv_movreld_b32 v4, {v}"]),
    (Delivery::AtOnce, &["s_add_u32 {s}, {t}, {t}"]),
    (Delivery::AtOnce, &["s_addc_u32 {s}, {t}, {t}"]),
    (Delivery::AtOnce, &["s_sub_u32 {s}, {t}, {k}"]),
    (Delivery::AtOnce, &["s_and_b32 {s}, {t}, {t}"]),
    (Delivery::AtOnce, &["s_xor_b64 {ss}, {tt}, {tt}"]),
    (Delivery::AtOnce, &["s_lshl_b64 {ss}, {tt}, {e}"]),
    (Delivery::AtOnce, &["s_bfe_u32 {s}, {t}, 0x50003"]),
    (Delivery::AtOnce, &["s_mul_i32 {s}, {t}, {t}"]),
    (Delivery::AtOnce, &["s_cselect_b32 {s}, {t}, {t}"]),
    (Delivery::AtOnce, &["s_cmov_b32 {s}, {t}"]),
    (Delivery::AtOnce, &["s_cmp_lt_u32 {t}, {t}"]),
    (Delivery::AtOnce, &["s_cmp_eq_u32 {t}, {e}"]),
    (Delivery::AtOnce, &["s_bitcmp1_b32 {t}, {e}"]),
    (Delivery::AtOnce, &["s_mov_b32 {s}, {k}"]),
    (Delivery::AtOnce, &["s_movk_i32 {s}, 0x123"]),
    (Delivery::AtOnce, &["s_mov_b64 {ss}, {c}"]),
    (Delivery::AtOnce, &["s_mov_b64 {c}, {tt}", "s_mov_b32 {c}, {t}"]),
    (Delivery::AtOnce, &["s_bcnt1_i32_b64 {s}, {tt}"]),
    (Delivery::AtOnce, &["s_mov_b32 m0, {t}"]),
    (Delivery::AtOnce, &["s_mov_b32 {s}, m0"]),
    (Delivery::AtOnce, &["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), {e}"]),
    (Delivery::AtOnce, &["s_getreg_b32 {s}, hwreg(HW_REG_MODE, 0, 8)"]),
    (Delivery::AtOnce, &["s_nop 0"]),
    (Delivery::AtOnce, &["s_nop 7"]),
    (Delivery::AtOnce, &["s_sleep 0"]),
    (Delivery::AtOnce, &["s_setprio 1"]),
    (Delivery::AtOnce, &["s_delay_alu instid0(VALU_DEP_1)\nv_mov_b32 {d}, {v}"]),
    (
        Delivery::AtOnce,
        &["s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)\n\
           v_mov_b32 {d}, {v}\nv_mov_b32 {d}, {v}"],
    ),
    (Delivery::AtOnce, &["v_dual_mov_b32 v2, v3 :: v_dual_add_f32 v5, v4, v6"]),
    (Delivery::Vector, &["global_load_dword {d}, {o}, {b} offset:{i}"]),
    (
        Delivery::Vector,
        &["global_load_ushort {d}, {o}, {b} offset:{i}", "global_load_u16 {d}, {o}, {b}"],
    ),
    (
        Delivery::Vector,
        &["global_load_short_d16_hi {d}, {o}, {b}", "global_load_d16_hi_b16 {d}, {o}, {b}"],
    ),
    (Delivery::Vector, &["global_load_dwordx2 {dd}, {o}, {b} offset:{i}"]),
    (Delivery::Vector, &["global_load_dwordx4 {dq}, {o}, {b} offset:{i}"]),
    (Delivery::AtOnce, &["global_store_dword {o}, {v}, {b} offset:{i}"]),
    (Delivery::AtOnce, &["global_store_dwordx2 {o}, {vv}, {b} offset:{i}"]),
    (Delivery::AtOnce, &["global_atomic_add {o}, {v}, {b}", "global_atomic_add_u32 {o}, {v}, {b}"]),
    (
        Delivery::Vector,
        &[
            "global_atomic_swap {d}, {o}, {v}, {b} glc",
            "global_atomic_swap {d}, {o}, {v}, {b} sc0",
            "global_atomic_swap_b32 {d}, {o}, {v}, {b} glc",
        ],
    ),
    (Delivery::Vector, &["buffer_load_dword {d}, {v}, {r}, 0 offen offset:16"]),
    (Delivery::Vector, &["buffer_load_dword {d}, {o}, {r}, {t} offen"]),
    (Delivery::AtOnce, &["buffer_store_dword {v}, {o}, {r}, 0 offen offset:16"]),
    (
        Delivery::Vector,
        &["s_clause 0x1\nglobal_load_dword {d}, {o}, {b} offset:{i}\n\
           global_load_dword {d}, {o}, {b} offset:{i}"],
    ),
    (
        Delivery::Vector,
        &["global_load_dword {d}, {o}, {b}\nglobal_load_dword {d}, {o}, {b} offset:{i}\n\
           global_load_dwordx2 {dd}, {o}, {b}"],
    ),
    (Delivery::Vector, &["scratch_load_dword {d}, off, off offset:8"]),
    (Delivery::AtOnce, &["scratch_store_dword off, {v}, off offset:8"]),
    (Delivery::Vector, &["scratch_load_dwordx2 {dd}, off, off offset:4"]),
    (Delivery::AtOnce, &["scratch_store_dwordx2 off, {vv}, off offset:4"]),
    (Delivery::Scalar, &["ds_read_b32 {d}, {l} offset:{i}", "ds_load_b32 {d}, {l} offset:{i}"]),
    (
        Delivery::Scalar,
        &[
            "ds_read2_b32 {dd}, {l} offset0:1 offset1:5",
            "ds_load_2addr_b32 {dd}, {l} offset0:1 offset1:5",
        ],
    ),
    (Delivery::AtOnce, &["ds_write_b32 {l}, {v} offset:{i}", "ds_store_b32 {l}, {v} offset:{i}"]),
    (Delivery::Scalar, &["ds_add_rtn_u32 {d}, {l}, {v}"]),
    (Delivery::Scalar, &["ds_swizzle_b32 {d}, {v} offset:0x041f"]),
    (Delivery::Scalar, &["ds_bpermute_b32 {d}, {v}, {v}"]),
    (Delivery::Scalar, &["s_load_dword {s}, {b}, {i}"]),
    (Delivery::Scalar, &["s_load_dwordx2 {ss}, {b}, {i}"]),
    (Delivery::Scalar, &["s_load_dwordx4 {sq}, {b}, {i}"]),
    (Delivery::Scalar, &["s_buffer_load_dword {s}, {r}, {i}"]),
    (
        Delivery::Both,
        &[
            "v_mov_b32 v5, s5\nv_add_co_u32 v4, {c}, s4, {o}\nv_addc_co_u32 v5, {c}, 0, v5, {c}\n\
           flat_load_dword {d}, v[4:5]",
            "v_mov_b32 v5, s5\nv_add_co_u32 v4, {c}, s4, {o}\nv_add_co_ci_u32 v5, {c}, 0, v5, {c}\n\
           flat_load_dword {d}, v[4:5]",
        ],
    ),
];

/// Patterns supported by a machine.
pub fn of(machine: Machine, isa: &Isa) -> Arc<Vec<Pattern>> {
    static FOUND: Once<String, Arc<Vec<Pattern>>> = Once::new();
    FOUND.get(machine.to_string(), || {
        let is_wide = machine.lanes == 64;
        let has_scratch = super::frame::has_scratch(machine);
        // Flat accesses read FLAT_SCRATCH, which kernels do not set up where it is a pair of SGPRs.
        let has_flat = machine.target().generation() != Generation::Gfx90a;
        let groups = PATTERNS.iter().filter_map(|(delivery, names)| {
            let fits = |name: &&&str| {
                (has_scratch || !name.starts_with("scratch"))
                    && (has_flat || !name.contains("flat_"))
                    && isa.assemble(&example(name, is_wide)).is_ok()
            };
            let text = names.iter().find(fits)?;
            Some(Pattern { text, delivery: *delivery })
        });
        Arc::new(groups.collect())
    })
}

/// A pattern with fixed registers for its placeholders.
fn example(text: &str, is_wide: bool) -> String {
    let mask = |wide: &str, narrow: &str| if is_wide { wide.to_owned() } else { narrow.to_owned() };
    let placeholders = [
        ("{d}", "v1".to_owned()),
        ("{dd}", "v[2:3]".into()),
        ("{dq}", "v[4:7]".into()),
        ("{v}", "v8".into()),
        ("{vv}", "v[8:9]".into()),
        ("{x}", "s9".into()),
        ("{s}", "s8".into()),
        ("{ss}", "s[8:9]".into()),
        ("{sq}", "s[8:11]".into()),
        ("{t}", "s10".into()),
        ("{tt}", "s[10:11]".into()),
        ("{a}", "a1".into()),
        ("{aq}", "a[0:3]".into()),
        ("{m}", mask("s[8:9]", "s8")),
        ("{n}", mask("s[8:9]", "s8")),
        ("{c}", mask("vcc", "vcc_lo")),
        ("{o}", "v9".into()),
        ("{l}", "v9".into()),
        ("{b}", "s[4:5]".into()),
        ("{r}", "s[40:43]".into()),
        ("{i}", "0x10".into()),
        ("{k}", "0x12345".into()),
        ("{e}", "3".into()),
    ];
    placeholders
        .iter()
        .fold(text.to_owned(), |text, (placeholder, name)| text.replace(placeholder, name))
}
