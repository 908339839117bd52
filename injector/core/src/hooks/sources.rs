//! C sources that all instruction sets share.

use crate::fault::{FaultFunction, FloatFormat, FunctionValues};

/// Sources by name.
const SOURCES: [(&str, &str); 8] = [
    ("bits", include_str!("../../library/bits.c")),
    ("event", include_str!("../../library/event.c")),
    ("fault", include_str!("../../library/fault.c")),
    ("format", include_str!("../../library/format.c")),
    ("function_number", include_str!("../../library/function_number.c")),
    ("function_word", include_str!("../../library/function_word.c")),
    ("number", include_str!("../../library/number.c")),
    ("unit", include_str!("../../library/unit.c")),
];

/// The source with a name; `None` if there is none.
pub fn source(name: &str) -> Option<&'static str> {
    SOURCES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Names of the sources of a change: by the user's function that computes the value, or of numbers of a format.
pub fn change_sources(
    function: Option<FaultFunction>,
    format: Option<FloatFormat>,
) -> Vec<&'static str> {
    match function.map(FaultFunction::values) {
        None if format.is_some() => vec!["format", "number"],
        None => vec!["bits"],
        Some(FunctionValues::Words) => vec!["function_word"],
        Some(FunctionValues::Numbers) => vec!["format", "function_number"],
    }
}

/// Macros of a format: numbers of exponent and fraction bits, and the position of the number in the value.
pub fn format_macros(format: FloatFormat) -> [(&'static str, u64); 3] {
    let (exponent, fraction, shift) = match format {
        FloatFormat::F16 => (5, 10, 0),
        FloatFormat::F16High => (5, 10, 16),
        FloatFormat::Bf16 => (8, 7, 0),
        FloatFormat::Bf16High => (8, 7, 16),
        FloatFormat::F32 => (8, 23, 0),
        FloatFormat::F64 => (11, 52, 0),
    };
    [("EXPONENT", exponent), ("FRACTION", fraction), ("SHIFT", shift)]
}
