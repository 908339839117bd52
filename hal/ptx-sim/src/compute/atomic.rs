//! Arithmetic of atomic operations.

use super::operation;
use crate::Gap;
use flipwave_ptx::{Form, ScalarType};
use std::sync::Arc;

/// The new value of memory, from the old value and the operands.
pub(crate) type Update = Arc<dyn Fn(u64, [u64; 2]) -> u64 + Send + Sync>;

/// The function of `add`, `min` or `max` on a type.
///
/// # Errors
/// A gap for types without such an operation.
pub(crate) fn atomic_arithmetic(
    name: &str,
    kind: ScalarType,
    flushes: bool,
) -> Result<Update, Gap> {
    let modifier = if flushes { ".ftz" } else { "" };
    let rounding = if kind.is_float() && name == "add" { ".rn" } else { "" };
    let form = Form::of(&format!("{name}{rounding}{modifier}{kind}"));
    let compute = operation(&form)?.compute;
    Ok(Arc::new(move |old, [operand, _]| {
        let row = |value: u64| {
            let mut row = [0; super::row::LANES];
            row[0] = value;
            row
        };
        let mut results = [row(0)];
        compute(&[row(old), row(operand)], 1, &mut results);
        results[0][0]
    }))
}
