//! Injections per second of the example campaigns on one worker: with a complete run per fault, with all
//! accelerations, and with hooks. The time before the injections is excluded.

use flipwave_campaigns::{Campaign, InjectionPath, RunOptions, SampleSize, Silent, run};
use flipwave_injector::Accelerations;
use flipwave_tests::examples;
use std::error::Error;
use std::num::NonZeroUsize;

/// Number of runs, of which the median is taken.
const RUNS: usize = 3;

/// Number of faults injected with hooks; code is rewritten for each new site.
const BY_HOOK: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:<12} {:>8} {:>12} {:>14} {:>7} {:>12}",
        "example", "faults", "whole, /s", "accelerated, /s", "ratio", "by hooks, /s"
    );
    for file in examples() {
        let campaign = Campaign::read(&file)?;
        let embedded = InjectionPath::Embedded;
        let whole = measure(&campaign, embedded, Accelerations::NONE)?;
        let fast = measure(&campaign, embedded, Accelerations::ALL)?;
        let mut few = campaign.clone();
        if let Some(faults) = &mut few.faults {
            faults.sample.size = SampleSize::Count(BY_HOOK);
        }
        let hook = measure(&few, InjectionPath::Hook, Accelerations::NONE)?;
        println!(
            "{:<12} {:>8} {:>12.0} {:>14.0} {:>7.1} {:>12.0}",
            campaign.name,
            fast.faults,
            whole.per_second,
            fast.per_second,
            fast.per_second / whole.per_second,
            hook.per_second
        );
    }
    Ok(())
}

struct Measured {
    faults: u64,
    /// Injections per second.
    per_second: f64,
}

/// Runs a campaign several times. Returns the run with the median speed.
fn measure(
    campaign: &Campaign,
    path: InjectionPath,
    accelerations: Accelerations,
) -> Result<Measured, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let options = RunOptions {
        force: true,
        path: Some(path),
        accelerations,
        ..RunOptions::new(folder.path().to_owned(), NonZeroUsize::MIN)
    };
    let mut runs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let record = run(campaign, &options, &mut Silent)?.record;
        runs.push(Measured { faults: record.planned, per_second: record.injections_per_second });
    }
    runs.sort_by(|left, right| left.per_second.total_cmp(&right.per_second));
    Ok(runs.swap_remove(RUNS / 2))
}
