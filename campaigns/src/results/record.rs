//! `run.json`: how a run of a campaign went. The only result file that depends on time and
//! host.
//!
//! The file outlives the run, and later versions read it (`about.rs`, `folder.rs`). It has no version:
//! fields keep their names, and readers accept records without fields that came later.

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

/// Facts about a campaign, known before its first injection. `run.json` and plans of shards record them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignFacts {
    /// The campaign.
    pub campaign: CampaignIdentity,
    /// Path of the campaign file, as given on the command line.
    #[serde(default)]
    pub file: PathBuf,
    /// Outputs that are compared with the golden run's, and how.
    #[serde(default)]
    pub compared: Vec<ComparedOutput>,
    /// Versions of the programs that prepared it.
    pub versions: Versions,
    /// The fault space.
    pub population: FaultSpace,
    /// How the fault space was counted, in words.
    pub counted: String,
    /// How the sample is drawn, as far as rates and their intervals depend on it.
    pub design: SampleDesign,
    /// Exactness of the golden run; `None` if another device than the embedded GPU made it.
    pub fidelity: Option<FidelityRecord>,
    /// Wave instructions that the golden run executed, per dispatch.
    pub golden_wave_instructions: Vec<u64>,
    /// Watchdog limits of faulty runs in wave instructions, per dispatch.
    pub instruction_limits: Vec<u64>,
}

/// Record of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// State of the run.
    pub status: Status,
    /// The error that ended it, if it failed.
    pub error: Option<String>,
    /// Facts known before the first injection.
    #[serde(flatten)]
    pub facts: CampaignFacts,
    /// The machine that ran it.
    pub host: Host,
    /// Worker threads.
    pub workers: usize,
    /// Injections planned: the upper limit for campaigns that end once enough is known.
    pub planned: u64,
    /// Confidence of the intervals in `summary.csv`.
    pub confidence: f64,
    /// Rates known at each look, for campaigns that end once enough is known.
    pub looks: Vec<Look>,
    /// Injections done, by outcome.
    pub done: Counts,
    /// Duration of each step in seconds.
    pub timings: Timings,
    /// Injections per second; 0 before the first.
    pub injections_per_second: f64,
}

/// Whether a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is under way, or was killed.
    Running,
    /// Every injection is done.
    Complete,
    /// It was asked to stop.
    Interrupted,
    /// The tool failed; the rows before are good.
    Failed,
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignIdentity {
    /// Its name.
    pub name: String,
    /// The seed, as the file or the command line gave it.
    pub seed: u64,
    /// The GPU.
    pub target: String,
    /// The fault, in words.
    pub fault: String,
    /// What of the program is struck, in words.
    pub selection: String,
    /// SHA-256 of the campaign file.
    pub sha256: String,
    /// SHA-256 of what it says but for comments, name, seed and the number of faults: the campaign can
    /// be gone on with as long as that is the same.
    pub content: String,
}

impl CampaignIdentity {
    pub(crate) fn of(campaign: &Campaign, faults: &Faults) -> CampaignIdentity {
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

/// With what a campaign was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Flipwave's.
    pub flipwave: String,
    /// The compiler's own words; nothing where none was needed.
    pub compiler: Option<String>,
}

impl Versions {
    /// With what a program was put together.
    pub(crate) fn of(prepared: &Prepared) -> Versions {
        Versions {
            flipwave: env!("CARGO_PKG_VERSION").to_owned(),
            compiler: match &prepared.origin {
                Origin::Kernels { compiler } => compiler.clone(),
                Origin::Recording { .. } => None,
            },
        }
    }
}

/// Where a campaign was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The operating system.
    pub system: &'static str,
    /// The processor's architecture.
    pub architecture: &'static str,
    /// Threads that can run at once.
    pub threads: usize,
}

impl Host {
    pub(crate) fn this() -> Host {
        Host {
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            threads: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        }
    }
}

/// Injections by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Counts {
    pub masked: u64,
    pub sdc: u64,
    pub due: u64,
    pub detected: u64,
}

impl Counts {
    /// One more.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Masked => &mut self.masked,
            Outcome::Sdc => &mut self.sdc,
            Outcome::Due => &mut self.due,
            Outcome::Detected => &mut self.detected,
        };
        *count += 1;
    }

    /// How many there are of an outcome.
    pub(crate) fn of(self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Masked => self.masked,
            Outcome::Sdc => self.sdc,
            Outcome::Due => self.due,
            Outcome::Detected => self.detected,
        }
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.masked + self.sdc + self.due + self.detected
    }
}

/// Seconds that each step of a campaign took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Timings {
    /// Compiling, loading, filling buffers.
    pub prepare: f64,
    /// The fault-free run, in which is counted what can be hit, and which is followed for its fidelity.
    pub golden: f64,
    /// The fault-free run again, or what of it is struck, which finds the sites of the first window of
    /// faults, and saves states. The sites of other windows are found while faults are injected.
    pub rehearsal: f64,
    /// All injections.
    pub inject: f64,
}

impl Record {
    /// Writes `run.json`, whole: `--resume` reads it, whenever this process was killed.
    pub(crate) fn write(&self, lock: &FolderLock) -> Result<(), FolderError> {
        let path = lock.folder()?.join(RECORD);
        let failed = |reason| FolderError::Access { path: path.clone(), reason };
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        text.push('\n');
        flipwave_host::output::replace(&path, text.as_bytes()).map_err(failed)
    }
}
