//! The command line of campaigns in shards.

use crate::arguments::{PathArgument, VariantArgument, workers};
use clap::{Args, ValueEnum};
use flipwave_campaigns::Engine;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Writes results.csv, summary.csv and rates.svg, byte by byte as one worker would have written them, and \
run.json. All rows must be there, each the same in all files that have it.

Of several folders, which must be of the same site space, rows of the same seed are those of one \
campaign, and rows of other seeds come after them, numbered on.")]
pub struct MergeArguments {
    /// Folders with shards
    #[arg(required = true)]
    pub folders: Vec<PathBuf>,
    /// Folder for the results [default: the first folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Wait up to this many seconds for shards that are not there
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u64,
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// The results folder
    pub folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the program once without faults, writes scripts to the folder `submit` of the results, and hands \
them to the engine: a job for each shard, and one that merges them all. A shard that is asked to stop \
by SIGTERM writes what it has done and goes on from there; one that fails three times is given up, and \
the others go on.")]
pub struct SubmitArguments {
    /// The campaign file (YAML)
    pub file: PathBuf,
    /// What runs the shards
    #[arg(long, value_enum)]
    pub engine: EngineArgument,
    /// In how many shards
    #[arg(long, value_name = "N")]
    pub shards: NonZeroU64,
    /// Folder for the results, which all machines share [default: NAME.results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// Shards at once at most [default: what the engine has room for]
    #[arg(long, value_name = "N")]
    pub at_once: Option<NonZeroU64>,
    /// With Slurm, give each shard a whole node, and take this many at once
    #[arg(long, value_name = "N", conflicts_with = "at_once")]
    pub nodes: Option<NonZeroU64>,
    /// Worker threads of a shard
    #[arg(long, value_name = "N", value_parser = workers, default_value = "1")]
    pub workers: NonZeroUsize,
    /// With Slurm, ask a shard to stop this many seconds before its time is over
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub grace: u32,
    /// An image with Flipwave in it, to be run by Apptainer
    #[arg(long, value_name = "IMAGE")]
    pub container: Option<PathBuf>,
    /// How faults are injected [default: embedded; on another device hook]
    #[arg(long, value_name = "PATH", value_enum)]
    pub by: Option<PathArgument>,
    /// Write the scripts, and hand over nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The engine's own options
    #[arg(last = true)]
    pub options: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EngineArgument {
    /// Slurm: job arrays by sbatch
    Slurm,
    /// HyperQueue: a job file by hq
    #[value(name = "hyperqueue")]
    HyperQueue,
    /// Processes of this machine; waits for them
    Local,
}

impl From<EngineArgument> for Engine {
    fn from(engine: EngineArgument) -> Engine {
        match engine {
            EngineArgument::Slurm => Engine::Slurm,
            EngineArgument::HyperQueue => Engine::HyperQueue,
            EngineArgument::Local => Engine::Local,
        }
    }
}
