//! The settings of a tool for an application.

use flipwave_tools::{
    InstructionCount, MemoryTrace, ObservableTool, OpcodeHistogram, Options, ToolFile,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The settings of a tool for an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSession {
    /// A file with the tool, a [`ToolFile`] as JSON.
    pub file: PathBuf,
    /// The name of a shipped tool; `None` for a user's file.
    pub shipped: Option<String>,
    /// The options of the tool.
    pub options: Options,
    /// The way in which the tool observes kernels.
    pub by: ToolPath,
    /// The file for the table. Processes after the first append their path in the process tree to the
    /// name.
    pub out: PathBuf,
}

impl ToolSession {
    /// Writes a tool to the file that a session names.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_tool(file: &Path, tool: &ToolFile) -> io::Result<()> {
        flipwave_host::output::stream(file)?.write_all(&serde_json::to_vec(tool)?)
    }

    /// Reads the tool.
    ///
    /// # Errors
    /// A message, if the file cannot be read.
    pub(crate) fn read_tool(&self) -> Result<ToolFile, String> {
        let failed = |reason: &dyn std::fmt::Display| {
            format!("cannot read the tool from {}: {reason}", self.file.display())
        };
        let text = flipwave_host::input::read(&self.file, flipwave_host::input::BINARY);
        let text = text.map_err(|reason| failed(&reason))?;
        serde_json::from_slice(&text).map_err(|reason| failed(&reason))
    }

    /// Returns `true` if a shipped tool supports [`ToolPath::Embedded`].
    pub fn is_observed(name: &str) -> bool {
        [InstructionCount::NAME, OpcodeHistogram::NAME, MemoryTrace::NAME].contains(&name)
    }
}

/// The way in which kernels of an application are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolPath {
    /// With hooks in the kernels on the embedded GPU, inserted as on hardware.
    Hook,
    /// With observers inside the embedded GPU, which runs the original code. Only for tools with
    /// [`ToolSession::is_observed`].
    Embedded,
    /// With hooks in the kernels on this machine's GPU.
    Hardware,
}

/// The environment variables that make the runtime load the agent, whose file is `library`, in front of
/// `user_tools`, the tools libraries requested by the user.
pub(crate) fn tools_environment(
    library: &Path,
    user_tools: Option<OsString>,
) -> [(&'static str, OsString); 3] {
    // No space is needed after the closing quote; the runtime would read an empty name after it.
    let mut names = quoted(library);
    let has_agent = |list: &OsString| list.as_encoded_bytes().starts_with(names.as_encoded_bytes());
    match user_tools {
        // Inherited by an application that was started by one with the agent.
        Some(list) if has_agent(&list) => names = list,
        Some(list) if !list.is_empty() => {
            names.push(list);
        }
        _ => {}
    }
    // The second variable makes newer runtimes load tools libraries. The third names the agent for
    // rocprofiler-register. Loading it twice has no effect.
    [
        (TOOLS, names),
        ("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1".into()),
        ("ROCPROFILER_REGISTER_LIBRARY", library.into()),
    ]
}

/// The environment variable with the names of tools libraries.
pub(crate) const TOOLS: &str = "HSA_TOOLS_LIB";

/// Quotes a path for a list that is separated by spaces.
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
    fn agent_is_loaded_once_before_user_tools() {
        let names = |user_tools: &str| {
            let [(_, names), ..] =
                tools_environment(Path::new("/a b/libours.so"), Some(user_tools.into()));
            names.into_string().expect("text")
        };
        assert_eq!(names(""), "\"/a b/libours.so\"");
        assert_eq!(names("libfirst.so libsecond.so"), {
            "\"/a b/libours.so\"libfirst.so libsecond.so"
        });
        // The list already has the agent.
        assert_eq!(names("\"/a b/libours.so\"libfirst.so"), "\"/a b/libours.so\"libfirst.so");
    }
}
