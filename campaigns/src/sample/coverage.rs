//! Compares sampled campaigns with an exhaustive one: intervals contain the true rates as often as they
//! should, and advanced sampling methods need fewer injections.

use super::Scheme;
use crate::file::campaign::Campaign;
use crate::golden::profiled;
use crate::program::prepare::{Prepared, prepare};
use crate::run::progress::Silent;
use crate::run::{RunOptions, run};
use flipwave_analysis::{CampaignMonitor, Interval, Outcome, Row, read_rows};
use flipwave_depth::Depth;
use flipwave_injector::{DrawnSite, Plan, Profile, Sampling};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::Path;

/// Number of seeds, and thus of campaigns per sampling method. Long test runs use more.
fn seeds() -> u64 {
    if Depth::asked() == Depth::Long { 1000 } else { 200 }
}

/// Range of the number of seeds that have a property with probability `probability`: the expected number
/// plus or minus three standard deviations.
fn likely(probability: f64) -> RangeInclusive<u64> {
    let seeds = seeds() as f64;
    let away = 3.0 * (seeds * probability * (1.0 - probability)).sqrt() + 1.0;
    ((seeds * probability - away) as u64)..=((seeds * probability + away) as u64)
}

/// Rows of the exhaustive campaign, by fault site.
struct Truth {
    folder: tempfile::TempDir,
    rows: HashMap<String, Row>,
}

impl Truth {
    fn new() -> Truth {
        let folder = tempfile::tempdir().expect("a folder");
        let campaign = campaign("exhaustive: true", folder.path());
        let results = folder.path().join("results");
        let options = RunOptions::new(results.clone(), NonZeroUsize::new(2).expect("workers"));
        run(&campaign, &options, &mut Silent).unwrap_or_else(|error| panic!("{error}"));
        let table = flipwave_host::input::open(&results.join("results.csv")).expect("a table");
        let rows = read_rows(table).expect("rows");
        let rows = rows.into_iter().map(|row| (row.site.clone(), row)).collect();
        Truth { folder, rows }
    }

    fn rate(&self, outcome: Outcome) -> f64 {
        let count = self.rows.values().filter(|row| row.outcome == outcome).count();
        count as f64 / self.rows.len() as f64
    }

    /// Prepares the sampling that a campaign with these `faults` keys performs.
    fn sampled(&self, faults: &str) -> Sampled<'_> {
        let campaign = campaign(faults, self.folder.path());
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let survey = profiled(&campaign, &prepared, false, NonZeroUsize::MIN);
        let profile = survey.unwrap_or_else(|error| panic!("{error}")).profile;
        let scheme = Scheme::new(campaign.faults().expect("faults"), &profile, false);
        let scheme = scheme.unwrap_or_else(|error| panic!("{error}"));
        // All fault sites, ordered by stratum.
        let all = Plan::new(&prepared.workload, &profile, 0, &Sampling::Exhaustive)
            .and_then(|plan| plan.faults(0..plan.count()))
            .unwrap_or_else(|error| panic!("{error}"));
        let mut sites = vec![Vec::new(); scheme.strata().len()];
        for planned in all {
            let row = &self.rows[&planned.site.to_string()];
            let stratum = Some(scheme.strata()[planned.stratum].clone());
            sites[planned.stratum].push(Row { stratum, ..row.clone() });
        }
        Sampled { truth: self, prepared, profile, scheme, sites }
    }
}

/// Returns a campaign on a kernel with one wave.
fn campaign(faults: &str, folder: &Path) -> Campaign {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/kernels");
    let text = format!(
        "
name: exhaustive
seed: 3
workload:
  kernel:
    source: {}/exhaustive.cl
    name: mix
    grid: 64
    workgroup: 64
    args:
      - {{buffer: out, type: u32, count: 64, output: true}}
      - {{buffer: in, type: u32, count: 64, init: {{uniform: [0, 50]}}}}
faults: {{model: flip_one_bit, {faults}}}
",
        kernels.display()
    );
    Campaign::parse(&text, &folder.join("campaign.yaml")).unwrap_or_else(|error| panic!("{error}"))
}

/// A sampling method.
struct Sampled<'a> {
    truth: &'a Truth,
    prepared: Prepared,
    profile: Profile,
    scheme: Scheme,
    /// Rows by stratum and number of the fault site.
    sites: Vec<Vec<Row>>,
}

/// Results of the campaigns with all seeds.
#[derive(Debug, Default)]
struct Found {
    /// Number of seeds whose interval contains the rate, by outcome.
    held: [u64; 3],
    /// Mean squared error of the estimate, by outcome.
    squares: [f64; 3],
    /// Mean half-width of the intervals, by outcome.
    widths: [f64; 3],
}

const OUTCOMES: [Outcome; 3] = [Outcome::Masked, Outcome::Sdc, Outcome::Due];

impl Sampled<'_> {
    /// Runs the campaign of a seed; calls `look` at the end of each stage.
    fn monitor(&self, seed: u64, mut look: impl FnMut(&CampaignMonitor)) -> CampaignMonitor {
        let Sampled { prepared, profile, scheme, sites, .. } = self;
        let mut monitor = scheme.monitor();
        for stage in scheme.stages() {
            let sampling = scheme.sampling(&monitor);
            let plan = Plan::new(&prepared.workload, profile, seed, &sampling);
            let plan = plan.unwrap_or_else(|error| panic!("{error}"));
            for index in stage {
                let DrawnSite { stratum, place, weight } = plan.place(index).expect("a place");
                let row = &sites[stratum][place as usize];
                monitor.add(&Row { injection: index, weight, ..row.clone() });
            }
            look(&monitor);
            if monitor.is_goal_met() {
                break;
            }
        }
        monitor
    }

    fn found(&self) -> Found {
        let mut found = Found::default();
        for seed in 0..seeds() {
            let monitor = self.monitor(seed, |_| {});
            let summary = monitor.summary();
            for (number, outcome) in OUTCOMES.into_iter().enumerate() {
                let (share, rate) = (summary.scopes[0].share(outcome), self.truth.rate(outcome));
                found.held[number] += u64::from(holds(share.interval, rate));
                found.squares[number] += (share.rate - rate).powi(2) / seeds() as f64;
                found.widths[number] += share.interval.half_width() / seeds() as f64;
            }
        }
        found
    }
}

fn holds(Interval { low, high }: Interval, rate: f64) -> bool {
    // Exactly known rates differ by rounding.
    (low - 1e-12..=high + 1e-12).contains(&rate)
}

/// 95 % intervals contain the rate for about 95 % of the seeds. Wilson intervals deviate slightly for some
/// rates; stratified and exact intervals are slightly conservative.
#[test]
fn intervals_have_nominal_coverage_and_advanced_sampling_saves_injections() {
    let truth = Truth::new();
    println!("{} fault sites, rates {:?}", truth.rows.len(), OUTCOMES.map(|to| truth.rate(to)));
    let simple = truth.sampled("count: 400").found();
    println!("simple: held {:?} of {}", simple.held, seeds());
    let all = "known_masked: counted, stratify: opcode, replacement: false, \
               allocation: {optimal: {pilot: 100}}";
    let optimal = "count: 400, stratify: opcode, allocation: {optimal: {pilot: 100}}";
    // Factor by which fewer injections would suffice for the rate of SDC: by the actual error, and by
    // the width of the intervals.
    for (faults, max_coverage, saved) in [
        ("count: 400, intervals: clopper_pearson", 0.975, 0.7..1.4),
        ("count: 400, stratify: opcode", 0.97, 1.1..1.9),
        (optimal, 0.98, 1.2..2.1),
        ("count: 400, known_masked: counted", 0.965, 1.6..2.8),
        ("count: 400, replacement: false", 0.965, 0.8..1.5),
        ("count: 4000, replacement: false", 0.965, 11.0..22.0),
        (&format!("count: 400, {all}"), 0.98, 2.6..5.5),
    ] {
        let found = truth.sampled(faults).found();
        let by = |found: [f64; 3], simple: [f64; 3]| simple[1] / found[1];
        let square = |widths: [f64; 3]| widths.map(|width| width * width);
        let by_error = by(found.squares, simple.squares);
        let by_width = by(square(found.widths), square(simple.widths));
        println!("{faults}: held {:?}, saved {by_error:.2}, {by_width:.2}", found.held);
        let expected = *likely(0.945).start()..=*likely(max_coverage).end();
        assert!(found.held.iter().all(|held| expected.contains(held)), "{faults}: {found:?}");
        assert!(saved.contains(&by_error) && saved.contains(&by_width), "{faults}: {found:?}");
    }
    assert!(simple.held.iter().all(|held| likely(0.945).contains(held)), "{:?}", simple.held);
}

/// Negative controls: estimates that ignore the strata, or the pruned fault sites, are far off.
#[test]
fn estimates_without_strata_or_pruned_sites_are_wrong() {
    let truth = Truth::new();
    let mut sampled = truth.sampled("count: 400, stratify: opcode, allocation: equal");
    let right = sampled.found();
    for rows in &mut sampled.sites {
        rows.iter_mut().for_each(|row| row.stratum = None);
    }
    sampled.scheme.design.stratum_sites.clear();
    let wrong = sampled.found();
    println!("with strata {:?}, without {:?}", right.held, wrong.held);
    assert!(right.held.iter().all(|held| likely(0.945).start() <= held), "{:?}", right.held);
    assert!(wrong.held.iter().any(|held| held < likely(0.8).start()), "{:?}", wrong.held);
    let mut sampled = truth.sampled("count: 400, known_masked: counted");
    sampled.scheme.design.pruned.clear();
    let wrong = sampled.found();
    assert!(wrong.held.iter().any(|held| held < likely(0.2).start()), "{:?}", wrong.held);
}

/// The counts of pruned fault sites equal those of the exhaustive campaign, for each opcode.
#[test]
fn pruned_site_counts_match_the_exhaustive_campaign() {
    let truth = Truth::new();
    let sampled = truth.sampled("count: 400, known_masked: counted");
    let count = |opcode: &str, cause: Option<&str>| {
        let rows = truth.rows.values().filter(|row| row.opcode == opcode);
        let has_cause = |row: &&Row| cause.is_none_or(|cause| row.cause.as_deref() == Some(cause));
        rows.filter(has_cause).count() as u64
    };
    let mut by_opcode: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for instruction in &sampled.profile.instructions {
        let known = instruction.known.expect("counted");
        let sum = by_opcode.entry(instruction.opcode).or_default();
        *sum = [sum[0] + instruction.sites, sum[1] + known.overwritten, sum[2] + known.dead];
    }
    for (opcode, found) in &by_opcode {
        let expected = [None, Some("overwritten"), Some("dead")].map(|cause| count(opcode, cause));
        assert_eq!(*found, expected, "{opcode}");
    }
    let sum = |column: usize| by_opcode.values().map(|counts| counts[column]).sum::<u64>();
    assert_eq!(sum(0), truth.rows.len() as u64);
    assert!(sum(1) > 500 && sum(2) > 50, "{by_opcode:?}");
    // The sampled fault sites are the remaining ones, each once.
    let sites: HashSet<&str> =
        sampled.sites.iter().flatten().map(|row| row.site.as_str()).collect();
    assert_eq!(sites.len() as u64, sum(0) - sum(1) - sum(2));
    let is_known =
        |site: &&str| matches!(truth.rows[*site].cause.as_deref(), Some("dead" | "overwritten"));
    assert!(!sites.iter().any(is_known));
}

/// The maximum number of injections, or the number of fault sites, can be smaller than the pilot.
#[test]
fn pilot_is_not_longer_than_its_campaign() {
    let truth = Truth::new();
    let optimal = "stratify: opcode, allocation: {optimal: {pilot: 20000}}";
    for faults in ["until: {margin: 0.2}", "count: 30000, replacement: false"] {
        let sampled = truth.sampled(&format!("{faults}, {optimal}"));
        let scheme = &sampled.scheme;
        assert!(scheme.pilot.is_none() && scheme.count() <= truth.rows.len() as u64, "{faults}");
        let ends = scheme.until.as_ref().map_or(vec![scheme.count()], |until| until.looks.clone());
        assert_eq!(scheme.stages().map(|stage| stage.end).collect::<Vec<_>>(), ends, "{faults}");
        let monitor = sampled.monitor(1, |_| {});
        assert!(monitor.is_goal_met() || monitor.count() == scheme.count(), "{faults}");
    }
}

/// Intervals of campaigns with a stopping rule have nominal coverage at all looks together, and at the last
/// one.
#[test]
fn intervals_have_nominal_coverage_with_early_stopping() {
    let truth = Truth::new();
    let rate = truth.rate(Outcome::Sdc);
    let sdc = |monitor: &CampaignMonitor| monitor.summary().scopes[0].share(Outcome::Sdc).interval;
    let at_all_looks = |sampled: &Sampled<'_>| {
        let (mut at_all, mut at_last, mut injections) = (0, 0, 0);
        for seed in 0..seeds() {
            let mut always = true;
            let monitor = sampled.monitor(seed, |monitor| always &= holds(sdc(monitor), rate));
            at_all += u64::from(always);
            at_last += u64::from(holds(sdc(&monitor), rate));
            injections += monitor.count();
        }
        (at_all, at_last, injections / seeds())
    };
    for (faults, part) in [
        ("until: {margin: 0.05, outcomes: [sdc]}", 1.0),
        ("until: {margin: 0.05, outcomes: [due]}", 0.5),
        ("until: {margin: 0.05}, stratify: group", 0.9),
    ] {
        let sampled = truth.sampled(faults);
        let (at_all, at_last, mean) = at_all_looks(&sampled);
        let max_count = sampled.scheme.count();
        println!(
            "{faults}: held {at_all} at all looks, {at_last} at the last; {mean} of {max_count}"
        );
        assert!(at_all >= *likely(0.94).start() && at_last >= at_all, "{faults}: {at_all}");
        assert!(mean as f64 <= part * max_count as f64, "{faults}: {mean} of {max_count}");
    }
    // Negative control: intervals for a single look have too little coverage at all looks together.
    let mut sampled = truth.sampled("until: {margin: 0.05, outcomes: [sdc]}");
    sampled.scheme.design.z_score = None;
    let (at_all, ..) = at_all_looks(&sampled);
    println!("without the correction: held {at_all} at all looks");
    assert!(at_all < *likely(0.94).start(), "{at_all}");
}
