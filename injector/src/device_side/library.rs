//! The sources of the hooks that strike.

use flipwave_hooks::hook::Source;

/// What all hooks begin with.
const FAULT: &str = include_str!("../../library/fault.c");

/// Sources, by name.
const SOURCES: [(&str, &str); 6] = [
    ("branch", include_str!("../../library/branch.c")),
    ("event", include_str!("../../library/event.c")),
    ("memory", include_str!("../../library/memory.c")),
    ("register", include_str!("../../library/register.c")),
    ("source", include_str!("../../library/source.c")),
    ("unit", include_str!("../../library/unit.c")),
];

/// Sources in one, with room for the counts of so many waves.
pub(super) fn source(names: [&str; 2], waves: u64) -> Source {
    let known = |name: &str| SOURCES.iter().find(|(own, _)| *own == name).map(|(_, text)| *text);
    let parts = std::iter::once(FAULT).chain(names.into_iter().filter_map(known));
    Source {
        name: format!("{}.c", names.join("_")),
        text: parts.collect::<Vec<_>>().join("\n"),
        include: Vec::new(),
        defines: vec![("WAVES".to_owned(), waves.to_string())],
    }
}
