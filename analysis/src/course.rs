//! The course of a campaign: its rows as they come, one after another, and what they decide.

use crate::{Look, Outcome, Row, SampleDesign, Summary, Tallies, Until};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The course of a campaign. Its rows are counted in the order of their indices; what it decides depends
/// on nothing else, whoever made them.
#[derive(Clone, Debug)]
pub struct Course {
    tallies: Tallies,
    until: Option<Until>,
    looks: Vec<Look>,
    pilot: Option<Pilot>,
    deviations: Option<BTreeMap<String, f64>>,
}

/// The first injections of a campaign, which show how much the outcomes of each stratum vary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pilot {
    /// How many they are.
    pub count: u64,
    /// The outcomes whose rates are to become known.
    pub outcomes: Vec<Outcome>,
}

/// Where the stages of a campaign of `count` injections at most end, ascending: at each look, and at the
/// end of the pilot.
pub fn stage_ends(until: Option<&Until>, pilot: Option<&Pilot>, count: u64) -> Vec<u64> {
    let looks = until.iter().flat_map(|until| until.looks.iter().copied());
    let mut ends: Vec<u64> = looks.chain(pilot.map(|own| own.count)).chain([count]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

impl Course {
    /// A campaign that has no row yet.
    pub fn new(design: SampleDesign, until: Option<Until>, pilot: Option<Pilot>) -> Course {
        let tallies = Tallies::new(design);
        Course { tallies, until, looks: Vec::new(), pilot, deviations: None }
    }

    /// Counts the next row.
    pub fn add(&mut self, row: &Row) {
        self.tallies.add(row);
        let count = self.tallies.count();
        if let Some(pilot) = self.pilot.as_ref().filter(|pilot| pilot.count == count) {
            self.deviations = Some(self.tallies.deviations(&pilot.outcomes));
        }
        if let Some(Until { goal, looks }) = &self.until
            && looks.binary_search(&count).is_ok()
        {
            self.looks.push(goal.look(&self.tallies));
        }
    }

    /// How many rows it has.
    pub fn count(&self) -> u64 {
        self.tallies.count()
    }

    /// Whether all that is wanted is known, by the last look.
    pub fn is_enough(&self) -> bool {
        self.looks.last().is_some_and(Look::is_enough)
    }

    /// The looks so far.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// How much the outcomes of each stratum vary, as a standard deviation, by the stratum's name; known
    /// after the pilot.
    pub fn deviations(&self) -> Option<&BTreeMap<String, f64>> {
        self.deviations.as_ref()
    }

    /// The rates so far.
    pub fn summary(&self) -> Summary {
        self.tallies.summary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::row;
    use crate::{Confidence, Goal, Looks, Scope, wilson};

    fn rows(count: u64) -> impl Iterator<Item = Row> {
        (0..count).map(|index| {
            let outcome = if index % 10 == 0 { Outcome::Sdc } else { Outcome::Masked };
            let stratum = Some(if index % 2 == 0 { "even" } else { "odd" }.to_owned());
            Row { index, stratum, ..row("valu", outcome, None) }
        })
    }

    fn goal(margin: f64, scopes: &[Scope]) -> Goal {
        Goal { margin, outcomes: vec![Outcome::Sdc], scopes: scopes.to_vec() }
    }

    #[test]
    fn a_campaign_ends_at_the_first_look_that_shows_enough() {
        let margin = 0.03;
        let looks = Looks::enough(margin, Confidence::P95, 1.0).unwrap();
        let design = SampleDesign::simple(Confidence::P95).repeated(looks.deviations);
        let until = Until { goal: goal(margin, &[Scope::All]), looks: looks.sizes.clone() };
        let mut course = Course::new(design, Some(until), None);
        let ended = rows(1_000_000).find(|row| {
            course.add(&Row { stratum: None, ..row.clone() });
            course.is_enough()
        });
        let count = ended.unwrap().index + 1;
        let half_width = |count: u64| {
            wilson(count.div_ceil(10), count, Confidence::within(looks.deviations)).half_width()
        };
        let at = looks.sizes.binary_search(&count).expect("it ends at a look");
        assert!(half_width(count) <= margin && half_width(looks.sizes[at - 1]) > margin, "{count}");
        assert_eq!(course.looks().len(), at + 1);
        let last = course.looks().last().unwrap();
        assert!((last.half_width - half_width(count)).abs() < 1e-12);
        assert_eq!(last.widest, "all sdc");
        assert!(count * 4 < looks.sizes.last().unwrap() * 3, "a rate of a tenth takes fewer");
    }

    #[test]
    fn stages_end_at_looks_and_after_the_pilot() {
        let until = Until { goal: goal(0.1, &[Scope::All]), looks: vec![50, 75, 112] };
        let pilot = |count| Pilot { count, outcomes: Vec::new() };
        assert_eq!(stage_ends(None, None, 9), [9]);
        assert_eq!(stage_ends(Some(&until), Some(&pilot(60)), 112), [50, 60, 75, 112]);
        assert_eq!(stage_ends(Some(&until), Some(&pilot(75)), 112), [50, 75, 112]);
    }

    #[test]
    fn what_was_not_struck_is_not_known() {
        let scopes = [Scope::All, Scope::Opcode("v_never_f32".to_owned())];
        let until = Until { goal: goal(0.2, &scopes), looks: vec![100, 200] };
        let mut course = Course::new(SampleDesign::simple(Confidence::P95), Some(until), None);
        rows(200).for_each(|row| course.add(&row));
        let look = course.looks().last().unwrap();
        assert_eq!((look.rates, look.narrow, look.half_width), (2, 1, 0.5));
        assert_eq!(look.widest, "opcode:v_never_f32 sdc");
        assert!(!course.is_enough());
    }

    #[test]
    fn the_pilot_shows_how_much_strata_vary() {
        let pilot = Pilot { count: 100, outcomes: vec![Outcome::Sdc] };
        let mut course = Course::new(SampleDesign::simple(Confidence::P95), None, Some(pilot));
        let mut rows = rows(200);
        rows.by_ref().take(99).for_each(|row| course.add(&row));
        assert_eq!(course.deviations(), None);
        rows.for_each(|row| course.add(&row));
        // 10 of 50 and 0 of 50, each with one more of both kinds.
        let deviation = |hits: f64| (hits / 52.0 * (1.0 - hits / 52.0)).sqrt();
        let found = course.deviations().unwrap();
        assert!((found["even"] - deviation(11.0)).abs() < 1e-12);
        assert!((found["odd"] - deviation(1.0)).abs() < 1e-12);
    }
}
