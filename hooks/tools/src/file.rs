//! Files of tools: those of users, and those that are shipped.

use super::ToolError;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The shipped tools, which are in `examples/tools`.
const LIBRARY: [(&str, &str); 13] = [
    ("address-divergence", include_str!("../../../examples/tools/address_divergence.c")),
    ("bank-conflicts", include_str!("../../../examples/tools/bank_conflicts.c")),
    ("branch-divergence", include_str!("../../../examples/tools/branch_divergence.c")),
    ("instruction-count", include_str!("../../../examples/tools/instruction_count.c")),
    ("kernel-clock", include_str!("../../../examples/tools/kernel_clock.c")),
    ("line-accesses", include_str!("../../../examples/tools/line_accesses.c")),
    ("memory-efficiency", include_str!("../../../examples/tools/memory_efficiency.c")),
    ("memory-trace", include_str!("../../../examples/tools/memory_trace.c")),
    ("opcode-histogram", include_str!("../../../examples/tools/opcode_histogram.c")),
    ("range-check", include_str!("../../../examples/tools/range_check.c")),
    ("register-trace", include_str!("../../../examples/tools/register_trace.c")),
    ("sampled-histogram", include_str!("../../../examples/tools/sampled_histogram.c")),
    ("thread-count", include_str!("../../../examples/tools/thread_count.c")),
];

/// A tool's file and the values of its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolFile {
    /// The file's name in messages.
    pub name: String,
    /// The content of the file.
    pub text: String,
    /// Folders of the files that it includes.
    pub include: Vec<PathBuf>,
    /// Values of parameters, by name.
    pub parameters: Vec<(String, String)>,
}

impl ToolFile {
    /// Reads the file of a tool. It may include files of its folder.
    ///
    /// # Errors
    /// [`ToolError::File`] if it cannot be read.
    pub fn read(path: &Path) -> Result<ToolFile, ToolError> {
        let text = flipwave_host::input::read_text(path, flipwave_host::input::TEXT)
            .map_err(|reason| ToolError::File { file: path.to_owned(), reason })?;
        let folder = std::path::absolute(path).ok();
        let folder = folder.as_deref().and_then(Path::parent).map(Path::to_owned);
        Ok(ToolFile {
            name: path.display().to_string(),
            text,
            include: folder.into_iter().collect(),
            parameters: Vec::new(),
        })
    }

    /// The shipped tool with a name, such as `opcode-histogram`.
    ///
    /// # Errors
    /// [`ToolError::NoTool`] if there is none.
    pub fn shipped(name: &str) -> Result<ToolFile, ToolError> {
        let found = LIBRARY.iter().find(|(known, _)| *known == name);
        let (name, text) = found.ok_or_else(|| ToolError::NoTool {
            wanted: name.to_owned(),
            present: ToolFile::names().map(str::to_owned).collect(),
        })?;
        Ok(ToolFile {
            name: format!("{}.c", name.replace('-', "_")),
            text: (*text).to_owned(),
            include: Vec::new(),
            parameters: Vec::new(),
        })
    }

    /// The names of the shipped tools, in alphabetical order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        LIBRARY.iter().map(|(name, _)| *name)
    }

    /// The first sentence of a tool's first comment, as a description.
    pub fn description(&self) -> String {
        let comment = self.text.split_once("/*").and_then(|(_, rest)| rest.split_once("*/"));
        let comment = comment.map_or("", |(comment, _)| comment);
        let words: Vec<&str> = comment.split_whitespace().filter(|word| *word != "*").collect();
        let text = words.join(" ");
        text.split_once(". ").map_or(text.clone(), |(first, _)| format!("{first}."))
    }

    /// Returns the tool with a value of a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> ToolFile {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The line on which a function is defined or first named, counted from 1.
    pub(crate) fn line_of(&self, function: &str) -> Option<usize> {
        let names = |line: &str| {
            line.match_indices(function).any(|(at, _)| {
                let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let before = line[..at].chars().next_back();
                !before.is_some_and(is_word)
                    && line[at + function.len()..].trim_start().starts_with('(')
            })
        };
        self.text.lines().position(names).map(|index| index + 1)
    }

    /// The line on which an output is declared, counted from 1; 0 if it is not found.
    pub(crate) fn line_of_declaration(&self, name: &str) -> u32 {
        let declares = |line: &str| {
            let declared = line.trim_start().strip_prefix("FLIPWAVE_");
            let arguments = declared.and_then(|line| line.split_once('('));
            arguments.and_then(|(_, list)| list.split(',').next()).map(str::trim) == Some(name)
        };
        self.text.lines().position(declares).map_or(0, |index| index as u32 + 1)
    }

    /// A function of the file with its line, for messages: ``hook `count` (tool.c:12)``.
    pub(crate) fn describe_hook(&self, function: &str) -> String {
        match self.line_of(function) {
            Some(line) => format!("hook `{function}` ({}:{line})", self.name),
            None => format!("hook `{function}` ({})", self.name),
        }
    }

    /// The location of a line of the file, for messages.
    pub(crate) fn at_line(&self, line: u32) -> String {
        if line == 0 { self.name.clone() } else { format!("{}:{line}", self.name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_name() {
        let text = "/* discount(1) */\nvoid count(int a)\n{\n}\n".to_owned();
        let (include, parameters) = (Vec::new(), Vec::new());
        let file = ToolFile { name: "a.c".into(), text, include, parameters };
        assert_eq!(file.line_of("count"), Some(2));
        assert_eq!(file.line_of("missing"), None);
        assert_eq!(file.describe_hook("count"), "hook `count` (a.c:2)");
    }

    #[test]
    fn shipped_tools_describe_themselves() {
        for name in ToolFile::names() {
            let description = ToolFile::shipped(name).expect("a tool").description();
            assert!(description.ends_with('.'), "{name}: {description}");
        }
        assert!(ToolFile::shipped("no-tool").is_err());
    }
}
