//! Results recorded by hooks: the structures `wave` of `fault.c`.

use crate::inject::injection::InjectedChange;

/// The variable that contains all structures.
pub const WAVES: &str = "waves";
/// Number of 64-bit fields of a structure.
const NUMBERS: usize = 6;
/// Size of a structure in bytes.
pub const WAVE_BYTES: usize = 8 * NUMBERS;

/// The values struck in a dispatch, from the numbers in the variable [`WAVES`]; `None` if nothing was struck. The
/// values are those of the wave with the lowest number.
pub fn found_in(numbers: &[u64]) -> Option<InjectedChange> {
    let (waves, _) = numbers.as_chunks::<NUMBERS>();
    let struck = waves.iter().filter_map(|[_, words, before, after, _, _]| {
        (*words > 0).then_some(InjectedChange {
            before: *before,
            after: *after,
            words: *words,
            absorbed: false,
        })
    });
    struck.reduce(together)
}

/// Combines two results; the values are those of the first.
pub fn together(first: InjectedChange, then: InjectedChange) -> InjectedChange {
    InjectedChange { words: first.words + then.words, ..first }
}
