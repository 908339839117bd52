//! Exactness of an operation as text.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Exactness of an operation. Tables and files contain only its text, whose beginning identifies the
/// variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Exactness {
    /// Exactly the bits that the ISA defines: `exact`.
    Exact,
    /// Within a stated error: `within 1 ULP`.
    WithinError(String),
    /// Not defined completely by any document: `not settled: ` and the chosen behaviour.
    NotSettled(String),
}

/// Beginnings of the texts other than [`EXACT`].
const WITHIN: &str = "within ";
const NOT_SETTLED: &str = "not settled: ";
const EXACT: &str = "exact";

/// Error returned for a text that does not describe an exactness.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not an exactness: expected `{EXACT}`, `{WITHIN}...` or `{NOT_SETTLED}...`")]
pub struct NoExactness(String);

impl Exactness {
    /// Degree of uncertainty; larger is less certain.
    pub fn doubt(&self) -> u8 {
        match self {
            Exactness::Exact => 0,
            Exactness::WithinError(_) => 1,
            Exactness::NotSettled(_) => 2,
        }
    }
}

impl TryFrom<String> for Exactness {
    type Error = NoExactness;

    fn try_from(text: String) -> Result<Exactness, NoExactness> {
        match text {
            text if text == EXACT => Ok(Exactness::Exact),
            text if text.starts_with(WITHIN) => Ok(Exactness::WithinError(text)),
            text if text.starts_with(NOT_SETTLED) => Ok(Exactness::NotSettled(text)),
            text => Err(NoExactness(text)),
        }
    }
}

impl From<Exactness> for String {
    fn from(exactness: Exactness) -> String {
        exactness.to_string()
    }
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Exactness::Exact => EXACT,
            Exactness::WithinError(text) | Exactness::NotSettled(text) => text,
        })
    }
}
