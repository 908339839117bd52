//! Results of operations, computed for all lanes of a wave.
//!
//! A [`Compute`] maps the sources of a wave to its results. Values are bits in the lowest bits of 64; those
//! of signed types may have any higher bits in results, and have none in sources.

mod approximate;
mod atomic;
mod bits;
mod compare;
mod convert;
mod float;
mod integer;
mod lanes;
mod matrix;
mod packed;
mod row;
mod select;
mod small_float;

pub(crate) use atomic::{Update, atomic_arithmetic};
pub(crate) use bits::repack;
pub(crate) use matrix::{ElementPlace, Operands, exactness, place, value};
pub(crate) use row::{LANES, Operation, Row, low};

use crate::Gap;
use flipwave_machine::Exactness;
use flipwave_ptx::{Class, Form, ScalarType};

/// The operation of a form whose operands are values of lanes.
///
/// # Errors
/// A gap for forms that are not implemented.
pub(crate) fn operation(form: &Form) -> Result<Operation, Gap> {
    // Predicates have logic only; values of 128 bits are moved by `repack`.
    let has_predicates = matches!(form.class(), Some(Class::Logic | Class::Move | Class::Lanes));
    let is_supported = |kind: &ScalarType| match kind {
        ScalarType::Pred => has_predicates,
        kind => kind.bits() <= 64,
    };
    if !form.types.iter().all(is_supported) {
        return Err(Gap::form());
    }
    if let Some(found) = approximate::operation(form) {
        return found;
    }
    let kind = form.result().unwrap_or(ScalarType::B32);
    let source = form.source().unwrap_or(kind);
    let compute = match form.class() {
        Some(Class::Convert) => convert::compute(form),
        Some(Class::Compare) => compare::compute(form),
        Some(Class::Lanes) => lanes::compute(form),
        Some(Class::Logic) => bits::compute(form),
        Some(Class::Move) => select::compute(form),
        Some(Class::Arithmetic) if form.opcode() == "testp" => compare::test_property(form),
        Some(Class::Arithmetic) if kind.is_float() || source.is_float() => match kind {
            ScalarType::F16x2 | ScalarType::Bf16x2 | ScalarType::F32x2 => packed::compute(form),
            _ => float::compute(form),
        },
        Some(Class::Arithmetic) => integer::compute(form),
        _ => Err(Gap::form()),
    };
    let exactness = exactness_of(form);
    compute.map(|compute| Operation { compute, exactness })
}

/// Exactness of a form that is no approximation.
fn exactness_of(form: &Form) -> Exactness {
    let has_rounding = ["rn", "rz", "rm", "rp"].iter().any(|name| form.has(name));
    let is_sum = matches!(form.opcode(), "add" | "sub" | "mul");
    let is_float = form.result().is_some_and(ScalarType::is_float);
    if !is_sum || !is_float || has_rounding {
        return Exactness::Exact;
    }
    let text = "not settled: without a rounding modifier, an assembler may contract multiplications and \
                additions to fma; here, each is rounded by itself";
    Exactness::NotSettled(text.to_owned())
}
