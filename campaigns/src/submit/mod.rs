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

use crate::campaign::Campaign;
use crate::error::CampaignError;
use crate::progress::Progress;
use crate::shards::plan_shards;
use script::Scripts;

/// Plans a campaign, runs it without a fault, and hands its shards to an engine.
///
/// # Errors
/// [`CampaignError`] of a campaign that cannot be run; [`SubmitError`].
pub fn submit(
    campaign: &Campaign,
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
    let plan = plan_shards(campaign, &options.folder, options.path, progress)?;
    let mut scripts = Scripts::write(campaign, options)?;
    let mut submitted = Submitted {
        plan,
        scripts: Vec::new(),
        jobs: Vec::new(),
        watch: vec![format!("flipwave status {}", script::quoted(&scripts.folder))],
        merged: None,
    };
    match options.engine {
        Engine::Slurm => slurm::submit(&mut scripts, options, &mut submitted)?,
        Engine::HyperQueue => hyperqueue::submit(&mut scripts, options, &mut submitted)?,
        Engine::Local if options.dry => {}
        Engine::Local => submitted.merged = Some(local::run(campaign, &scripts, options)?),
    }
    submitted.scripts = scripts.paths();
    Ok(submitted)
}
