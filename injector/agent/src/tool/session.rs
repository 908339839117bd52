//! Which tool is to be put into an application's kernels.

use flipwave_tools::Options;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A tool on an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSession {
    /// The tool.
    pub name: ToolName,
    /// What it is asked for.
    pub options: Options,
    /// How it finds out.
    pub by: ToolPath,
    /// The file for the table. Processes after the first write to files beside it.
    pub out: PathBuf,
}

/// The tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the tool of its name")]
pub enum ToolName {
    InstructionCount,
    OpcodeHistogram,
    MemoryTrace,
    AddressDivergence,
    BranchDivergence,
    BankConflicts,
    KernelClock,
}

impl ToolName {
    /// Whether it has a table without hooks, too: [`ToolPath::Embedded`].
    pub fn is_observed(self) -> bool {
        matches!(
            self,
            ToolName::InstructionCount | ToolName::OpcodeHistogram | ToolName::MemoryTrace
        )
    }
}

/// How a tool finds out what an application's kernels do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolPath {
    /// By hooks in their code, which the tools library puts there: as on hardware.
    Hook,
    /// By a look into the embedded GPU, at code as it is. Not all tools can, see
    /// [`ToolName::is_observed`].
    Embedded,
    /// By hooks, on this machine's own GPU.
    Hardware,
}

/// What has the runtime load this library, which is `library`, as a tools library, ahead of those
/// that the application's user wants.
pub(crate) fn tools_environment(
    library: &Path,
    others: Option<OsString>,
) -> [(&'static str, OsString); 3] {
    // A name in quotes ends with them: after a space the runtime would read an empty one.
    let mut names = quoted(library);
    let has_own =
        |others: &OsString| others.as_encoded_bytes().starts_with(names.as_encoded_bytes());
    match others {
        // In an application that starts another one the same way.
        Some(others) if has_own(&others) => names = others,
        Some(others) if !others.is_empty() => {
            names.push(others);
        }
        _ => {}
    }
    // Without the second, newer runtimes do not look for tools libraries; by the third they find
    // this one another way. Once is enough.
    [
        (TOOLS, names),
        ("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1".into()),
        ("ROCPROFILER_REGISTER_LIBRARY", library.into()),
    ]
}

/// The variable with the names of tools libraries.
pub(crate) const TOOLS: &str = "HSA_TOOLS_LIB";

/// A path as the runtime reads it in a list that is divided by spaces.
fn quoted(path: &Path) -> OsString {
    let mut text = OsString::from("\"");
    text.push(path);
    text.push("\"");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_of_a_user_are_loaded_behind_ours() {
        let names = |others: &str| {
            let [(_, names), ..] =
                tools_environment(Path::new("/a b/libours.so"), Some(others.into()));
            names.into_string().expect("text")
        };
        assert_eq!(names(""), "\"/a b/libours.so\"");
        assert_eq!(names("libfirst.so libsecond.so"), {
            "\"/a b/libours.so\"libfirst.so libsecond.so"
        });
        // Once is enough.
        assert_eq!(names("\"/a b/libours.so\"libfirst.so"), "\"/a b/libours.so\"libfirst.so");
    }
}
