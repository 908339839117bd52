//! Hooks shipped with the engine. A comment at the start of each source describes it and its macros.

use super::Source;

/// Sources by name.
const SOURCES: [(&str, &str); 8] = [
    ("address_divergence", include_str!("../../library/address_divergence.c")),
    ("bank_conflicts", include_str!("../../library/bank_conflicts.c")),
    ("branch_divergence", include_str!("../../library/branch_divergence.c")),
    ("clock", include_str!("../../library/clock.c")),
    ("count", include_str!("../../library/count.c")),
    ("kernel_clock", include_str!("../../library/kernel_clock.c")),
    ("lanes", include_str!("../../library/lanes.c")),
    ("memory_trace", include_str!("../../library/memory_trace.c")),
];

/// The names of all sources, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|(name, _)| *name)
}

/// The source with a name, with values for its macros; `None` if there is none.
pub fn source(name: &str, macros: &[(&str, u64)]) -> Option<Source> {
    let (name, text) = SOURCES.iter().find(|(known, _)| *known == name)?;
    Some(Source {
        name: format!("{name}.c"),
        text: (*text).to_owned(),
        include: Vec::new(),
        defines: macros
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_string()))
            .collect(),
    })
}
