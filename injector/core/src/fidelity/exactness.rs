//! How exact an operation is, as text.

use flipwave_sim::Treatment;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How exact an operation is, in words. Tables and files have the text alone, which says which one
/// it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Exactness {
    /// The bits that the ISA defines: `exact`.
    Exact,
    /// Within an error that is stated: `within 1 ULP`.
    WithinError(String),
    /// No document settles all bits: `not settled: ` and what is done.
    NotSettled(String),
}

/// How texts begin that are not [`EXACT`].
const WITHIN: &str = "within ";
const NOT_SETTLED: &str = "not settled: ";
const EXACT: &str = "exact";

/// A text that is none for how exact an operation is.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not how exact an operation is: expected `{EXACT}`, `{WITHIN}...` or `{NOT_SETTLED}...`"
)]
pub struct NoExactness(String);

impl Exactness {
    /// How little is certain: the more, the less.
    pub(super) fn doubt(&self) -> u8 {
        match self {
            Exactness::Exact => 0,
            Exactness::WithinError(_) => 1,
            Exactness::NotSettled(_) => 2,
        }
    }
}

impl From<Treatment> for Exactness {
    fn from(treatment: Treatment) -> Exactness {
        match treatment {
            Treatment::Exact => Exactness::Exact,
            Treatment::Within(_) => Exactness::WithinError(treatment.to_string()),
            // The others end the run.
            Treatment::Unsettled(_) | Treatment::NotCompute(_) | Treatment::Gap(_) => {
                Exactness::NotSettled(treatment.to_string())
            }
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
