//! The sample design of a campaign: how its rows were drawn from the fault space.

use crate::{Confidence, IntervalMethod, Scope};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sample design of a campaign: everything other than the rows that rates and intervals depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleDesign {
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// Standard deviations that an interval spans to each side if rates are looked at repeatedly; more than
    /// the z-score of the confidence.
    #[serde(rename = "deviations")]
    pub z_score: Option<f64>,
    /// Method that computes the intervals.
    pub method: IntervalMethod,
    /// Fault sites of each stratum by its name, where known.
    #[serde(rename = "sites")]
    pub stratum_sites: BTreeMap<String, u64>,
    /// `true` if sites are drawn without replacement and each site has exactly one outcome, so that the
    /// finite population correction applies.
    pub is_finite: bool,
    /// Fault sites known to be masked by def-use pruning and not sampled, by the scope's name.
    #[serde(rename = "known")]
    pub pruned: BTreeMap<String, PrunedSites>,
    /// `true` if each opcode is a scope.
    pub by_opcode: bool,
    /// `true` if a judge classifies the severity of SDC.
    #[serde(default)]
    pub is_judged: bool,
}

/// Numbers of fault sites of a scope that def-use pruning knows to be masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrunedSites {
    /// All fault sites of the scope.
    #[serde(rename = "sites")]
    pub sites: u64,
    /// Sites whose value is overwritten before anything reads it.
    pub overwritten: u64,
    /// Sites whose value nothing reads before the wave ends.
    pub dead: u64,
}

impl PrunedSites {
    /// Fraction of the scope's sites that are pruned.
    pub fn rate(self) -> f64 {
        self.fraction(self.overwritten + self.dead)
    }

    /// Fraction of the scope that `count` sites are.
    pub(crate) fn fraction(self, count: u64) -> f64 {
        if self.sites == 0 { 0.0 } else { count as f64 / self.sites as f64 }
    }
}

impl SampleDesign {
    /// Simple random sampling with replacement: all sites have the same probability. Intervals are Wilson's.
    pub fn simple(confidence: Confidence) -> SampleDesign {
        SampleDesign {
            confidence,
            z_score: None,
            method: IntervalMethod::default(),
            stratum_sites: BTreeMap::new(),
            is_finite: false,
            pruned: BTreeMap::new(),
            by_opcode: false,
            is_judged: false,
        }
    }

    /// Widens the intervals to `z_score` standard deviations to each side, so that they keep their
    /// confidence when a campaign looks at them repeatedly.
    pub fn with_repeated_looks(self, z_score: f64) -> SampleDesign {
        SampleDesign { z_score: Some(z_score), ..self }
    }

    /// Confidence that each interval is computed with.
    pub(crate) fn interval_confidence(&self) -> Confidence {
        self.z_score.map_or(self.confidence, Confidence::from_z_score)
    }

    /// Pruned sites of a scope, if any are recorded for it.
    pub(crate) fn pruned_in(&self, scope: &Scope) -> Option<PrunedSites> {
        if self.pruned.is_empty() { None } else { self.pruned.get(&scope.to_string()).copied() }
    }
}
