//! Which tool is to be put into an application's kernels.

use flipwave_hooks::tools::Options;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A tool on an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSession {
    /// The tool.
    pub name: ToolName,
    /// What it is told.
    pub options: Options,
    /// How it finds out.
    pub by: ToolPath,
    /// The file for the table; without, it goes to standard error when the application ends.
    pub out: Option<PathBuf>,
}

/// The tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

/// How a tool finds out what an application's kernels do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ToolPath {
    /// By hooks in their code, which the tools library puts there: as on hardware.
    Hook,
    /// By a look into the embedded GPU, at code as it is. Counts instructions only.
    Embedded,
    /// By hooks, on this machine's own GPU.
    Hardware,
}

impl ToolPath {
    /// What has the runtime load this library, which is `library`, as a tools library.
    pub(crate) fn environment(self, library: &Path) -> Vec<(&'static str, OsString)> {
        let name = match self {
            ToolPath::Embedded => return Vec::new(),
            // The runtime has it already, under its own name.
            ToolPath::Hook => library.file_name().unwrap_or_default().to_owned(),
            ToolPath::Hardware => quoted(library),
        };
        // Without the second, newer runtimes do not look for tools libraries.
        vec![("HSA_TOOLS_LIB", name), ("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1".into())]
    }
}

/// A path as the runtime reads it in a list that is divided by spaces.
fn quoted(path: &Path) -> OsString {
    let mut text = OsString::from("\"");
    text.push(path);
    text.push("\"");
    text
}
