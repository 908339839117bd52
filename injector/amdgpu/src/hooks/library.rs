//! C sources of the hooks that inject faults.

use super::request::Request;
use flipwave_hooks::hook::{HookData, Source, c_string};
use flipwave_injector::hooks;

/// Separates the names of the library from those of a user's function.
const NAMES: &str = include_str!("../../library/names.c");
/// Prefix of those names.
const PREFIX: &str = "injection_";
/// Sources by name, in addition to those of all instruction sets.
const SOURCES: [(&str, &str); 5] = [
    ("branch", include_str!("../../library/branch.c")),
    ("given", include_str!("../../library/given.c")),
    ("memory", include_str!("../../library/memory.c")),
    ("register", include_str!("../../library/register.c")),
    ("source", include_str!("../../library/source.c")),
];

/// Concatenates the sources of a request, with space for the state of this many waves.
pub(super) fn source(request: &Request, waves: u64) -> Source {
    let names = request.sources();
    let known = |name: &str| {
        let special = SOURCES.iter().find(|(known, _)| *known == name);
        special.map(|(_, text)| *text).or_else(|| hooks::source(name))
    };
    let library = ["given", "fault"].iter().chain(&names).filter_map(|name| known(name));
    let library = library.collect::<Vec<_>>().join("\n");
    let mut defines = vec![("WAVES", waves), ("WORDS", request.words().into())];
    if let Some(format) = request.format {
        defines.extend(hooks::format_macros(format));
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
