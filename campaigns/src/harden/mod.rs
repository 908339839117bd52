//! Hardening: which instructions of a program to execute twice, measured by what faults in them come
//! to, and what that brings.
//!
//! A campaign on the plain program ranks its instructions by how much of the SDC faults in them are the
//! cause of, and each budget buys those that bring most for what they cost. The same faults are then
//! injected into each hardened program: it is the same campaign, on other code ([`code`]).

mod code;
mod curve;
pub(crate) mod error;
mod hardenings;
mod ranking;
mod tables;

pub use error::HardeningError;
pub use hardenings::{Escape, Hardenings, InStep};
pub use ranking::RankedInstruction;

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::results::folder::{FolderError, RESULTS};
use crate::results::lock::FolderLock;
use crate::run::injection_path::InjectionPath;
use crate::run::progress::Progress;
use crate::run::runners::of_prepared;
use crate::run::{RunOptions, run, run_on};
use crate::sample::{Allocation, SampleSize};
use code::Plain;
use curve::Reruns;
use flipwave_analysis::{HardenedPoint, Outcome};
use flipwave_harden::Comparing;
use ranking::{Bought, Ranking};

/// The folder of the campaign on the plain program, in that of a hardening.
const PLAIN: &str = "plain";

/// What is asked of a hardening.
#[derive(Clone, Debug, PartialEq)]
pub struct HardenOptions {
    /// What the hardened program may execute, the plain one's instructions being 1; a version for each.
    pub budgets: Vec<f64>,
    /// Instructions are ranked by every second fault alone, and coverage is that of the others, which
    /// say nothing of how instructions were chosen.
    pub holds_out: bool,
    /// How results are compared.
    pub comparing: Comparing,
}

/// Hardens a campaign's program for each budget, and injects the campaign's faults into each version, with
/// results in folders of `options`' own.
///
/// # Errors
/// [`CampaignError`]; [`CampaignError::Hardening`] where there is nothing to protect, or no way to.
pub fn harden(
    campaign: &Campaign,
    HardenOptions { budgets, holds_out, comparing }: &HardenOptions,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Hardenings, CampaignError> {
    check(campaign, budgets)?;
    let lock = FolderLock::take(&options.folder, options.take_over).map_err(FolderError::from)?;
    let of = |name: &str| RunOptions { folder: options.folder.join(name), ..options.clone() };
    let count = budgets.len() + 1;
    progress.variant(PLAIN, 1, count);
    let plain_options = of(PLAIN);
    let report = run(campaign, &plain_options, progress)?;
    campaign.unless_stopped(Ok(()))?;
    let rows = plain_options.folder.join(RESULTS);
    let plain = Plain::new(campaign)?;
    let mut ranking = Ranking::new(campaign, &plain, &rows, *holds_out)?;
    let mut hardenings = Hardenings {
        plain: report,
        points: Vec::new(),
        too_small: Vec::new(),
        ranking: Vec::new(),
        steps: Vec::new(),
        escapes: Vec::new(),
        files: Vec::new(),
    };
    for (budget, number) in budgets.iter().zip(2..) {
        let name = budget.to_string();
        progress.variant(&name, number, count);
        let version = match ranking.buy(campaign, &plain, *budget, *comparing)? {
            Bought::Version(version) => version,
            Bought::Nothing { least } => {
                hardenings.too_small.push((*budget, least));
                continue;
            }
        };
        hardenings.steps.push(plain.keep_step(&version)?);
        for (number, module) in version.modules.values().enumerate() {
            let file = options.folder.join(format!("{name}-{number}.hsaco"));
            tables::put(&lock, &file, module.hardened.rewritten.object.bytes())?;
            hardenings.files.push(file);
        }
        let own = of(&name);
        let prepared = version.prepared.clone();
        let report = run_on(campaign, &own, progress, || {
            Ok(of_prepared(prepared, InjectionPath::Embedded))
        })?;
        campaign.unless_stopped(Ok(()))?;
        let reruns =
            Reruns::read(campaign, [&rows, &own.folder.join(RESULTS)], &version, *holds_out)?;
        let confidence = campaign.faults()?.sample.confidence;
        let masked = Outcome::ALL.map(|to| reruns.coverage.transition_weight(Outcome::Masked, to));
        let all = report.summary.scopes.first();
        hardenings.points.push(HardenedPoint {
            budget: *budget,
            cost: version.instructions as f64 / plain.instructions().max(1) as f64,
            duplicated: version.duplicated(),
            executed: ranking.executed(),
            rates: Outcome::ALL.map(|own| all.map_or(0.0, |all| all.share(own).rate)),
            coverage: reruns.coverage.rate(),
            interval: reruns.coverage.interval(confidence),
            false_positives: masked[Outcome::Detected as usize]
                / masked.iter().sum::<f64>().max(1.0),
        });
        let escape = |(index, site)| Escape { budget: *budget, index, site };
        hardenings.escapes.extend(reruns.escapes.into_iter().map(escape));
    }
    if let (true, Some((budget, least))) =
        (hardenings.points.is_empty(), hardenings.too_small.last().copied())
    {
        return Err(HardeningError::TooSmall { budget, least }.into());
    }
    hardenings.ranking = ranking.instructions();
    hardenings.files.extend(tables::write(&lock, campaign, &hardenings)?);
    Ok(hardenings)
}

/// Checks that the same faults can be injected into another version, and that budgets are some.
fn check(campaign: &Campaign, budgets: &[f64]) -> Result<(), CampaignError> {
    let sample = &campaign.faults()?.sample;
    if campaign.kernels().is_none() {
        return Err(HardeningError::Application.into());
    }
    if campaign.device().is_hardware() {
        return Err(CampaignError::OnlyEmbedded("hardening"));
    }
    if !campaign.instructions().is_empty() {
        return Err(HardeningError::Emulated.into());
    }
    let is_fixed = !matches!(sample.size, SampleSize::Until { .. });
    if !is_fixed || matches!(sample.allocation, Allocation::Optimal { .. }) {
        return Err(HardeningError::Drawn.into());
    }
    if let Some(budget) = budgets.iter().find(|budget| !(budget.is_finite() && **budget > 1.0)) {
        return Err(HardeningError::NoBudget { budget: *budget }.into());
    }
    let twice = (1..budgets.len()).find(|at| budgets[..*at].contains(&budgets[*at]));
    match twice {
        Some(at) => Err(HardeningError::SameBudget { budget: budgets[at] }.into()),
        None => Ok(()),
    }
}
