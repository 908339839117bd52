//! What vector operations do in each lane, as IR. The rows of `operations` say the same in Rust, and
//! have the kinds of sources and results; the two are held against each other.
//!
//! A source of kind `F32` or `F16` is of type `F`, one of `F64` of type `E`, a lane mask of type `M`, others
//! of type `W` or `D`; a floating-point result is of type `F` or `E`, others of type `W` or `D`. Half words
//! that are integers are without a sign. What is to be rounded to half precision must be exact, or have
//! twice its digits and two more.

mod bits;
mod bytes;
mod comparisons;
mod conversions;
mod division;
mod extremes;
mod integers;
mod numbers;
mod transcendental;

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// What becomes of NaNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nan {
    /// They are no matter, or what the code does with them is what the operation does.
    Any,
    /// A NaN among the sources gives one; the code does not say which.
    Propagates,
    /// The code is right where no source is a NaN.
    NotAmongSources,
}

/// What an operation does.
pub struct Lowering {
    /// Its name, as the rows of `operations` have it.
    pub name: &'static str,
    /// See [`super::template`].
    pub code: &'static str,
    /// What becomes of NaNs.
    pub nan: Nan,
    /// What becomes of the result.
    pub result: Stored,
    /// Whether its `%n` has lanes that the code does not do right.
    pub has_doubts: bool,
    /// Whether the argument after its sources is the number of each lane.
    pub takes_lanes: bool,
}

/// How a result is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As it is.
    Whole,
    /// In the low half, with zeros in the other one: in half precision if it is a number.
    Half,
    /// The same, and the other half stays.
    LowHalf,
    /// In the high half; the other half stays.
    HighHalf,
    /// This and the second result, each in a half: in half precision if they are numbers.
    Halves,
}

/// The code of an operation, by the name of its row.
pub fn find(name: &str) -> Option<&'static Lowering> {
    static BY_NAME: LazyLock<FxHashMap<&'static str, &'static Lowering>> =
        LazyLock::new(|| all().map(|row| (row.name, row)).collect());
    BY_NAME.get(name).copied()
}

/// The operation on each word of one that works on pairs of words.
pub fn of_pairs(name: &str) -> Option<&'static str> {
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

const fn any(name: &'static str, code: &'static str) -> Lowering {
    let (nan, result) = (Nan::Any, Stored::Whole);
    Lowering { name, code, nan, result, has_doubts: false, takes_lanes: false }
}

const fn propagates(name: &'static str, code: &'static str) -> Lowering {
    Lowering { nan: Nan::Propagates, ..any(name, code) }
}

const fn numbers(name: &'static str, code: &'static str) -> Lowering {
    Lowering { nan: Nan::NotAmongSources, ..any(name, code) }
}

const fn half(row: Lowering) -> Lowering {
    Lowering { result: Stored::Half, ..row }
}

const fn low_half(row: Lowering) -> Lowering {
    Lowering { result: Stored::LowHalf, ..row }
}

const fn high_half(row: Lowering) -> Lowering {
    Lowering { result: Stored::HighHalf, ..row }
}

const fn halves(row: Lowering) -> Lowering {
    Lowering { result: Stored::Halves, ..row }
}

const fn by_lane(row: Lowering) -> Lowering {
    Lowering { takes_lanes: true, ..row }
}

const fn doubtful(row: Lowering) -> Lowering {
    Lowering { has_doubts: true, ..row }
}

/// A call of an intrinsic of LLVM.
macro_rules! call {
    ($name:literal, $type:literal, $($argument:literal),+ $(; $more:literal)?) => {
        concat!("%r = call ", $type, " @llvm.", $name, ".", $type, "(", call!(@ $type, $($argument),+),
            $(", ", $more,)? ")")
    };
    (@ $type:literal, $first:literal $(, $rest:literal)*) => {
        concat!($type, " ", $first $(, ", ", $type, " ", $rest)*)
    };
}

/// A line of code of its parts.
macro_rules! line {
    ($($part:literal),+) => { concat!($($part,)+ "\n") };
}

use {call, line};

/// All of them.
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
