//! When a campaign has injected enough.

use crate::{Outcome, Scope, Summary, Tallies};
use serde::{Deserialize, Serialize};
use std::fmt;

/// When a campaign ends though not all of its injections are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// What is to be known then.
    pub goal: Goal,
    /// After how many injections is looked whether it is, ascending.
    pub looks: Vec<u64>,
}

/// What a campaign is to find out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// How far intervals may reach to each side of their middle.
    pub margin: f64,
    /// The outcomes whose rates are wanted.
    pub outcomes: Vec<Outcome>,
    /// The scopes in which they are wanted.
    pub scopes: Vec<Scope>,
}

/// What a campaign has found out when it was looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Injections then.
    pub injections: u64,
    /// How many rates are wanted.
    pub rates: u64,
    /// How many of them were within the margin.
    pub narrow: u64,
    /// The rate that was least known, `SCOPE OUTCOME`.
    pub widest: String,
    /// How far its interval reached to each side of its middle.
    pub half_width: f64,
}

impl Look {
    /// Whether all that is wanted is known.
    pub fn is_enough(&self) -> bool {
        self.narrow == self.rates
    }
}

impl fmt::Display for Look {
    /// `after 500 injections: 3 of 4 rates within the margin, kernel:add sdc least (+-4.1 %)`.
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

impl Goal {
    /// What is known of it by these rows.
    pub fn look(&self, tallies: &Tallies) -> Look {
        let summary = tallies.summary();
        let widths: Vec<(f64, String)> = self
            .scopes
            .iter()
            .flat_map(|scope| {
                let width = |outcome: &Outcome| half_width(&summary, scope, *outcome);
                self.outcomes.iter().map(move |own| (width(own), format!("{scope} {own}")))
            })
            .collect();
        // Of equal ones the first.
        let widest = widths.iter().rev().max_by(|one, other| one.0.total_cmp(&other.0));
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

/// How far the interval of a rate reaches; of a scope that was not struck yet, as far as one can.
fn half_width(summary: &Summary, scope: &Scope, outcome: Outcome) -> f64 {
    let found = summary.scopes.iter().find(|own| own.scope == *scope);
    found.map_or(0.5, |own| own.share(outcome).interval.half_width())
}
