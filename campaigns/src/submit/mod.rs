//! Handing a campaign to an engine that runs its shards on many machines: Slurm, HyperQueue, or
//! processes of this machine.
//!
//! What is handed over are scripts for people to read, in the folder `submit` of the results: one that
//! does a shard, one that merges, and what the engine wants besides. Engines start them, again where a
//! machine fails; that nothing is lost or doubled is not up to engines, but to the shards.

mod command;
mod hyperqueue;
mod local;
mod script;
mod slurm;

use crate::campaign::Campaign;
use crate::error::CampaignError;
use crate::progress::Progress;
use crate::runners::InjectionPath;
use crate::shards::{Merged, ShardPlan, plan_shards};
use script::Scripts;
use std::io;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// How often a shard is tried before it is given up.
const ATTEMPTS: u32 = 3;

/// Seconds for which a merge waits for shards that are there and not yet seen: file servers' clients
/// may believe in old listings for a minute.
const MERGE_WAIT: u64 = 120;

/// What runs the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Slurm, by sbatch.
    Slurm,
    /// HyperQueue, by hq.
    HyperQueue,
    /// Processes of this machine.
    Local,
}

/// How a campaign is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitOptions {
    /// To whom.
    pub engine: Engine,
    /// Where the results go: a folder that all machines share.
    pub folder: PathBuf,
    /// In how many shards.
    pub shards: NonZeroU64,
    /// Shards at once, at most.
    pub at_once: Option<NonZeroU64>,
    /// With Slurm, whole nodes, a shard on each, and this many of them at once.
    pub nodes: Option<NonZeroU64>,
    /// Worker threads of a shard.
    pub workers: NonZeroUsize,
    /// Seconds that a shard gets to write what it has done before its time is over.
    pub grace: u32,
    /// This program, as the machines find it.
    pub program: PathBuf,
    /// An image to run it in, by Apptainer.
    pub container: Option<PathBuf>,
    /// How faults are injected, if not as the campaign's device does it.
    pub path: Option<InjectionPath>,
    /// The engine's own options.
    pub options: Vec<String>,
    /// Write the scripts, and do no more.
    pub dry: bool,
}

/// What was handed over.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// The campaign.
    pub plan: ShardPlan,
    /// The script that does a shard, and others that are for people to look at.
    pub scripts: Vec<PathBuf>,
    /// Jobs of the engine, in its own words.
    pub jobs: Vec<String>,
    /// Commands that show how far it is.
    pub watch: Vec<String>,
    /// The results, of an engine that was waited for.
    pub merged: Option<Merged>,
}

/// A campaign that cannot be handed over.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The engine's program is not there.
    #[error("cannot run `{program}`: {reason}; {hint}")]
    Missing {
        /// The program.
        program: String,
        /// Why not.
        reason: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The engine refused.
    #[error("`{command}` failed: {message}")]
    Refused {
        /// What was run.
        command: String,
        /// What it said.
        message: String,
    },
    /// A script cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Script {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// What an engine does not have.
    #[error("{what} is for {only}; leave it out")]
    Unsupported {
        /// The option.
        what: &'static str,
        /// Who has it.
        only: &'static str,
    },
    /// Shards that were given up.
    #[error(
        "{} shards were given up after {ATTEMPTS} attempts each: {}; `flipwave status` shows why",
        shards.len(), list(shards)
    )]
    GivenUp {
        /// Their numbers.
        shards: Vec<u64>,
    },
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

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
