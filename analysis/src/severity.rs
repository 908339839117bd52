//! The severity of silent data corruption, as classified by the campaign's judge.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The severity of silent data corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The results are unusable: another class is predicted, another word is generated.
    Critical,
    /// The results are as useful as the correct ones.
    Tolerable,
}

impl Severity {
    /// All severities.
    pub const ALL: [Severity; 2] = [Severity::Critical, Severity::Tolerable];

    /// Name in result tables.
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
