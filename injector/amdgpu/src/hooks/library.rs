//! C sources of the hooks that inject faults.

use super::request::Request;
use flipwave_hooks::hook::{HookData, Source};
use flipwave_injector::hooks::{ComposedSource, PREFIX, SourceFunction, SourceRequest, SourceSet};

/// Separates the names of the library from those of a user's function.
const NAMES: &str = include_str!("../../library/names.c");
/// Sources by name, in addition to those of all instruction sets.
const SOURCES: [(&str, &str); 5] = [
    ("branch", include_str!("../../library/branch.c")),
    ("given", include_str!("../../library/given.c")),
    ("memory", include_str!("../../library/memory.c")),
    ("register", include_str!("../../library/register.c")),
    ("source", include_str!("../../library/source.c")),
];

/// The sources of AMD's instruction sets. Fused operations round once: results of a user's function would differ from
/// those on the host.
const SET: SourceSet = SourceSet {
    sources: &SOURCES,
    first: "given",
    names: NAMES,
    before_function: "#pragma STDC FP_CONTRACT OFF",
};

/// Concatenates the sources of a request, with space for the state of this many waves.
pub(super) fn source(request: &Request, waves: u64) -> Source {
    let Request { place, format, is_per_lane, .. } = *request;
    let function = request.function;
    let function =
        function.map(|function| SourceFunction { function, bits: place.bits(), is_per_lane });
    let (names, words) = (request.sources(), request.words());
    let composed = SET.compose(&SourceRequest { names, waves, words, format, function });
    let ComposedSource { name, text, include, defines } = composed;
    Source { name, text, include, defines }
}

/// Names the variables of hooks as in the library.
pub(super) fn with_library_names(data: HookData) -> HookData {
    let symbols = data.symbols.into_iter().map(|(name, symbol)| match name.strip_prefix(PREFIX) {
        Some(name) => (name.to_owned(), symbol),
        None => (name, symbol),
    });
    HookData { symbols: symbols.collect(), ..data }
}
