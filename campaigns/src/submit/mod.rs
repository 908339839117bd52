//! Handing a campaign to an engine that runs its shards on many machines: Slurm, HyperQueue, or
//! processes of this machine.
//!
//! What is handed over are scripts for people to read, in the folder `submit` of the results: one that
//! does a shard, one that merges, and what the engine wants besides. Engines start them, again where a
//! machine fails; that nothing is lost or doubled is not up to engines, but to the shards.

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

/// Plans the campaigns of a file, runs them without a fault, and hands their shards to an engine. Of a
/// file with variants, each shard does its part of all that are asked for.
///
/// # Errors
/// [`CampaignError`] of a campaign that cannot be run; [`SubmitError`].
pub fn submit(
    file: &CampaignFile,
    options: &SubmitOptions,
    progress: &mut dyn Progress,
) -> Result<Submitted, CampaignError> {
    if options.nodes.is_some() && options.engine != Engine::Slurm {
        return Err(SubmitError::Unsupported { what: "--nodes", only: "--engine slurm" }.into());
    }
    if options.engine == Engine::Local && !options.options.is_empty() {
        let what = "what stands after `--`";
        return Err(SubmitError::Unsupported { what, only: "engines with options" }.into());
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
