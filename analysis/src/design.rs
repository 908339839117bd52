//! How the rows of a campaign were drawn, as far as rates and their intervals depend on it.

use crate::{Confidence, IntervalMethod, Scope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the rows of a campaign were drawn, as far as rates and their intervals depend on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleDesign {
    /// Probability with which an interval holds the rate.
    pub confidence: Confidence,
    /// Standard deviations that an interval spans to each side, where it is looked at repeatedly: more
    /// than those of the confidence.
    pub deviations: Option<f64>,
    /// How intervals are computed.
    pub method: IntervalMethod,
    /// Places of each stratum that faults can strike, by its name, where they are known.
    pub places: BTreeMap<String, u64>,
    /// Whether no place is drawn twice, and each has one outcome.
    pub is_finite: bool,
    /// What is known to be masked and was not sampled, by the scope's name.
    pub known: BTreeMap<String, Known>,
    /// Whether operations are scopes of their own.
    pub by_opcode: bool,
    /// Whether somebody says how bad SDC is.
    #[serde(default)]
    pub is_judged: bool,
}

/// What of a scope's places is known to be masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// All places of the scope.
    pub places: u64,
    /// Places whose value is overwritten before anything reads it.
    pub overwritten: u64,
    /// Places whose value nothing reads before its wave ends.
    pub dead: u64,
}

impl Known {
    /// The part that is known.
    pub fn rate(self) -> f64 {
        self.of(self.overwritten + self.dead)
    }

    /// The part of the scope that this many places are.
    pub(crate) fn of(self, places: u64) -> f64 {
        if self.places == 0 { 0.0 } else { places as f64 / self.places as f64 }
    }
}

impl SampleDesign {
    /// All places with the same probability, each as often as it comes; intervals are Wilson's.
    pub fn simple(confidence: Confidence) -> SampleDesign {
        SampleDesign {
            confidence,
            deviations: None,
            method: IntervalMethod::default(),
            places: BTreeMap::new(),
            is_finite: false,
            known: BTreeMap::new(),
            by_opcode: false,
            is_judged: false,
        }
    }

    /// The same with intervals that hold however often they are looked at, of this many standard
    /// deviations to each side.
    pub fn repeated(self, deviations: f64) -> SampleDesign {
        SampleDesign { deviations: Some(deviations), ..self }
    }

    /// The confidence that intervals are computed with.
    pub(crate) fn nominal(&self) -> Confidence {
        self.deviations.map_or(self.confidence, Confidence::within)
    }

    pub(crate) fn places_of(&self, stratum: &str) -> Option<u64> {
        self.places.get(stratum).copied()
    }

    pub(crate) fn known_of(&self, scope: &Scope) -> Option<Known> {
        if self.known.is_empty() { None } else { self.known.get(&scope.to_string()).copied() }
    }
}
