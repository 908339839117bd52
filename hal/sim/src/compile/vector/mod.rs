//! Vector operations as IR templates. The rows of `operations` define the same operations in Rust,
//! and the kinds of sources and results; tests compare both.
//!
//! A source of kind `F32` or `F16` has type `F`, of kind `F64` type `E`, a lane mask type `M`,
//! others type `W` or `D`. A floating-point result has type `F` or `E`, others type `W` or `D`.
//! Integer half words are zero-extended. A result that is rounded to half precision must be exact,
//! or have twice its digits plus two.

mod bits;
mod bytes;
mod comparisons;
mod conversions;
mod division;
mod extremes;
mod integers;
mod lowering;
mod numbers;
mod transcendental;

pub use lowering::{Lowering, Nan, Stored};

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Finds the template of an operation by the name of its row.
pub fn find(name: &str) -> Option<&'static Lowering> {
    static BY_NAME: LazyLock<FxHashMap<&'static str, &'static Lowering>> =
        LazyLock::new(|| all().map(|row| (row.name, row)).collect());
    BY_NAME.get(name).copied()
}

/// The operation on one element of an operation on pairs.
pub fn pair_element(name: &str) -> Option<&'static str> {
    Some(match name {
        "v_pk_add_f32" => "v_add_f32",
        "v_pk_mul_f32" => "v_mul_f32",
        "v_pk_fma_f32" => "v_fma_f32",
        "v_pk_mov_b32" => "v_mov_b32",
        "v_pk_add_f16" => "v_add_f16",
        "v_pk_mul_f16" => "v_mul_f16",
        "v_pk_fma_f16" => "v_fma_f16",
        "v_pk_fmac_f16" => "v_fmac_f16",
        "v_pk_min_f16" => "v_min_f16",
        "v_pk_max_f16" => "v_max_f16",
        "v_pk_min_num_f16" => "v_min_num_f16",
        "v_pk_max_num_f16" => "v_max_num_f16",
        "v_pk_min3_num_f16" => "v_min3_num_f16",
        "v_pk_max3_num_f16" => "v_max3_num_f16",
        "v_pk_minimum_f16" => "v_minimum_f16",
        "v_pk_maximum_f16" => "v_maximum_f16",
        "v_pk_minimum3_f16" => "v_minimum3_f16",
        "v_pk_maximum3_f16" => "v_maximum3_f16",
        "v_pk_add_u16" | "v_pk_add_i16" => "v_add_u16",
        "v_pk_sub_u16" | "v_pk_sub_i16" => "v_sub_u16",
        "v_pk_mul_lo_u16" => "v_mul_lo_u16",
        "v_pk_mad_u16" | "v_pk_mad_i16" => "v_mad_u16",
        "v_pk_lshlrev_b16" => "v_lshlrev_b16",
        "v_pk_lshrrev_b16" => "v_lshrrev_b16",
        "v_pk_ashrrev_i16" => "v_ashrrev_i16",
        "v_pk_min_u16" => "v_min_u16",
        "v_pk_max_u16" => "v_max_u16",
        "v_pk_min_i16" => "v_min_i16",
        "v_pk_max_i16" => "v_max_i16",
        "v_pk_min3_u16" => "v_min3_u16",
        "v_pk_max3_u16" => "v_max3_u16",
        "v_pk_min3_i16" => "v_min3_i16",
        "v_pk_max3_i16" => "v_max3_i16",
        _ => return None,
    })
}

/// All templates.
pub fn all() -> impl Iterator<Item = &'static Lowering> {
    [
        bits::TABLE,
        &bytes::TABLE,
        comparisons::TABLE,
        conversions::TABLE,
        &division::TABLE,
        extremes::TABLE,
        integers::TABLE,
        numbers::TABLE,
        &transcendental::TABLE,
    ]
    .into_iter()
    .flatten()
}
