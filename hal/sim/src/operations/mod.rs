//! The vector operations: one table row each, in the words of the ISA manual ("AMD Instinct
//! MI200 Instruction Set Architecture", chapter "Instructions").
//!
//! Sources stand in the order in which the assembler prints them. A destination that is also
//! read (`v_fmac_f32`) follows as the last source, as does VCC where it is read without being
//! printed (`v_div_fmas_f32`). Lane masks are `bool`. Names are the mnemonics without encoding
//! suffix; integer operations whose `clamp` saturates have a row of their own, `"... clamp"`.

pub(crate) mod binary16;
mod bits;
mod choice;
mod compare;
mod convert;
mod cross_lane;
mod cube;
mod division;
mod dot;
mod double;
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
mod wide;

use crate::lane_value::Kind;
use crate::op::ScalarFunction;
use crate::vector::VectorOperation;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Makes a table of operations.
///
/// The attributes say whether denormals are flushed as the mode asks, whether NaN results are
/// settled (see [`crate::vector::LaneOperation`]) and which constructor of [`VectorOperation`]
/// compiles the rows.
macro_rules! operations {
    (
        $(#[$documentation:meta])*
        $table:ident { flushes: $flushes:literal, settles: $settles:literal, levels: $of:ident }
        $($name:tt ($($argument:ident: $type:ty),* $(; $context:ident)?) -> $result:ty $body:block)*
    ) => {
        $(#[$documentation])*
        pub(super) static $table: &[$crate::vector::VectorOperation] = &[$({
            struct Row;
            impl $crate::vector::LaneOperation for Row {
                type Arguments = ($($type,)*);
                type Result = $result;
                const FLUSHES: bool = $flushes;
                const SETTLES: bool = $settles;
                #[inline(always)]
                fn apply(
                    ($($argument,)*): Self::Arguments,
                    _context: $crate::vector::Context,
                ) -> $result {
                    $(let $context = _context;)?
                    $body
                }
            }
            $crate::vector::VectorOperation::$of::<Row>($name)
        }),*];
    };
}
use operations;

/// All tables.
static TABLES: &[&[VectorOperation]] = &[
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
    convert::TO_FLOAT,
    convert::TO_INTEGER,
    convert::PACKING,
    cube::TABLE,
    division::SCALE,
    division::FMAS,
    division::FIXUP,
    division::TRIGONOMETRY,
    dot::INTEGER,
    dot::FLOAT,
    double::ARITHMETIC,
    double::CHOICE,
    double::PARTS,
    half_precision::ARITHMETIC,
    half_precision::UNFUSED,
    half_precision::CHOICE,
    half_precision::PARTS,
    integer::TABLE,
    media::TABLE,
    mixed::TABLE,
    packed::INTEGER,
    packed::HALF,
    packed::SINGLE,
    packed::MOVES,
    saturating::TABLE,
    short::TABLE,
    single::ARITHMETIC,
    single::UNFUSED,
    single::CHOICE,
    single::PARTS,
    transcendental::ROOTS,
    transcendental::SINGLE,
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

/// The error in units of the last place that an operation may have whose bits the ISA leaves open.
pub fn accuracy(name: &str) -> Option<f32> {
    transcendental::ACCURACY
        .iter()
        .find(|(table, _)| table.iter().any(|operation| operation.name == name))
        .map(|(_, bound)| *bound)
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

/// The whole-wave operation of a canonical name.
pub fn find_whole(name: &str) -> Option<&'static WholeWaveOperation> {
    cross_lane::TABLE.iter().chain(matrix::TABLE).find(|operation| operation.name == name)
}

#[cfg(test)]
pub(crate) mod tests;
