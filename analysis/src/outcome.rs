//! The outcome of an injection.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The outcome of one injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The run completed and its outputs are those of the golden run, within the tolerances.
    Masked,
    /// Silent data corruption: the run completed with wrong outputs.
    Sdc,
    /// Detected unrecoverable error: the device stopped the run.
    Due,
    /// The run completed, and the program itself detected the fault.
    Detected,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Outcome; 4] = [Outcome::Masked, Outcome::Sdc, Outcome::Due, Outcome::Detected];

    /// Name in result tables.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Masked => "masked",
            Outcome::Sdc => "sdc",
            Outcome::Due => "due",
            Outcome::Detected => "detected",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Outcome {
    type Err = UnknownOutcome;

    fn from_str(name: &str) -> Result<Outcome, UnknownOutcome> {
        Outcome::ALL
            .into_iter()
            .find(|outcome| outcome.name() == name)
            .ok_or_else(|| UnknownOutcome(name.to_owned()))
    }
}

/// Error returned for an unknown outcome name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown outcome `{0}`; expected masked, sdc, due or detected")]
pub struct UnknownOutcome(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_unknown_names_are_rejected() {
        for outcome in Outcome::ALL {
            assert_eq!(outcome.to_string().parse(), Ok(outcome));
        }
        assert!("SDC".parse::<Outcome>().is_err());
    }
}
