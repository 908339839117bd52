//! How bad silent data corruption is, in the judgement of the campaign's own check.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How bad silent data corruption is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The results are of no use: another class is predicted, another word is said.
    Critical,
    /// The results serve as well as the right ones.
    Tolerable,
}

impl Severity {
    /// Both of them.
    pub const ALL: [Severity; 2] = [Severity::Critical, Severity::Tolerable];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Tolerable => "tolerable",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
