//! C sources that all instruction sets share.

use crate::fault::{FaultFunction, FloatFormat, FunctionSource, FunctionValues};
use std::path::PathBuf;

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
fn source(name: &str) -> Option<&'static str> {
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
fn format_macros(format: FloatFormat) -> [(&'static str, u64); 3] {
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

/// C sources of the hooks of an instruction set.
#[derive(Clone, Copy, Debug)]
pub struct SourceSet {
    /// Sources by name, in addition to those of all instruction sets.
    pub sources: &'static [(&'static str, &'static str)],
    /// Name of the source with what the others use.
    pub first: &'static str,
    /// Macros that separate the names of the sources from those of a user's function: they begin with [`PREFIX`].
    pub names: &'static str,
    /// Text before a user's function.
    pub before_function: &'static str,
}

/// Prefix of names in sources with a user's function.
pub const PREFIX: &str = "injection_";

/// The hooks of a site, as far as their source depends on it.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    /// Names of the sources.
    pub names: Vec<&'static str>,
    /// Number of waves whose state the hooks keep.
    pub waves: u64,
    /// Number of words of a value.
    pub words: u8,
    /// Format of the struck number, if the fault changes a number.
    pub format: Option<FloatFormat>,
    /// The user's function that changes the value, if any.
    pub function: Option<SourceFunction>,
}

/// A user's function in the source of hooks.
#[derive(Clone, Copy, Debug)]
pub struct SourceFunction {
    /// The function.
    pub function: FaultFunction,
    /// Number of bits of the struck value.
    pub bits: u32,
    /// `true` if lanes have values of their own.
    pub is_per_lane: bool,
}

/// A C source of hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComposedSource {
    /// Its name in messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// Include folders.
    pub include: Vec<PathBuf>,
    /// Macros: names and values.
    pub defines: Vec<(String, String)>,
}

impl SourceSet {
    /// Composes the source of hooks.
    pub fn compose(&self, request: &SourceRequest) -> ComposedSource {
        let SourceRequest { names, waves, words, format, function } = request;
        let known = |name: &&str| {
            let special = self.sources.iter().find(|(known, _)| known == name);
            special.map(|(_, text)| *text).or_else(|| source(name))
        };
        let first = [self.first, "fault"];
        let library = first.iter().chain(names).filter_map(known);
        let library = library.collect::<Vec<_>>().join("\n");
        let mut defines = vec![("WAVES", *waves), ("WORDS", (*words).into())];
        defines.extend(format.map(format_macros).into_iter().flatten());
        let name = format!("{}.c", names.join("_"));
        let (text, include) = match function {
            None => (library, Vec::new()),
            Some(SourceFunction { function, bits, is_per_lane }) => {
                let facts = [("BITS", (*bits).into()), ("PER_LANE", (*is_per_lane).into())];
                defines.extend(facts.into_iter().chain([("FLIPWAVE_FAULT_MODEL", 1)]));
                let FunctionSource { file, text, include, .. } = function.source();
                let (before, names) = (self.before_function, self.names);
                let lines = [quoted(file), quoted(&name)];
                let text = format!(
                    "{before}\n# 1 {}\n{text}\n# 1 {}\n{names}\n{library}",
                    lines[0], lines[1]
                );
                (text, include.clone())
            }
        };
        let defines = defines.into_iter().map(|(name, value)| (name.into(), value.to_string()));
        ComposedSource { name, text, include, defines: defines.collect() }
    }
}

/// The name of a hook or variable in sources with or without a user's function.
pub fn name_in_source(function: Option<FaultFunction>, name: &str) -> String {
    match function {
        None => name.to_owned(),
        Some(_) => format!("{PREFIX}{name}"),
    }
}

/// A text as a string of C.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: SourceSet =
        SourceSet { sources: &[("own", "int own;")], first: "own", names: "", before_function: "" };

    #[test]
    fn sources_are_composed_in_order() {
        let request = SourceRequest {
            names: vec!["bits", "event"],
            waves: 4,
            words: 1,
            format: Some(FloatFormat::F64),
            function: None,
        };
        let composed = SET.compose(&request);
        assert_eq!(composed.name, "bits_event.c");
        let parts = ["own", "fault", "bits", "event"].map(|name| {
            let text = if name == "own" { Some("int own;") } else { source(name) };
            composed.text.find(text.expect("a source"))
        });
        assert!(parts.is_sorted() && parts[0] == Some(0), "{parts:?}");
        let defines: Vec<String> =
            composed.defines.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(defines.join(" "), "WAVES=4 WORDS=1 EXPONENT=11 FRACTION=52 SHIFT=0");
    }
}
