//! Hardening: selects instructions to duplicate by the outcomes of faults in them, and measures the effect.
//!
//! A campaign on the plain program ranks its instructions by the fraction of SDC that faults in them cause.
//! For each budget, the instructions with the best ratio of benefit to cost are duplicated. The same faults
//! are then injected into each hardened program, by the same campaign with other code ([`code`]).

mod code;
mod curve;
pub(crate) mod error;
mod hardenings;
mod ranking;
mod tables;

pub use error::HardeningError;
pub use hardenings::{Escape, Hardenings};
pub use ranking::RankedInstruction;

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::platform::CodeFile;
use crate::results::folder::{FolderError, RESULTS};
use crate::results::lock::FolderLock;
use crate::run::progress::Progress;
use crate::run::runners::embedded_runner;
use crate::run::{RunOptions, run, run_on};
use crate::sample::{Allocation, SampleSize};
use code::PlainProgram;
use curve::Reruns;
use flipwave_analysis::{HardenedPoint, Outcome};
use flipwave_harden::Comparing;
use ranking::{Ranking, Selected};

/// Name of the results folder of the campaign on the plain program.
const PLAIN: &str = "plain";

/// Options of a hardening.
#[derive(Clone, Debug, PartialEq)]
pub struct HardenOptions {
    /// Maximum number of instructions executed by the hardened program, relative to the plain program. Each
    /// budget results in one hardened version.
    pub budgets: Vec<f64>,
    /// If set, instructions are ranked by every second fault, and coverage is measured with the other
    /// faults, which do not influence the selection.
    pub holds_out: bool,
    /// When duplicated results are compared.
    pub comparing: Comparing,
}

/// Hardens a campaign's program for each budget, and injects the campaign's faults into each version. The
/// results of each version are in its own folder in the folder of `options`.
///
/// # Errors
/// [`CampaignError`]; [`CampaignError::Hardening`] if there is nothing to protect, or if the program cannot
/// be hardened.
pub fn harden(
    campaign: &Campaign,
    HardenOptions { budgets, holds_out, comparing }: &HardenOptions,
    options: &RunOptions,
    progress: &mut dyn Progress,
) -> Result<Hardenings, CampaignError> {
    check(campaign, budgets)?;
    let lock = FolderLock::take(&options.folder, options.take_over).map_err(FolderError::from)?;
    let options_of =
        |name: &str| RunOptions { folder: options.folder.join(name), ..options.clone() };
    let count = budgets.len() + 1;
    progress.variant(PLAIN, 1, count);
    let plain_options = options_of(PLAIN);
    let report = run(campaign, &plain_options, progress)?;
    campaign.unless_cancelled(Ok(()))?;
    let rows = plain_options.folder.join(RESULTS);
    let plain = PlainProgram::new(campaign)?;
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
        let version = match ranking.select(campaign, &plain, *budget, *comparing)? {
            Selected::Program(version) => version,
            Selected::Nothing { minimum } => {
                hardenings.too_small.push((*budget, minimum));
                continue;
            }
        };
        hardenings.steps.push(plain.compare_in_lockstep(campaign, &version)?);
        for (number, module) in version.modules.values().enumerate() {
            let CodeFile { extension, bytes } = module.file();
            let file = options.folder.join(format!("{name}-{number}.{extension}"));
            tables::put(&lock, &file, &bytes)?;
            hardenings.files.push(file);
        }
        let version_options = options_of(&name);
        let prepared = version.prepared.clone();
        let report =
            run_on(campaign, &version_options, progress, || Ok(embedded_runner(prepared)))?;
        campaign.unless_cancelled(Ok(()))?;
        let reruns = Reruns::read(
            campaign,
            [&rows, &version_options.folder.join(RESULTS)],
            &version,
            *holds_out,
        )?;
        let confidence = campaign.faults()?.sample.confidence;
        let masked = Outcome::ALL.map(|to| reruns.coverage.transition_weight(Outcome::Masked, to));
        let all = report.summary.scopes.first();
        hardenings.points.push(HardenedPoint {
            budget: *budget,
            cost: version.instructions as f64 / plain.instructions().max(1) as f64,
            duplicated: version.duplicated(),
            executed: ranking.executed(),
            rates: Outcome::ALL.map(|outcome| all.map_or(0.0, |all| all.share(outcome).rate)),
            coverage: reruns.coverage.rate(),
            interval: reruns.coverage.interval(confidence),
            false_positives: masked[Outcome::Detected as usize]
                / masked.iter().sum::<f64>().max(1.0),
        });
        let escape = |(index, site)| Escape { budget: *budget, index, site };
        hardenings.escapes.extend(reruns.escapes.into_iter().map(escape));
    }
    if hardenings.points.is_empty()
        && let Some((budget, minimum)) = hardenings.too_small.last().copied()
    {
        return Err(HardeningError::TooSmall { budget, minimum }.into());
    }
    hardenings.ranking = ranking.instructions();
    hardenings.files.extend(tables::write(&lock, campaign, &hardenings)?);
    Ok(hardenings)
}

/// Checks that the same faults can be injected into a hardened version, and that the budgets are valid.
fn check(campaign: &Campaign, budgets: &[f64]) -> Result<(), CampaignError> {
    let sample = &campaign.faults()?.sample;
    if campaign.kernels().is_none() {
        return Err(HardeningError::Application.into());
    }
    if campaign.device().is_hardware() {
        return Err(campaign.requires_embedded("hardening"));
    }
    if !campaign.instructions().is_empty() {
        return Err(HardeningError::Emulated.into());
    }
    if campaign.kernels().is_some_and(|kernels| kernels.detector.is_some()) {
        return Err(HardeningError::Detector.into());
    }
    let is_fixed = !matches!(sample.size, SampleSize::Until { .. });
    if !is_fixed || matches!(sample.allocation, Allocation::Optimal { .. }) {
        return Err(HardeningError::Drawn.into());
    }
    if let Some(budget) = budgets.iter().find(|budget| !(budget.is_finite() && **budget > 1.0)) {
        return Err(HardeningError::InvalidBudget { budget: *budget }.into());
    }
    let duplicate = (1..budgets.len()).find(|index| budgets[..*index].contains(&budgets[*index]));
    match duplicate {
        Some(index) => Err(HardeningError::SameBudget { budget: budgets[index] }.into()),
        None => Ok(()),
    }
}
