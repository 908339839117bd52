//! The monitor of a running campaign: counts rows and decides when a stage ends.

use crate::{Look, Outcome, Row, SampleDesign, StoppingRule, Summary, Tallies};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The monitor of a running campaign. It counts rows in the order of their indices; its decisions depend
/// only on the rows, not on the workers or shards that produced them.
#[derive(Clone, Debug)]
pub struct CampaignMonitor {
    tallies: Tallies,
    stopping_rule: Option<StoppingRule>,
    looks: Vec<Look>,
    pilot: Option<Pilot>,
    /// Standard deviations by stratum, once the pilot is complete.
    standard_deviations: Option<BTreeMap<String, f64>>,
}

/// The pilot sample of a campaign, which estimates how much the outcomes of each stratum vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pilot {
    /// Number of injections, the first ones of the campaign.
    pub count: u64,
    /// Outcomes whose rates are to be estimated.
    pub outcomes: Vec<Outcome>,
}

/// Injection counts at which the stages of a campaign end, ascending: each look, the end of the pilot, and
/// `count`, the planned number of injections.
pub fn stage_ends(
    stopping_rule: Option<&StoppingRule>,
    pilot: Option<&Pilot>,
    count: u64,
) -> Vec<u64> {
    let looks = stopping_rule.iter().flat_map(|rule| rule.looks.iter().copied());
    let mut ends: Vec<u64> = looks.chain(pilot.map(|pilot| pilot.count)).chain([count]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

impl CampaignMonitor {
    /// Creates the monitor of a campaign without rows.
    pub fn new(
        design: SampleDesign,
        stopping_rule: Option<StoppingRule>,
        pilot: Option<Pilot>,
    ) -> CampaignMonitor {
        CampaignMonitor {
            tallies: Tallies::new(design),
            stopping_rule,
            looks: Vec::new(),
            pilot,
            standard_deviations: None,
        }
    }

    /// Counts the next row.
    pub fn add(&mut self, row: &Row) {
        self.tallies.add(row);
        let count = self.tallies.count();
        if let Some(pilot) = self.pilot.as_ref().filter(|pilot| pilot.count == count) {
            self.standard_deviations = Some(self.tallies.standard_deviations(&pilot.outcomes));
        }
        if let Some(StoppingRule { goal, looks }) = &self.stopping_rule
            && looks.binary_search(&count).is_ok()
        {
            self.looks.push(goal.look(&self.tallies));
        }
    }

    /// Number of rows counted.
    pub fn count(&self) -> u64 {
        self.tallies.count()
    }

    /// Returns `true` if the last look met the goal of the stopping rule.
    pub fn is_goal_met(&self) -> bool {
        self.looks.last().is_some_and(Look::is_goal_met)
    }

    /// Looks so far.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// Standard deviation of the outcomes of each stratum, by the stratum's name; `None` rule the pilot
    /// is complete.
    pub fn standard_deviations(&self) -> Option<&BTreeMap<String, f64>> {
        self.standard_deviations.as_ref()
    }

    /// Rates of the rows counted so far.
    pub fn summary(&self) -> Summary {
        self.tallies.summary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;
    use crate::{Confidence, LookSchedule, PrecisionGoal, Scope, wilson};

    fn rows(count: u64) -> impl Iterator<Item = Row> {
        (0..count).map(|index| {
            let outcome = if index % 10 == 0 { Outcome::Sdc } else { Outcome::Masked };
            let stratum = Some(if index % 2 == 0 { "even" } else { "odd" }.to_owned());
            Row { injection: index, stratum, ..row("valu", outcome, None) }
        })
    }

    fn goal(margin: f64, scopes: &[Scope]) -> PrecisionGoal {
        PrecisionGoal { margin, outcomes: vec![Outcome::Sdc], scopes: scopes.to_vec() }
    }

    #[test]
    fn campaign_ends_at_the_first_look_that_meets_the_goal() {
        let margin = 0.03;
        let looks = LookSchedule::for_any_rate(margin, Confidence::P95, 1.0).unwrap();
        let design = SampleDesign::simple(Confidence::P95).with_repeated_looks(looks.z_score);
        let rule = StoppingRule { goal: goal(margin, &[Scope::All]), looks: looks.sizes.clone() };
        let mut monitor = CampaignMonitor::new(design, Some(rule), None);
        let ended = rows(1_000_000).find(|row| {
            monitor.add(&Row { stratum: None, ..row.clone() });
            monitor.is_goal_met()
        });
        let count = ended.unwrap().injection + 1;
        let half_width = |count: u64| {
            wilson(count.div_ceil(10), count, Confidence::from_z_score(looks.z_score)).half_width()
        };
        let at = looks.sizes.binary_search(&count).expect("it ends at a look");
        assert!(half_width(count) <= margin && half_width(looks.sizes[at - 1]) > margin, "{count}");
        assert_eq!(monitor.looks().len(), at + 1);
        let last = monitor.looks().last().unwrap();
        assert!((last.half_width - half_width(count)).abs() < 1e-12);
        assert_eq!(last.widest, "all sdc");
        assert!(count * 4 < looks.sizes.last().unwrap() * 3, "a rate of 0.1 takes fewer");
    }

    #[test]
    fn stages_end_at_looks_and_at_the_end_of_the_pilot() {
        let rule = StoppingRule { goal: goal(0.1, &[Scope::All]), looks: vec![50, 75, 112] };
        let pilot = |count| Pilot { count, outcomes: Vec::new() };
        assert_eq!(stage_ends(None, None, 9), [9]);
        assert_eq!(stage_ends(Some(&rule), Some(&pilot(60)), 112), [50, 60, 75, 112]);
        assert_eq!(stage_ends(Some(&rule), Some(&pilot(75)), 112), [50, 75, 112]);
    }

    #[test]
    fn scope_without_injections_does_not_meet_the_goal() {
        let scopes = [Scope::All, Scope::Opcode("v_never_f32".to_owned())];
        let rule = StoppingRule { goal: goal(0.2, &scopes), looks: vec![100, 200] };
        let mut monitor =
            CampaignMonitor::new(SampleDesign::simple(Confidence::P95), Some(rule), None);
        rows(200).for_each(|row| monitor.add(&row));
        let look = monitor.looks().last().unwrap();
        assert_eq!((look.rates, look.narrow, look.half_width), (2, 1, 0.5));
        assert_eq!(look.widest, "opcode:v_never_f32 sdc");
        assert!(!monitor.is_goal_met());
    }

    #[test]
    fn pilot_estimates_the_standard_deviations_of_strata() {
        let pilot = Pilot { count: 100, outcomes: vec![Outcome::Sdc] };
        let mut monitor =
            CampaignMonitor::new(SampleDesign::simple(Confidence::P95), None, Some(pilot));
        let mut rows = rows(200);
        rows.by_ref().take(99).for_each(|row| monitor.add(&row));
        assert_eq!(monitor.standard_deviations(), None);
        rows.for_each(|row| monitor.add(&row));
        // 10 of 50 and 0 of 50 hits, each with one more hit and one more miss.
        let deviation = |hits: f64| (hits / 52.0 * (1.0 - hits / 52.0)).sqrt();
        let found = monitor.standard_deviations().unwrap();
        assert!((found["even"] - deviation(11.0)).abs() < 1e-12);
        assert!((found["odd"] - deviation(1.0)).abs() < 1e-12);
    }
}
