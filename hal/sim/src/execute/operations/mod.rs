//! The vector operations: one table row each, following the definitions of the ISA manual ("AMD
//! Instinct MI200 Instruction Set Architecture", chapter "Instructions").
//!
//! Sources are in the order in which the assembler prints them. A destination that is also read
//! (`v_fmac_f32`) follows as the last source, as does VCC if it is read without being printed
//! (`v_div_fmas_f32`). Lane masks are `bool`. Names are the mnemonics without encoding suffix;
//! integer operations whose `clamp` saturates have a separate row, `"... clamp"`.

mod bits;
mod brain;
mod choice;
mod compare;
mod convert;
mod cross_lane;
mod cube;
mod division;
mod dot;
mod double;
pub mod elementary;
mod extremes;
mod half_precision;
mod integer;
mod interpolation;
mod lane_groups;
mod lookup;
mod matrix;
mod media;
mod mixed;
mod packed;
mod row;
mod saturating;
mod scaled;
mod short;
mod single;
mod small_float;
mod small_matrix;
pub mod sources;
mod summed_dot;
pub mod transcendental;
mod variant;
mod wave_matrix;
mod wide;
mod wide_float;

pub use choice::{maximum_number, minimum_number};
pub use row::WholeWaveOperation;
pub use variant::Variant;

use crate::execute::lane::Numerics;
use crate::instruction::VectorOperation;
use crate::wave::Machine;
use flipwave_arch::ProductShape;
use flipwave_isa::{Inst, Target};
use std::collections::HashMap;
use std::sync::LazyLock;
use variant::Edition;

/// All tables of vector operations.
pub static TABLES: &[&[VectorOperation]] = &[
    bits::TABLE,
    brain::ARITHMETIC,
    brain::MIXED,
    brain::TRANSCENDENTAL,
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
    dot::HALVES,
    dot::HALVES_GFX90A,
    dot::HALVES_GFX940,
    dot::MEASURED_GFX11,
    dot::MEASURED_GFX12,
    dot::SHORT_GFX12,
    dot::NEWER,
    dot::MIXED_BYTES,
    dot::MIXED_NIBBLES,
    dot::BRAIN,
    double::ARITHMETIC,
    double::EXACT,
    double::CHOICE,
    double::PARTS,
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
    scaled::NARROWING,
    scaled::NARROWING_BRAIN,
    scaled::STOCHASTIC,
    scaled::STOCHASTIC_BRAIN,
    scaled::WIDENING,
    scaled::TO_HALVES,
    short::TABLE,
    single::ARITHMETIC,
    single::EXACT,
    single::UNFUSED,
    single::CHOICE,
    single::PARTS,
    small_float::FROM_FP8,
    small_float::FROM_BF8,
    small_float::FROM_E5M3,
    small_float::FROM_FP8_FNUZ,
    small_float::FROM_BF8_FNUZ,
    small_float::PAIRS,
    small_float::SETTLED_PAIRS,
    small_float::HALVES,
    small_float::FROM_BYTES_TO_HALVES,
    small_float::FROM_HALVES,
    small_float::NEWER_STOCHASTIC,
    small_float::STOCHASTIC,
    small_float::FROM_BRAIN,
    transcendental::ROOTS,
    transcendental::SINGLE,
    transcendental::TURNS,
    transcendental::HALF,
    transcendental::DOUBLE,
    transcendental::TANGENT,
    wide::TABLE,
];

/// Returns the row of a variant of an operation with a canonical name.
pub fn find_variant(name: &str, variant: Variant) -> Option<&'static VectorOperation> {
    static ROWS: LazyLock<HashMap<(&'static str, Variant), &'static VectorOperation>> =
        LazyLock::new(|| {
            let rows = TABLES.iter().copied().flatten();
            rows.filter_map(|row| Some((Variant::of_row(row.name)?, row))).collect()
        });
    ROWS.get(&(name, variant)).copied()
}

/// Returns the row with a name: that of an operation, followed by the words of the variant.
pub fn find(row: &str) -> Option<&'static VectorOperation> {
    let (name, variant) = Variant::of_row(row)?;
    find_variant(name, variant)
}

/// Returns the row of an operation for a machine: that of the machine's edition, if the operation has one.
/// `signed_sources` are the bits of [`Variant::signed_sources`].
pub fn find_for(
    name: &str,
    signed_sources: Option<u8>,
    machine: Machine,
) -> Option<&'static VectorOperation> {
    let editions = Edition::of(machine).iter().copied().map(Some).chain([None]);
    let variants = editions.map(|edition| Variant { signed_sources, edition, saturates: false });
    variants.into_iter().find_map(|variant| find_variant(name, variant))
}

/// Returns the arithmetic properties of a vector operation; `None` if there is no such operation,
/// or if it is a whole-wave operation. `operation` is its canonical name.
pub fn numerics(operation: &str) -> Option<Numerics> {
    find(operation).map(|row| row.numerics)
}

/// Returns the shape of a matrix instruction on a target; `None` for other instructions.
pub fn matrix_shape(inst: &Inst, target: &Target) -> Option<ProductShape> {
    // Rows do not depend on the number of lanes.
    let machine = Machine::new(target, 64);
    Some(find_whole(inst.operation.name(), machine)?.matrix?.shape)
}

/// Returns the whole-wave operation with a canonical name for a machine.
pub fn find_whole(name: &str, machine: Machine) -> Option<&'static WholeWaveOperation> {
    whole_wave_operations(machine).find(|operation| operation.name == name)
}

pub fn whole_wave_operations(
    machine: Machine,
) -> impl Iterator<Item = &'static WholeWaveOperation> {
    let matrices = matrix::operations(machine).chain(wave_matrix::TABLE).chain(small_matrix::TABLE);
    cross_lane::TABLE
        .iter()
        .chain(lane_groups::TABLE)
        .chain(lookup::TABLE)
        .chain(interpolation::TABLE)
        .chain(wide_float::operations())
        .chain(matrices)
}
