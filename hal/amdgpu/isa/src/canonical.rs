//! Canonical names: the gfx9 mnemonic without the encoding suffix.
//!
//! Names are unified only if the operations are identical. Similar names that stay distinct:
//! `ds_cmpst` and gfx11's `ds_cmpstore` (their data operands are swapped), and `v_min_f32` and
//! gfx12's `v_min_num_f32` (signed zeros and signalling NaNs).

use crate::{Generation, MemoryKind};
use std::borrow::Cow;

const ENCODING_SUFFIXES: [&str; 8] =
    ["_e64_dpp8", "_e64_dpp", "_e32_dpp", "_dpp8", "_dpp", "_sdwa", "_e64", "_e32"];

/// Operations of gfx8 whose names denote other operations on gfx9: the gfx8 additions have a carry-out,
/// and the 16-bit operations clear the high half of the destination.
const GFX8: [(&str, &str); 12] = [
    ("v_add_u32", "v_add_co_u32"),
    ("v_sub_u32", "v_sub_co_u32"),
    ("v_subrev_u32", "v_subrev_co_u32"),
    ("v_addc_u32", "v_addc_co_u32"),
    ("v_subb_u32", "v_subb_co_u32"),
    ("v_subbrev_u32", "v_subbrev_co_u32"),
    ("v_mad_f16", "v_mad_legacy_f16"),
    ("v_mad_u16", "v_mad_legacy_u16"),
    ("v_mad_i16", "v_mad_legacy_i16"),
    ("v_fma_f16", "v_fma_legacy_f16"),
    ("v_div_fixup_f16", "v_div_fixup_legacy_f16"),
    ("v_interp_p2_f16", "v_interp_p2_legacy_f16"),
];

/// Pairs of a newer name and its canonical name.
const RENAMED: [(&str, &str); 57] = [
    // gfx10
    ("v_add_nc_u32", "v_add_u32"),
    ("v_sub_nc_u32", "v_sub_u32"),
    ("v_subrev_nc_u32", "v_subrev_u32"),
    ("v_add_nc_i32", "v_add_i32"),
    ("v_sub_nc_i32", "v_sub_i32"),
    ("v_add_nc_u16", "v_add_u16"),
    ("v_sub_nc_u16", "v_sub_u16"),
    ("v_add_nc_i16", "v_add_i16"),
    ("v_sub_nc_i16", "v_sub_i16"),
    ("v_add_co_ci_u32", "v_addc_co_u32"),
    ("v_sub_co_ci_u32", "v_subb_co_u32"),
    ("v_subrev_co_ci_u32", "v_subbrev_co_u32"),
    // gfx11
    ("v_clz_i32_u32", "v_ffbh_u32"),
    ("v_cls_i32", "v_ffbh_i32"),
    ("v_ctz_i32_b32", "v_ffbl_b32"),
    ("v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"),
    ("v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"),
    ("v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"),
    ("v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_i16_f32"),
    ("v_cvt_pk_norm_u16_f32", "v_cvt_pknorm_u16_f32"),
    ("v_cvt_pk_norm_i16_f16", "v_cvt_pknorm_i16_f16"),
    ("v_cvt_pk_norm_u16_f16", "v_cvt_pknorm_u16_f16"),
    ("v_dot2acc_f32_f16", "v_dot2c_f32_f16"),
    ("v_mul_dx9_zero_f32", "v_mul_legacy_f32"),
    ("v_fma_dx9_zero_f32", "v_fma_legacy_f32"),
    ("v_fmac_dx9_zero_f32", "v_fmac_legacy_f32"),
    ("s_clz_i32_u32", "s_flbit_i32_b32"),
    ("s_clz_i32_u64", "s_flbit_i32_b64"),
    ("s_cls_i32", "s_flbit_i32"),
    ("s_cls_i32_i64", "s_flbit_i32_i64"),
    ("s_ctz_i32_b32", "s_ff1_i32_b32"),
    ("s_ctz_i32_b64", "s_ff1_i32_b64"),
    ("s_set_inst_prefetch_distance", "s_inst_prefetch"),
    ("global_load_addtid_b32", "global_load_dword_addtid"),
    ("global_store_addtid_b32", "global_store_dword_addtid"),
    ("v_cmp_t_f16", "v_cmp_tru_f16"),
    ("v_cmp_t_f32", "v_cmp_tru_f32"),
    ("v_cmp_t_f64", "v_cmp_tru_f64"),
    ("v_cmpx_t_f16", "v_cmpx_tru_f16"),
    ("v_cmpx_t_f32", "v_cmpx_tru_f32"),
    ("v_cmpx_t_f64", "v_cmpx_tru_f64"),
    // gfx12
    ("s_add_co_u32", "s_add_u32"),
    ("s_sub_co_u32", "s_sub_u32"),
    ("s_add_co_i32", "s_add_i32"),
    ("s_sub_co_i32", "s_sub_i32"),
    ("s_add_co_ci_u32", "s_addc_u32"),
    ("s_sub_co_ci_u32", "s_subb_u32"),
    ("s_addk_co_i32", "s_addk_i32"),
    ("v_mad_co_u64_u32", "v_mad_u64_u32"),
    ("v_mad_co_i64_i32", "v_mad_i64_i32"),
    ("export", "exp"),
    // gfx1250
    ("s_get_pc_i64", "s_getpc_b64"),
    ("s_set_pc_i64", "s_setpc_b64"),
    ("s_swap_pc_i64", "s_swappc_b64"),
    ("s_call_i64", "s_call_b64"),
    ("ds_load_addtid_b32", "ds_read_addtid_b32"),
    ("ds_store_addtid_b32", "ds_write_addtid_b32"),
];

/// Interpolation with parameters in registers; gfx9 has another operation of that name. LLVM
/// distinguishes the two in the same way.
const INTERPOLATE: (&str, &str) = ("v_interp_p2_f32", "v_interp_p2_f32_inreg");

/// The canonical name of a printed mnemonic.
pub(crate) fn name(mnemonic: &str, generation: Generation) -> Cow<'_, str> {
    let suffix = ENCODING_SUFFIXES.iter().find_map(|suffix| mnemonic.strip_suffix(suffix));
    let name = suffix.unwrap_or(mnemonic);
    let renamed = |table: &[(&'static str, &'static str)]| {
        table.iter().find(|(new, _)| *new == name).map(|(_, canonical)| *canonical)
    };
    if generation <= Generation::Gfx8 {
        return Cow::Borrowed(renamed(&GFX8).unwrap_or(name));
    }
    if generation >= Generation::Gfx11 && name == INTERPOLATE.0 {
        return Cow::Borrowed(INTERPOLATE.1);
    }
    if let Some(canonical) = renamed(&RENAMED) {
        return Cow::Borrowed(canonical);
    }
    let by_rule = if generation >= Generation::Gfx10 {
        scalar_not(name).or_else(|| lds(name)).or_else(|| memory(name))
    } else {
        matrix(name)
    };
    by_rule.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Scalar logic: gfx11 names the inverted source, `s_and_not1_b32` for `s_andn2_b32`.
fn scalar_not(name: &str) -> Option<String> {
    [("s_and_not0_", "s_andn1_"), ("s_and_not1_", "s_andn2_")]
        .into_iter()
        .chain([("s_or_not0_", "s_orn1_"), ("s_or_not1_", "s_orn2_")])
        .find_map(|(new, old)| Some(format!("{old}{}", name.strip_prefix(new)?)))
}

/// LDS operations: gfx11 writes load and store for read and write, and `2addr` for `2`.
fn lds(name: &str) -> Option<String> {
    let rest = name.strip_prefix("ds_")?;
    let (verb, rest) = [("load_", "read"), ("storexchg_", "wrxchg"), ("store_", "write")]
        .into_iter()
        .find_map(|(new, old)| Some((old, rest.strip_prefix(new)?)))?;
    if rest.starts_with("tr") {
        return None;
    }
    let (addresses, rest) = if let Some(rest) = rest.strip_prefix("2addr_stride64_") {
        ("2st64", rest)
    } else if let Some(rest) = rest.strip_prefix("2addr_") {
        ("2", rest)
    } else {
        ("", rest)
    };
    Some(format!("ds_{verb}{addresses}_{rest}"))
}

/// Memory operations: gfx11 gives the width in bits; gfx10's floating-point atomics begin with an
/// `f`.
fn memory(name: &str) -> Option<String> {
    const SPACES: [&str; 7] =
        ["buffer_", "tbuffer_", "flat_", "global_", "scratch_", "s_buffer_", "s_"];
    let (space, rest) =
        SPACES.iter().find_map(|space| Some((*space, name.strip_prefix(space)?)))?;
    let (verb, rest) = rest.split_once('_')?;
    let renamed = match verb {
        "load" => width(rest, MemoryKind::Load)?,
        "store" => width(rest, MemoryKind::Store)?,
        "atomic" => atomic(rest)?,
        _ => return None,
    };
    Some(format!("{space}{verb}_{renamed}"))
}

fn width(rest: &str, kind: MemoryKind) -> Option<String> {
    if let Some(rest) = rest.strip_prefix("lds_") {
        return Some(format!("lds_{}", width(rest, kind)?));
    }
    if let Some(format) = rest.strip_prefix("d16_hi_format_") {
        return Some(format!("format_d16_hi_{format}"));
    }
    if let Some(format) = rest.strip_prefix("d16_format_") {
        return Some(format!("format_d16_{format}"));
    }
    let (half, bits) = if let Some(bits) = rest.strip_prefix("d16_hi_") {
        ("_d16_hi", bits)
    } else if let Some(bits) = rest.strip_prefix("d16_") {
        ("_d16", bits)
    } else {
        ("", rest)
    };
    let unit = match bits {
        "b32" => "dword",
        "b64" => "dwordx2",
        "b96" => "dwordx3",
        "b128" => "dwordx4",
        "b256" => "dwordx8",
        "b512" => "dwordx16",
        "u8" => "ubyte",
        "i8" => "sbyte",
        "u16" => "ushort",
        "i16" => "sshort",
        "b16" => "short",
        "b8" if kind == MemoryKind::Store => "byte",
        _ => return None,
    };
    Some(format!("{unit}{half}"))
}

fn atomic(rest: &str) -> Option<String> {
    for (gfx10, operation) in [("fmin", "min"), ("fmax", "max"), ("fcmpswap", "cmpswap")] {
        match rest.strip_prefix(gfx10) {
            Some("") => return Some(format!("{operation}_f32")),
            Some("_x2") => return Some(format!("{operation}_f64")),
            _ => {}
        }
    }
    let (operation, data) = rest.rsplit_once('_')?;
    let wide = match data {
        "b32" | "u32" | "i32" => "",
        "b64" | "u64" | "i64" => "_x2",
        _ => return None,
    };
    let sign = match (operation, &data[..1]) {
        ("min" | "max", "i") => "s",
        ("min" | "max", _) => "u",
        ("add" | "sub" | "swap" | "cmpswap" | "and" | "or" | "xor" | "inc" | "dec" | "csub", _) => {
            ""
        }
        _ => return None,
    };
    Some(format!("{sign}{operation}{wide}"))
}

/// MFMA: gfx940 writes `v_mfma_f32_32x32x1_2b_f32` for `v_mfma_f32_32x32x1f32`, and `_bf16` for
/// gfx90a's `bf16_1k`.
fn matrix(name: &str) -> Option<String> {
    let rest = name.strip_prefix("v_mfma_")?;
    let parts: Vec<&str> = rest.split('_').collect();
    let (result, shape, source) = match parts[..] {
        [result, shape, source] => (result, shape, source),
        [result, shape, blocks, source] if blocks.ends_with('b') => (result, shape, source),
        _ => return None,
    };
    let suffix = match source {
        "f32" | "f16" | "f64" | "i8" => "",
        "bf16" => "_1k",
        _ => return None,
    };
    Some(format!("v_mfma_{result}_{shape}{source}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_names_map_to_gfx9_names() {
        for (printed, canonical) in [
            ("v_add_f32_e64", "v_add_f32"),
            ("v_add_f32_e64_dpp", "v_add_f32"),
            ("v_mov_b32_dpp8", "v_mov_b32"),
            ("global_load_b32", "global_load_dword"),
            ("global_load_d16_hi_u8", "global_load_ubyte_d16_hi"),
            ("global_store_b8", "global_store_byte"),
            ("scratch_store_d16_hi_b16", "scratch_store_short_d16_hi"),
            ("buffer_load_d16_hi_format_x", "buffer_load_format_d16_hi_x"),
            ("buffer_load_lds_u16", "buffer_load_lds_ushort"),
            ("tbuffer_store_d16_format_xy", "tbuffer_store_format_d16_xy"),
            ("flat_atomic_add_u64", "flat_atomic_add_x2"),
            ("global_atomic_min_i32", "global_atomic_smin"),
            ("global_atomic_max_u64", "global_atomic_umax_x2"),
            ("global_atomic_cmpswap_b64", "global_atomic_cmpswap_x2"),
            ("global_atomic_fmax_x2", "global_atomic_max_f64"),
            ("global_atomic_add_f32", "global_atomic_add_f32"),
            ("ds_load_b32", "ds_read_b32"),
            ("ds_load_u8_d16_hi", "ds_read_u8_d16_hi"),
            ("ds_load_2addr_stride64_b64", "ds_read2st64_b64"),
            ("ds_store_2addr_b32", "ds_write2_b32"),
            ("ds_storexchg_rtn_b32", "ds_wrxchg_rtn_b32"),
            ("ds_cmpstore_b32", "ds_cmpstore_b32"),
            ("s_load_b64", "s_load_dwordx2"),
            ("s_buffer_load_b512", "s_buffer_load_dwordx16"),
            ("s_and_not1_saveexec_b32", "s_andn2_saveexec_b32"),
            ("v_add_nc_u32_e32", "v_add_u32"),
            ("v_add_co_ci_u32_e32", "v_addc_co_u32"),
        ] {
            assert_eq!(name(printed, Generation::Gfx11), canonical, "{printed}");
        }
    }

    #[test]
    fn gfx8_and_gfx9_give_one_name_to_different_operations() {
        assert_eq!(name("v_add_u32_e32", Generation::Gfx8), "v_add_co_u32");
        assert_eq!(name("v_add_u32_e32", Generation::Gfx9), "v_add_u32");
    }

    #[test]
    fn gfx940_matrix_names_map_to_gfx90a_names() {
        for (printed, canonical) in [
            ("v_mfma_f32_32x32x1_2b_f32", "v_mfma_f32_32x32x1f32"),
            ("v_mfma_f64_16x16x4_f64", "v_mfma_f64_16x16x4f64"),
            ("v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x16bf16_1k"),
            ("v_mfma_f32_16x16x8_xf32", "v_mfma_f32_16x16x8_xf32"),
        ] {
            assert_eq!(name(printed, Generation::Gfx940), canonical);
        }
    }
}
