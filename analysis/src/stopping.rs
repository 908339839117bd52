//! The stopping rule of a campaign that ends once its rates are precise enough.

use crate::{Outcome, Scope, Summary, Tallies};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rule that ends a campaign before all planned injections are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppingRule {
    /// The precision at which the campaign ends.
    pub goal: PrecisionGoal,
    /// Injection counts at which the goal is checked, ascending.
    pub looks: Vec<u64>,
}

/// The precision that a campaign aims for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrecisionGoal {
    /// Largest half-width of an interval.
    pub margin: f64,
    /// Outcomes whose rates must reach the margin.
    pub outcomes: Vec<Outcome>,
    /// Scopes in which the rates must reach the margin.
    pub scopes: Vec<Scope>,
}

/// The precision reached at one check of the goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Injections done by then.
    pub injections: u64,
    /// Number of rates in the goal.
    pub rates: u64,
    /// Number of those rates whose interval is within the margin.
    pub narrow: u64,
    /// The rate with the widest interval, as `SCOPE OUTCOME`.
    pub widest: String,
    /// Half-width of the widest interval.
    pub half_width: f64,
}

impl Look {
    /// Returns `true` if every rate of the goal is within the margin.
    pub fn is_goal_met(&self) -> bool {
        self.narrow == self.rates
    }
}

impl fmt::Display for Look {
    /// `after 500 injections: 3 of 4 rates within the margin, kernel:add sdc least (±4.10 %)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Look { injections, rates, narrow, widest, half_width } = self;
        let percent = 100.0 * half_width;
        write!(
            f,
            "after {injections} injections: {narrow} of {rates} rates within the margin, {widest} \
             least (±{percent:.2} %)"
        )
    }
}

impl PrecisionGoal {
    /// Checks the goal against the rows counted so far.
    pub fn look(&self, tallies: &Tallies) -> Look {
        let summary = tallies.summary();
        let widths: Vec<(f64, String)> = self
            .scopes
            .iter()
            .flat_map(|scope| {
                let width = |outcome: &Outcome| half_width(&summary, scope, *outcome);
                self.outcomes
                    .iter()
                    .map(move |outcome| (width(outcome), format!("{scope} {outcome}")))
            })
            .collect();
        // The first of several equally wide ones.
        let widest = widths.iter().rev().max_by(|(a, _), (b, _)| a.total_cmp(b));
        let (half_width, name) = widest.cloned().unwrap_or_default();
        Look {
            injections: tallies.count(),
            rates: widths.len() as u64,
            narrow: widths.iter().filter(|(width, _)| *width <= self.margin).count() as u64,
            widest: name,
            half_width,
        }
    }
}

/// Half-width of the interval of a rate; 0.5, the largest possible, in a scope without injections.
fn half_width(summary: &Summary, scope: &Scope, outcome: Outcome) -> f64 {
    let found = summary.scopes.iter().find(|summarised| summarised.scope == *scope);
    found.map_or(0.5, |summarised| summarised.share(outcome).interval.half_width())
}
