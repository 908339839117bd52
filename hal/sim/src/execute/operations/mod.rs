//! The vector operations: one table row each, in the words of the ISA manual ("AMD Instinct
//! MI200 Instruction Set Architecture", chapter "Instructions").
//!
//! Sources stand in the order in which the assembler prints them. A destination that is also
//! read (`v_fmac_f32`) follows as the last source, as does VCC where it is read without being
//! printed (`v_div_fmas_f32`). Lane masks are `bool`. Names are the mnemonics without encoding
//! suffix; integer operations whose `clamp` saturates have a row of their own, `"... clamp"`.

mod bits;
mod choice;
mod compare;
mod convert;
mod cross_lane;
mod cube;
mod division;
mod dot;
mod double;
mod eighth;
mod extremes;
mod half_precision;
mod integer;
mod matrix;
mod media;
mod mixed;
mod packed;
mod saturating;
mod short;
mod single;
mod transcendental;
mod wave_matrix;
mod wide;

pub use choice::{maximum_number, minimum_number};

use crate::execute::lane::{Kind, Numerics};
use crate::execute::vector::VectorOperation;
use crate::instruction::ScalarFunction;
use flipwave_isa::Generation;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Makes a table of operations.
///
/// The attributes say what holds for all its rows: what becomes of denormals, what decides how
/// they round and which NaN comes out (see [`Numerics`]), which constructor of
/// [`VectorOperation`] compiles them, and how far from exact they may be.
macro_rules! operations {
    (
        $(#[$documentation:meta])*
        $table:ident {
            denormals: $denormals:ident, rounds: $rounds:ident, nans: $nans:ident, levels: $of:ident
            $(, accuracy: $accuracy:expr)?
        }
        $($name:tt ($($argument:ident: $type:ty),* $(; $context:ident)?) -> $result:ty $body:block)*
    ) => {
        $(#[$documentation])*
        pub(super) static $table: &[$crate::execute::vector::VectorOperation] = {
            const NUMERICS: $crate::execute::lane::Numerics = $crate::execute::lane::Numerics {
                denormals: $crate::execute::lane::Denormals::$denormals,
                rounds: $crate::execute::lane::Rounding::$rounds,
                nans: $crate::execute::lane::Nans::$nans,
                accuracy: {
                    const STATED: &[$crate::execute::lane::Accuracy] = &[$($accuracy)?];
                    STATED.first().copied()
                },
            };
            &[$({
                struct Row;
                impl $crate::execute::vector::LaneOperation for Row {
                    type Arguments = ($($type,)*);
                    type Result = $result;
                    const NUMERICS: $crate::execute::lane::Numerics = NUMERICS;
                    #[inline(always)]
                    fn apply<R: $crate::execute::lane::rounding::Rounder>(
                        ($($argument,)*): Self::Arguments,
                        _context: $crate::execute::vector::Context<R>,
                    ) -> $result {
                        $(let $context = _context;)?
                        $body
                    }
                }
                $crate::execute::vector::VectorOperation::$of::<Row>($name)
            }),*]
        };
    };
}
use operations;

/// All tables.
pub static TABLES: &[&[VectorOperation]] = &[
    bits::TABLE,
    compare::I16,
    compare::I32,
    compare::I64,
    compare::U16,
    compare::U32,
    compare::U64,
    compare::F16,
    compare::F32,
    compare::F64,
    compare::CLASS,
    convert::WIDENING,
    convert::NARROWING,
    convert::TO_INTEGER,
    convert::PACKING,
    convert::BYTES,
    cube::COORDINATES,
    cube::MAJOR,
    division::SCALE,
    division::FMAS,
    division::FIXUP,
    division::TRIGONOMETRY,
    dot::INTEGER,
    dot::FLOAT,
    dot::NEWER,
    dot::MIXED_BYTES,
    dot::MIXED_NIBBLES,
    double::ARITHMETIC,
    double::EXACT,
    double::CHOICE,
    double::PARTS,
    eighth::TABLE,
    extremes::SINGLE,
    extremes::DOUBLE,
    extremes::HALF,
    extremes::PACKED,
    half_precision::ARITHMETIC,
    half_precision::EXACT,
    half_precision::UNFUSED,
    half_precision::CHOICE,
    half_precision::PARTS,
    integer::TABLE,
    media::TABLE,
    mixed::TABLE,
    packed::INTEGER,
    packed::HALF,
    packed::CHOICE,
    packed::SINGLE,
    packed::MOVES,
    saturating::TABLE,
    short::TABLE,
    single::ARITHMETIC,
    single::EXACT,
    single::UNFUSED,
    single::CHOICE,
    single::PARTS,
    transcendental::ROOTS,
    transcendental::SINGLE,
    transcendental::TURNS,
    transcendental::HALF,
    transcendental::DOUBLE,
    wide::TABLE,
];

/// The operation of a canonical name.
pub fn find(name: &str) -> Option<&'static VectorOperation> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static VectorOperation>> =
        LazyLock::new(|| {
            TABLES.iter().copied().flatten().map(|operation| (operation.name, operation)).collect()
        });
    BY_NAME.get(name).copied()
}

/// What holds of the arithmetic of a vector operation; `None` if there is no such operation, or
/// if it works on the wave as a whole. `operation` is its canonical name.
pub fn numerics(operation: &str) -> Option<Numerics> {
    find(operation).map(|row| row.numerics)
}

/// What is not settled by anything published of an operation that is executed; `operation` is its
/// canonical name.
pub fn unsettled(operation: &str, generation: Generation) -> Option<&'static str> {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| operation.starts_with(prefix));
    if begins(&["v_wmma_i32", "v_swmmac_i32"]) {
        None
    } else if begins(&["v_wmma_", "v_swmmac_"]) {
        Some("the order of the sums, their roundings, which NaN")
    } else if begins(&["v_dot2_f32_bf16", "v_dot2acc_f32_bf16", "v_dot2_bf16"])
        || begins(&["v_dot2_f16_f16", "v_dot4_f32_"])
    {
        Some("the roundings of the steps, denormals")
    } else if generation >= Generation::Gfx12 && begins(&["v_cvt_sr_fp8", "v_cvt_sr_bf8"]) {
        Some("how the random bits are added")
    } else if begins(&["s_"]) && operation.ends_with("_f16") && !begins(&["s_cmp_", "s_cvt_"]) {
        Some("the upper half of the result")
    } else if begins(&["v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32"]) && generation >= Generation::Gfx12 {
        Some("which NaN")
    } else {
        None
    }
}

/// An operation on the wave as a whole.
pub struct WholeWaveOperation {
    /// Canonical name.
    pub name: &'static str,
    /// Kinds of the sources.
    pub sources: &'static [Kind],
    /// What executes it.
    pub function: ScalarFunction,
}

/// The whole-wave operation of a canonical name, as a generation has it.
pub fn find_whole(name: &str, generation: Generation) -> Option<&'static WholeWaveOperation> {
    whole_wave_operations(generation).find(|operation| operation.name == name)
}

pub fn whole_wave_operations(
    generation: Generation,
) -> impl Iterator<Item = &'static WholeWaveOperation> {
    let matrices = matrix::operations(generation).chain(wave_matrix::TABLE);
    cross_lane::TABLE.iter().chain(matrices)
}
