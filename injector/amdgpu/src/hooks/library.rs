//! C sources of the hooks that inject faults.

use super::request::Request;
use flipwave_hooks::hook::{HookData, Source, c_string};
use flipwave_injector::FloatFormat;

/// Separates the names of the library from those of a user's function.
const NAMES: &str = include_str!("../../library/names.c");
/// Prefix of those names.
const PREFIX: &str = "injection_";
/// Source shared by all hooks.
const FAULT: &str = include_str!("../../library/fault.c");

/// Sources by name.
const SOURCES: [(&str, &str); 11] = [
    ("bits", include_str!("../../library/bits.c")),
    ("branch", include_str!("../../library/branch.c")),
    ("event", include_str!("../../library/event.c")),
    ("format", include_str!("../../library/format.c")),
    ("function_number", include_str!("../../library/function_number.c")),
    ("function_word", include_str!("../../library/function_word.c")),
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
    let library = std::iter::once(FAULT).chain(names.iter().copied().filter_map(known));
    let library = library.collect::<Vec<_>>().join("\n");
    let mut defines = vec![("WAVES", waves), ("WORDS", request.words().into())];
    if let Some(format) = request.format {
        let (exponent, fraction, shift) = parts_of(format);
        defines.extend([("EXPONENT", exponent), ("FRACTION", fraction), ("SHIFT", shift)]);
    }
    let name = format!("{}.c", names.join("_"));
    let (text, include) = match request.function {
        None => (library, Vec::new()),
        Some(function) => {
            let (bits, is_per_lane) = (request.place.bits(), request.is_per_lane);
            let facts = [("BITS", bits.into()), ("PER_LANE", is_per_lane.into())];
            defines.extend(facts.into_iter().chain([("FLIPWAVE_FAULT_MODEL", 1)]));
            let source = function.source();
            // Fused operations round once: results would differ from those on the host.
            let text = format!(
                "#pragma STDC FP_CONTRACT OFF\n# 1 {}\n{}\n# 1 {}\n{NAMES}\n{library}",
                c_string(&source.file),
                source.text,
                c_string(&name)
            );
            (text, source.include.clone())
        }
    };
    Source {
        name,
        text,
        include,
        defines: defines
            .into_iter()
            .map(|(name, value)| (name.into(), value.to_string()))
            .collect(),
    }
}

/// Name of a hook in the sources of a request.
pub(super) fn hook_name(request: &Request, hook: &str) -> String {
    match request.function {
        None => hook.to_owned(),
        Some(_) => format!("{PREFIX}{hook}"),
    }
}

/// Names the variables of hooks as in the library.
pub(super) fn with_library_names(data: HookData) -> HookData {
    let symbols = data.symbols.into_iter().map(|(name, symbol)| match name.strip_prefix(PREFIX) {
        Some(name) => (name.to_owned(), symbol),
        None => (name, symbol),
    });
    HookData { symbols: symbols.collect(), ..data }
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
