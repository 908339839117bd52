//! Source lines of instructions.

use crate::Pc;
use std::fmt;
use std::sync::Arc;

/// A source location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The file name. A relative name is joined to the compilation directory.
    pub file: Arc<str>,
    /// The line, counted from 1; 0 for code without a source line.
    pub line: u32,
    /// The column, counted from 1; 0 for the whole line.
    pub column: u32,
}

impl fmt::Display for SourceLine {
    /// `matmul.cl:12`, or `matmul.cl (no line)` for line 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{} (no line)", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Map from addresses of instructions to source lines.
pub trait SourceLines {
    /// Source line of the instruction at an address; `None` if it is unknown.
    fn lookup(&self, pc: Pc) -> Option<SourceLine>;
}
