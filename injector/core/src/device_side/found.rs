//! What hooks found: the structures `wave` of `fault.c`.

use crate::inject::injection::Struck;
use flipwave_hooks::hook::{VariableError, Variables};

/// The variable with all of them.
pub(super) const WAVES: &str = "waves";
/// 64-bit numbers of a structure.
const NUMBERS: usize = 6;
/// Bytes of a structure.
pub(super) const WAVE_BYTES: usize = 8 * NUMBERS;

/// What the waves of a dispatch had struck; nothing where that is nothing. The values are those of
/// the wave with the lowest number.
pub(super) fn found(variables: &Variables<'_>) -> Result<Option<Struck>, VariableError> {
    Ok(found_in(&variables.numbers(WAVES)?))
}

/// The same of the variable's numbers.
pub(super) fn found_in(numbers: &[u64]) -> Option<Struck> {
    let (waves, _) = numbers.as_chunks::<NUMBERS>();
    let struck = waves.iter().filter_map(|[_, words, before, after, _, _]| {
        (*words > 0).then_some(Struck {
            before: *before,
            after: *after,
            words: *words,
            absorbed: false,
        })
    });
    struck.reduce(together)
}

/// What was struck first, and then.
pub(super) fn together(first: Struck, then: Struck) -> Struck {
    Struck { words: first.words + then.words, ..first }
}
