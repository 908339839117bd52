//! Options and results of submitting a campaign.

use crate::run::injection_path::InjectionPath;
use crate::shards::MergedFolder;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

/// Seconds that a merge waits for shards to become visible. Clients of file servers may cache directory
/// listings for a minute.
pub(super) const MERGE_WAIT: u64 = 120;

/// The batch system that runs the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Slurm, with `sbatch`.
    Slurm,
    /// HyperQueue, with `hq`.
    HyperQueue,
    /// Processes on this machine.
    Local,
}

/// Options of submitting a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitOptions {
    /// Batch system.
    pub engine: Engine,
    /// Results folder, shared by all machines.
    pub folder: PathBuf,
    /// Number of shards.
    pub shards: NonZeroU64,
    /// Maximum number of shards that run at the same time.
    pub at_once: Option<NonZeroU64>,
    /// With Slurm: allocate whole nodes, with one shard per node and this many nodes at the same time.
    pub nodes: Option<NonZeroU64>,
    /// Worker threads per shard.
    pub workers: NonZeroUsize,
    /// Seconds between the signal that the time limit is near and the end of a shard.
    pub grace: u32,
    /// Path of the program `flipwave` on the machines.
    pub program: PathBuf,
    /// Apptainer image to run the program in.
    pub container: Option<PathBuf>,
    /// Injection path, if not the default of the campaign's device.
    pub path: Option<InjectionPath>,
    /// Options passed to the batch system.
    pub options: Vec<String>,
    /// If set, only write the scripts.
    pub dry: bool,
}

/// A submitted campaign.
#[derive(Clone, Debug)]
pub struct Submitted {
    /// Injections of all campaigns.
    pub injections: u64,
    /// Scripts written.
    pub scripts: Vec<PathBuf>,
    /// Identifiers of the jobs of the batch system.
    pub jobs: Vec<String>,
    /// Commands that show the progress.
    pub watch: Vec<String>,
    /// Merged results, if the shards ran on this machine.
    pub merged: Option<MergedFolder>,
}
