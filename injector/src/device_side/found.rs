//! What hooks found: the structures `wave` of `fault.c`.

use crate::injection::Struck;
use flipwave_hooks::variables::{VariableError, Variables};

/// 64-bit numbers of a structure.
const NUMBERS: usize = 6;

/// What the waves of a dispatch had struck; nothing where that is nothing. The values are those of
/// the wave with the lowest number.
pub(super) fn found(variables: &Variables<'_>) -> Result<Option<Struck>, VariableError> {
    let numbers = variables.numbers("waves")?;
    let (waves, _) = numbers.as_chunks::<NUMBERS>();
    let struck = waves.iter().filter_map(|[_, words, before, after, _, _]| {
        (*words > 0).then_some(Struck { before: *before, after: *after, words: *words })
    });
    Ok(struck.reduce(together))
}

/// What was struck first, and then.
pub(super) fn together(first: Struck, then: Struck) -> Struck {
    Struck { words: first.words + then.words, ..first }
}
