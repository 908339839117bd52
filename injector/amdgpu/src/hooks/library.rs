//! C sources of the hooks that inject faults.

use super::request::Request;
use flipwave_hooks::hook::Source;
use flipwave_injector::FloatFormat;

/// Source shared by all hooks.
const FAULT: &str = include_str!("../../library/fault.c");

/// Sources by name.
const SOURCES: [(&str, &str); 8] = [
    ("bits", include_str!("../../library/bits.c")),
    ("branch", include_str!("../../library/branch.c")),
    ("event", include_str!("../../library/event.c")),
    ("memory", include_str!("../../library/memory.c")),
    ("number", include_str!("../../library/number.c")),
    ("register", include_str!("../../library/register.c")),
    ("source", include_str!("../../library/source.c")),
    ("unit", include_str!("../../library/unit.c")),
];

/// Concatenates the sources of a request, with space for the state of this many waves.
pub(super) fn source(request: &Request, waves: u64) -> Source {
    let names = request.sources();
    let known =
        |name: &str| SOURCES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    let parts = std::iter::once(FAULT).chain(names.into_iter().filter_map(known));
    let mut defines = vec![("WAVES", waves), ("WORDS", request.words().into())];
    if let Some(format) = request.format {
        let (exponent, fraction, shift) = parts_of(format);
        defines.extend([("EXPONENT", exponent), ("FRACTION", fraction), ("SHIFT", shift)]);
    }
    Source {
        name: format!("{}.c", names.join("_")),
        text: parts.collect::<Vec<_>>().join("\n"),
        include: Vec::new(),
        defines: defines
            .into_iter()
            .map(|(name, value)| (name.into(), value.to_string()))
            .collect(),
    }
}

/// Number of exponent bits, number of fraction bits, and position of the number in the value.
fn parts_of(format: FloatFormat) -> (u64, u64, u64) {
    match format {
        FloatFormat::F16 => (5, 10, 0),
        FloatFormat::F16High => (5, 10, 16),
        FloatFormat::Bf16 => (8, 7, 0),
        FloatFormat::Bf16High => (8, 7, 16),
        FloatFormat::F32 => (8, 23, 0),
        FloatFormat::F64 => (11, 52, 0),
    }
}
