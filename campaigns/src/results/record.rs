//! `run.json`: the record of a run, the only result file that depends on time and host.
//!
//! Later versions read the file (`about.rs`, `folder.rs`). It has no version number: fields keep
//! their names, and readers accept records without newer fields.

use crate::file::campaign::Campaign;
use crate::file::faults::Faults;
use crate::program::prepare::{Origin, Prepared};
use crate::results::folder::{FolderError, RECORD};
use crate::results::lock::FolderLock;
use flipwave_analysis::{ComparedOutput, Look, Outcome, SampleDesign};
use flipwave_injector::{FaultSpace, FidelityRecord};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Facts about a campaign, known before its first injection. `run.json` and plans of shards record
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignFacts {
    /// The campaign.
    pub campaign: CampaignIdentity,
    /// Path of the campaign file, as given on the command line.
    #[serde(default)]
    pub file: PathBuf,
    /// The compared outputs and how they are compared.
    #[serde(default)]
    pub compared: Vec<ComparedOutput>,
    /// Versions of the programs that prepared the campaign.
    pub versions: Versions,
    /// The fault space.
    pub fault_space: FaultSpace,
    /// Description of how the fault space was counted.
    pub counted: String,
    /// Properties of the sampling that determine rates and intervals.
    pub design: SampleDesign,
    /// Fidelity of the golden run; `None` if it did not run on the embedded GPU.
    pub fidelity: Option<FidelityRecord>,
    /// Wave instructions that the golden run executed, per dispatch.
    pub golden_wave_instructions: Vec<u64>,
    /// Watchdog limits of faulty runs in wave instructions, per dispatch.
    pub instruction_limits: Vec<u64>,
}

/// Content of `run.json`: status, conditions and results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// State of the run.
    pub status: Status,
    /// The error that ended the run.
    pub error: Option<String>,
    /// Facts known before the first injection.
    #[serde(flatten)]
    pub facts: CampaignFacts,
    /// The machine of the run.
    pub host: Host,
    /// Number of worker threads.
    pub workers: usize,
    /// Number of planned injections; the upper limit with a stopping rule.
    pub planned: u64,
    /// Confidence of the intervals in `summary.csv`.
    pub confidence: f64,
    /// The interim looks, if the campaign has a stopping rule.
    pub looks: Vec<Look>,
    /// Number of completed injections, by outcome.
    pub done: Counts,
    /// Duration of each step in seconds.
    pub timings: Timings,
    /// Injections per second; 0 before the first.
    pub injections_per_second: f64,
}

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Running or killed.
    Running,
    /// All required injections are done.
    Complete,
    /// Cancelled.
    Interrupted,
    /// Failed; the rows are valid.
    Failed,
}

/// Identity of a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignIdentity {
    /// Name of the campaign.
    pub name: String,
    /// The seed from the file or the command line.
    pub seed: u64,
    /// The GPU.
    pub target: String,
    /// Description of the fault.
    pub fault: String,
    /// Description of the selected instructions.
    pub selection: String,
    /// SHA-256 of the campaign file.
    pub sha256: String,
    /// SHA-256 of the file's content except comments, name, seed and number of faults. A campaign
    /// can be resumed if this is unchanged.
    pub content: String,
}

impl CampaignIdentity {
    pub(crate) fn new(campaign: &Campaign, faults: &Faults) -> CampaignIdentity {
        CampaignIdentity {
            name: campaign.name.clone(),
            seed: campaign.seed,
            target: campaign.target.to_string(),
            fault: faults.fault.to_string(),
            selection: faults.selection.to_string(),
            sha256: campaign.digest.clone(),
            content: campaign.content.clone(),
        }
    }
}

/// Versions of the programs that prepared a campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of Flipwave.
    pub flipwave: String,
    /// Version text of the compiler; `None` if no compiler was needed.
    pub compiler: Option<String>,
}

impl Versions {
    /// With what a program was put together.
    pub(crate) fn new(prepared: &Prepared) -> Versions {
        Versions {
            flipwave: env!("CARGO_PKG_VERSION").to_owned(),
            compiler: match &prepared.origin {
                Origin::Kernels { compiler } => compiler.clone(),
                Origin::Recording { .. } => None,
            },
        }
    }
}

/// The machine of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The operating system.
    pub system: &'static str,
    /// Architecture of the processor.
    pub architecture: &'static str,
    /// Number of threads that can run in parallel.
    pub threads: usize,
}

impl Host {
    pub(crate) fn current() -> Host {
        Host {
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }
}

/// Numbers of injections by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Counts {
    pub masked: u64,
    pub sdc: u64,
    pub due: u64,
    pub detected: u64,
}

impl Counts {
    /// Counts an outcome.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Masked => &mut self.masked,
            Outcome::Sdc => &mut self.sdc,
            Outcome::Due => &mut self.due,
            Outcome::Detected => &mut self.detected,
        };
        *count += 1;
    }

    /// Number of injections with an outcome.
    pub(crate) fn get(self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Masked => self.masked,
            Outcome::Sdc => self.sdc,
            Outcome::Due => self.due,
            Outcome::Detected => self.detected,
        }
    }

    /// Number of injections.
    pub fn total(self) -> u64 {
        self.masked + self.sdc + self.due + self.detected
    }
}

/// Duration of each step of a campaign in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Timings {
    /// Compiling and loading kernels, and filling buffers.
    pub prepare: f64,
    /// The golden run with profiling.
    pub golden: f64,
    /// The second golden run, which resolves the first batch of faults and records checkpoints.
    /// Other batches are resolved during injection.
    pub rehearsal: f64,
    /// All injections.
    pub inject: f64,
}

impl Record {
    /// Writes `run.json` atomically, because `--resume` reads it after this process was killed.
    pub(crate) fn write(&self, lock: &FolderLock) -> Result<(), FolderError> {
        let path = lock.folder()?.join(RECORD);
        let failed = |reason| FolderError::Access { path: path.clone(), reason };
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        text.push('\n');
        flipwave_host::output::replace(&path, text.as_bytes()).map_err(failed)
    }
}
