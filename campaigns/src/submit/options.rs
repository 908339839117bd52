//! How a campaign is handed over, and what was.

use crate::run::injection_path::InjectionPath;
use crate::shards::MergedFolder;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// Seconds for which a merge waits for shards that are there and not yet seen: file servers' clients
/// may believe in old listings for a minute.
pub(super) const MERGE_WAIT: u64 = 120;

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
    /// Injections of all campaigns.
    pub injections: u64,
    /// The script that does a shard, and others that are for people to look at.
    pub scripts: Vec<PathBuf>,
    /// Jobs of the engine, in its own words.
    pub jobs: Vec<String>,
    /// Commands that show how far it is.
    pub watch: Vec<String>,
    /// The results, of an engine that was waited for.
    pub merged: Option<MergedFolder>,
}
