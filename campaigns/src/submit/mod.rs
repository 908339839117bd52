//! Submits a campaign to an engine that runs its shards: Slurm, HyperQueue, or processes on this machine.
//!
//! The folder `submit` of the results contains readable scripts: one that runs a shard, one that merges
//! the shards, and files that the engine needs. Engines start the scripts, and restart them after a
//! failure. The shards, not the engine, ensure that no row is lost or duplicated.

mod command;
pub(crate) mod error;
mod hyperqueue;
mod local;
mod options;
mod script;
mod slurm;

pub use error::SubmitError;
pub use options::{Engine, SubmitOptions, Submitted};

use crate::error::CampaignError;
use crate::run::progress::Progress;
use crate::shards::{ShardPlan, plan_shards, plan_variant_shards};
use crate::vary::CampaignFile;
use script::Scripts;

/// Plans the campaigns of a file, performs their golden runs, and submits their shards to an engine. For a
/// file with variants, each shard runs its part of all selected variants.
///
/// # Errors
/// [`CampaignError`] if a campaign cannot be run; [`SubmitError`].
pub fn submit(
    file: &CampaignFile,
    options: &SubmitOptions,
    progress: &mut dyn Progress,
) -> Result<Submitted, CampaignError> {
    if options.nodes.is_some() && options.engine != Engine::Slurm {
        return Err(SubmitError::Unsupported { what: "--nodes", only: "--engine slurm" }.into());
    }
    if options.engine == Engine::Local && !options.options.is_empty() {
        let what = "passing arguments after `--`";
        return Err(SubmitError::Unsupported { what, only: "Slurm and HyperQueue" }.into());
    }
    let plans = match file {
        CampaignFile::Plain(campaign) => {
            vec![plan_shards(campaign, &options.folder, options.path, progress)?]
        }
        CampaignFile::Varied(variants) => {
            plan_variant_shards(variants, &options.folder, options.path, progress)?
        }
    };
    let add = |sum: u64, plan: &ShardPlan| sum.saturating_add(plan.count);
    let mut scripts = Scripts::write(file, options)?;
    let mut submitted = Submitted {
        injections: plans.iter().fold(0, add),
        scripts: Vec::new(),
        jobs: Vec::new(),
        watch: vec![format!("flipwave status {}", script::quoted(&scripts.folder))],
        merged: None,
    };
    match options.engine {
        Engine::Slurm => slurm::submit(&mut scripts, options, &mut submitted)?,
        Engine::HyperQueue => hyperqueue::submit(&mut scripts, options, &mut submitted)?,
        Engine::Local if options.dry => {}
        Engine::Local => {
            submitted.merged = Some(local::run(file.cancellation(), &scripts, options)?)
        }
    }
    submitted.scripts = scripts.paths();
    Ok(submitted)
}
