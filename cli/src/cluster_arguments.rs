//! Command-line options of the commands for sharded campaigns.

use crate::arguments::{PathArgument, VariantArgument, workers};
use clap::{Args, ValueEnum};
use flipwave_campaigns::Engine;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Writes results.csv, summary.csv and rates.svg, byte for byte as a single worker would have written \
them, and run.json. All rows must be present, and duplicates of a row must be identical.

Several folders must have the same fault space. Rows with the same seed belong to one campaign; rows \
with other seeds are appended with continued indices.")]
pub struct MergeArguments {
    /// Folders with shards
    #[arg(required = true)]
    pub folders: Vec<PathBuf>,
    /// Write the results to this folder [default: the first folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Wait up to this many seconds for missing shards
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u64,
}

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Results folder
    pub folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the program once without faults, writes scripts to the folder `submit` of the results and submits \
them: one job per shard and one that merges all shards. A shard that receives SIGTERM saves its rows and \
continues from them later. A shard that fails three times is abandoned; the others continue.")]
pub struct SubmitArguments {
    /// Campaign file (YAML)
    pub file: PathBuf,
    /// Select the engine that runs the shards
    #[arg(long, value_enum)]
    pub engine: EngineArgument,
    /// Divide the campaign into N shards
    #[arg(long, value_name = "N")]
    pub shards: NonZeroU64,
    /// Write the results to this folder, which all machines share [default: NAME.results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// Run at most N shards at the same time [default: as many as the engine has room for]
    #[arg(long, value_name = "N")]
    pub at_once: Option<NonZeroU64>,
    /// With Slurm, give each shard a whole node, and use at most N nodes at the same time
    #[arg(long, value_name = "N", conflicts_with = "at_once")]
    pub nodes: Option<NonZeroU64>,
    /// Use N worker threads per shard
    #[arg(long, value_name = "N", value_parser = workers, default_value = "1")]
    pub workers: NonZeroUsize,
    /// With Slurm, stop a shard this many seconds before its time limit
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub grace: u32,
    /// Run shards in this Apptainer image, which contains Flipwave
    #[arg(long, value_name = "IMAGE")]
    pub container: Option<PathBuf>,
    /// Select the injection path [default: embedded; hook on other devices]
    #[arg(long, value_name = "PATH", value_enum)]
    pub by: Option<PathArgument>,
    /// Write the scripts without submitting them
    #[arg(long)]
    pub dry_run: bool,
    /// Options passed to the engine
    #[arg(last = true)]
    pub options: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum EngineArgument {
    /// Slurm job arrays, submitted with sbatch
    Slurm,
    /// A HyperQueue job file, submitted with hq
    #[value(name = "hyperqueue")]
    HyperQueue,
    /// Processes on this machine; waits until they end
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
