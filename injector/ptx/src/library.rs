//! C sources of the hooks that inject faults.

use crate::request::Request;
use flipwave_hooks::hook::{Source, c_string};
use flipwave_injector::{Place, hooks};

/// Separates the names of the library from those of a user's function.
const NAMES: &str = include_str!("../library/names.c");
/// Prefix of those names.
pub(crate) const PREFIX: &str = "injection_";

/// Sources by name, in addition to those of all instruction sets.
const SOURCES: [(&str, &str); 8] = [
    ("branch", include_str!("../library/branch.c")),
    ("deferred", include_str!("../library/deferred.c")),
    ("lanes", include_str!("../library/lanes.c")),
    ("memory", include_str!("../library/memory.c")),
    ("reached", include_str!("../library/reached.c")),
    ("register", include_str!("../library/register.c")),
    ("source", include_str!("../library/source.c")),
    ("wave", include_str!("../library/wave.c")),
];

/// Facts that a user's function receives, as in `flipwave.h`, and the functions that it may define.
const FUNCTION: &str = "
typedef struct { uint32_t bits; uint32_t lane; uint64_t random; } flipwave_fault;
static inline uint32_t flipwave_fault_word(uint32_t value, flipwave_fault fault);
static inline double flipwave_fault_number(double value, flipwave_fault fault);
";

/// Concatenates the sources of a request, with space for the state of this many waves.
pub(crate) fn source(request: &Request, waves: u64) -> Source {
    let names = request.sources();
    let known = |name: &str| {
        let special = SOURCES.iter().find(|(known, _)| *known == name);
        special.map(|(_, text)| *text).or_else(|| hooks::source(name))
    };
    let library = ["lanes", "fault"].iter().chain(&names).filter_map(|name| known(name));
    let library = library.collect::<Vec<_>>().join("\n");
    let mut defines = vec![("WAVES", waves), ("WORDS", request.words().into())];
    if let Some(format) = request.format {
        defines.extend(hooks::format_macros(format));
    }
    let name = format!("{}.c", names.join("_"));
    let (text, include) = match request.function {
        None => (library, Vec::new()),
        Some(function) => {
            // All registers of PTX are per lane.
            let place = request.place;
            let is_per_lane = place.is_per_lane() || matches!(place, Place::Destination(_));
            let facts = [("BITS", request.place.bits().into()), ("PER_LANE", is_per_lane.into())];
            defines.extend(facts.into_iter().chain([("FLIPWAVE_FAULT_MODEL", 1)]));
            let source = function.source();
            let text = format!(
                "{FUNCTION}\n# 1 {}\n{}\n# 1 {}\n{NAMES}\n{library}",
                c_string(&source.file),
                source.text,
                c_string(&name)
            );
            (text, source.include.clone())
        }
    };
    let defines = defines.into_iter().map(|(name, value)| (name.into(), value.to_string()));
    Source { name, text, include, defines: defines.collect() }
}

/// Name of a hook or variable in the sources of a request.
pub(crate) fn library_name(request: &Request, name: &str) -> String {
    match request.function {
        None => name.to_owned(),
        Some(_) => format!("{PREFIX}{name}"),
    }
}
