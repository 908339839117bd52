//! Why a campaign cannot be run, or was not run to its end.

use crate::application::ApplicationError;
use crate::attached::error::AttachError;
use crate::file::campaign::Campaign;
use crate::file::faults::Faults;
use crate::file::location::FileError;
use crate::golden::expected::Unexpected;
use crate::golden::suspicion::SuspicionError;
use crate::harden::error::HardeningError;
use crate::program::capture::ReplayError;
use crate::program::launch::LaunchError;
use crate::program::prepare::PrepareError;
use crate::results::folder::FolderError;
use crate::run::process_site::OtherProcessError;
use crate::run::resume::ResumeError;
use crate::severity::SeverityError;
use crate::shards::error::ShardError;
use crate::submit::error::SubmitError;
use flipwave_analysis::StatisticsError;
use flipwave_emulator::EmulateError;
use flipwave_injector::{
    FaultTarget, GoldenError, InjectionError, PlanError, ProfileError, TraceError,
};
use flipwave_tools::ToolError;
use std::sync::Arc;

/// Why a campaign cannot be run, or was not run to its end. None of these is ever an outcome.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The campaign file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// Nothing to inject.
    #[error("the campaign file has no `faults`: say what is to be injected")]
    NoFaults,
    /// No instruction to emulate.
    #[error("the file has no `instructions`: say which are to be emulated")]
    NoInstructions,
    /// An instruction cannot be emulated.
    #[error(transparent)]
    Emulate(#[from] Box<EmulateError>),
    /// A program cannot be hardened.
    #[error(transparent)]
    Hardening(Box<HardeningError>),
    /// The program cannot be put together.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// An application cannot be run or judged.
    #[error(transparent)]
    Application(#[from] ApplicationError),
    /// An application cannot be run on the embedded GPU.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A site in another process.
    #[error(transparent)]
    OtherProcess(#[from] OtherProcessError),
    /// What only the embedded GPU can do.
    #[error(
        "{0} takes the embedded GPU: the campaign's device is rocr, where faults are injected by \
         hooks"
    )]
    OnlyEmbedded(&'static str),
    /// What no hook reaches.
    #[error(
        "target {0} is inside of an instruction, where no hook comes; it takes `device: embedded` and \
         no `--by hook`"
    )]
    NotByHook(FaultTarget),
    /// Kernels through AMD's runtime.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A capture cannot be run.
    #[error(transparent)]
    Capture(#[from] ReplayError),
    /// The fault-free run failed.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The fault-free run is such that outcomes would mean nothing.
    #[error(transparent)]
    Suspicion(#[from] SuspicionError),
    /// The fault-free run is not what the campaign file expects.
    #[error(transparent)]
    Unexpected(#[from] Box<Unexpected>),
    /// Parts of a campaign cannot be put together.
    #[error(transparent)]
    Shard(Box<ShardError>),
    /// A campaign cannot be handed to those who run its parts.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// An earlier run cannot be gone on with.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// Two fault-free runs differ.
    #[error(
        "two fault-free runs of the workload differ in {difference}; outcomes would mean nothing \
         (this is a defect of the embedded GPU: please report it)"
    )]
    NotDeterministic {
        /// In what they differ.
        difference: String,
    },
    /// What can be hit cannot be counted.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A fault whose outcome is known has another.
    #[error(
        "the self-test failed: a fault that must be {expected} is {found}; nothing was injected \
         (this is a defect of Flipwave: please report it); the site is: {site}"
    )]
    SelfTest {
        /// The site.
        site: String,
        /// The outcome that it must have.
        expected: String,
        /// The one that it has.
        found: String,
    },
    /// No sites can be drawn.
    #[error(transparent)]
    Plan(#[from] Arc<PlanError>),
    /// The precision asked for is none.
    #[error(transparent)]
    Statistics(#[from] StatisticsError),
    /// An injection did not take place.
    #[error("injection {index} failed: {reason}")]
    Injection {
        /// Its index in the plan.
        index: u64,
        /// Why.
        reason: Box<CampaignError>,
    },
    /// A fault did not take place.
    #[error(transparent)]
    NotInjected(#[from] Box<InjectionError>),
    /// A fault cannot be followed.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The tool itself failed in an injection.
    #[error(
        "injection {index} failed: internal error: {message}; the site is: {site} (this is a \
         defect of Flipwave: please report it with the campaign)"
    )]
    Panic {
        /// Its index in the plan.
        index: u64,
        /// The site, for a replay.
        site: String,
        /// What the panic said.
        message: String,
    },
    /// A tool has no result.
    #[error(transparent)]
    Tool(#[from] Box<ToolError>),
    /// Silent data corruption is not judged.
    #[error(transparent)]
    Severity(#[from] SeverityError),
    /// All runs were to stop.
    #[error("interrupted")]
    Interrupted,
    /// Results cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// One of the campaigns of a file with `vary` cannot be run.
    #[error("variant `{name}` ({settings}): {reason}")]
    Variant {
        /// Its name.
        name: String,
        /// What its dimensions are.
        settings: String,
        /// Why.
        reason: Box<CampaignError>,
    },
}

impl From<HardeningError> for CampaignError {
    fn from(error: HardeningError) -> CampaignError {
        CampaignError::Hardening(Box::new(error))
    }
}

impl From<ShardError> for CampaignError {
    fn from(error: ShardError) -> CampaignError {
        CampaignError::Shard(Box::new(error))
    }
}

impl From<PlanError> for CampaignError {
    fn from(error: PlanError) -> CampaignError {
        CampaignError::Plan(Arc::new(error))
    }
}

impl Campaign {
    /// What came of something, unless all runs were to stop meanwhile: it means nothing then.
    ///
    /// # Errors
    /// [`CampaignError::Interrupted`].
    pub(crate) fn unless_stopped<T>(
        &self,
        result: Result<T, CampaignError>,
    ) -> Result<T, CampaignError> {
        match self.cancellation.is_stopped() {
            true => Err(CampaignError::Interrupted),
            false => result,
        }
    }

    /// What to inject.
    ///
    /// # Errors
    /// [`CampaignError::NoFaults`].
    pub fn faults(&self) -> Result<&Faults, CampaignError> {
        self.faults.as_ref().ok_or(CampaignError::NoFaults)
    }
}
