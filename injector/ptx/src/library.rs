//! C sources of the hooks that inject faults.

use crate::request::Request;
use flipwave_hooks::hook::Source;
use flipwave_injector::Place;
use flipwave_injector::hooks::{ComposedSource, SourceFunction, SourceRequest, SourceSet};

/// Separates the names of the library from those of a user's function.
const NAMES: &str = include_str!("../library/names.c");

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

/// The sources of PTX.
const SET: SourceSet =
    SourceSet { sources: &SOURCES, first: "lanes", names: NAMES, before_function: FUNCTION };

/// Concatenates the sources of a request, with space for the state of this many waves.
pub(crate) fn source(request: &Request, waves: u64) -> Source {
    let Request { place, format, .. } = *request;
    let function = request.function.map(|function| {
        // All registers of PTX are per lane.
        let is_per_lane = place.is_per_lane() || matches!(place, Place::Destination(_));
        SourceFunction { function, bits: place.bits(), is_per_lane }
    });
    let (names, words) = (request.sources(), request.words());
    let composed = SET.compose(&SourceRequest { names, waves, words, format, function });
    let ComposedSource { name, text, include, defines } = composed;
    Source { name, text, include, defines }
}
