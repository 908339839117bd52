//! Errors of running a campaign.

use crate::application::ApplicationError;
use crate::attached::error::AttachError;
use crate::file::campaign::Campaign;
use crate::file::device::CampaignDevice;
use crate::file::faults::Faults;
use crate::file::location::FileError;
use crate::golden::expected::Unexpected;
use crate::golden::suspicion::SuspicionError;
use crate::harden::error::HardeningError;
use crate::platform::other_platform::OtherPlatformError;
use crate::platform::{EmulationError, HookMethodError, StrictError};
use crate::program::capture::ReplayError;
use crate::program::error::PrepareError;
use crate::program::launch::error::LaunchError;
use crate::results::folder::FolderError;
use crate::run::process_site::OtherProcessError;
use crate::run::resume::ResumeError;
use crate::severity::SeverityError;
use crate::shards::error::ShardError;
use crate::submit::error::SubmitError;
use flipwave_analysis::StatisticsError;
use flipwave_emulator::EmulateError;
use flipwave_injector::{
    FaultTarget, GoldenError, InjectionError, PlanError, ProfileError, Site, SiteError, TraceError,
    UndeclaredRegister, Workload,
};
use flipwave_tools::ToolError;
use std::path::PathBuf;
use std::sync::Arc;

/// Errors returned when a campaign cannot start or ends early. An error is never the outcome of a fault.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The campaign file is invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// The campaign file describes no faults.
    #[error("the campaign file has no `faults`; add the faults to inject")]
    NoFaults,
    /// No buffer is an output, so that a fault has no outcome.
    #[error(
        "the campaign has no output, so that a fault has no outcome; mark buffers that contain results \
         with `output: true`"
    )]
    NoOutputs,
    /// A tool cannot instrument the application of a campaign file.
    #[error(
        "the workload is an application, which `flipwave tool` instruments without a campaign file: in \
         {}, run `flipwave tool TOOL -- {command}`",
        directory.display()
    )]
    ToolOnApplication {
        /// Command of the application.
        command: String,
        /// Working directory of the application.
        directory: PathBuf,
    },
    /// The campaign file lists no proxy instructions.
    #[error("the campaign file has no `instructions`; list the instructions to emulate")]
    NoInstructions,
    /// A fault site names a register that the program does not have.
    #[error(transparent)]
    Site(#[from] Box<SiteError>),
    /// A run on the strict level cannot be completed.
    #[error(transparent)]
    Strict(#[from] StrictError),
    /// A program with emulated instructions cannot be executed.
    #[error(transparent)]
    Emulation(#[from] EmulationError),
    /// A proxy instruction cannot be emulated.
    #[error(transparent)]
    Emulate(#[from] Box<EmulateError>),
    /// A program cannot be hardened.
    #[error(transparent)]
    Hardening(Box<HardeningError>),
    /// The program cannot be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// An application cannot be run, or its outputs cannot be compared.
    #[error(transparent)]
    Application(#[from] ApplicationError),
    /// An application cannot be run on the embedded GPU.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The fault site is in another process.
    #[error(transparent)]
    OtherProcess(#[from] OtherProcessError),
    /// Hooks cannot be used.
    #[error(transparent)]
    Hooks(#[from] HookMethodError),
    /// The operation requires AMD's instruction set.
    #[error(transparent)]
    OtherPlatform(#[from] OtherPlatformError),
    /// The operation requires the embedded GPU.
    #[error(
        "{operation} requires the embedded GPU, but the campaign has `device: {device}`, where faults are \
         injected with hooks"
    )]
    RequiresEmbedded {
        /// The operation.
        operation: &'static str,
        /// Device of the campaign.
        device: CampaignDevice,
    },
    /// Hooks do not select kernels of a GPU.
    #[error(
        "`gpus` and `ignored_kernels` of applications cannot be used with `--by hook`; run the campaign \
         without it"
    )]
    SeveralGpus,
    /// The layout of the target is that of NVIDIA's driver.
    #[error(
        "target {0} is not supported with `device: cuda`, because the driver lays out local memory; use \
         `device: embedded`"
    )]
    UnreachableOnCuda(FaultTarget),
    /// The fault target cannot be reached with hooks.
    #[error(
        "target {0} is inside an instruction and cannot be reached with hooks; use `device: embedded` \
         without `--by hook`"
    )]
    UnreachableWithHooks(FaultTarget),
    /// Kernels cannot be launched through AMD's runtime.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A capture cannot be replayed.
    #[error(transparent)]
    Capture(#[from] ReplayError),
    /// The golden run failed.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The golden run makes outcomes meaningless.
    #[error(transparent)]
    Suspicion(#[from] SuspicionError),
    /// An output of the golden run differs from its `expected` file.
    #[error(transparent)]
    Unexpected(#[from] Box<Unexpected>),
    /// A sharded campaign cannot be run or merged.
    #[error(transparent)]
    Shard(Box<ShardError>),
    /// The shards of a campaign cannot be submitted.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// An earlier run cannot be resumed.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// Two golden runs differ.
    #[error(
        "two golden runs of the workload differ in {difference}, which makes outcomes meaningless \
         (this is a bug of the embedded GPU: please report it)"
    )]
    NotDeterministic {
        /// The first difference.
        difference: String,
    },
    /// The fault space cannot be counted.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The self-test failed: a fault with a known outcome has another outcome.
    #[error(
        "self-test failed: a fault that must be {expected} is {found}; nothing was injected \
         (this is a bug of Flipwave: please report it); the site is: {site}"
    )]
    SelfTest {
        /// The fault site.
        site: String,
        /// The known outcome.
        expected: String,
        /// The actual outcome.
        found: String,
    },
    /// Fault sites cannot be drawn.
    #[error(transparent)]
    Plan(#[from] Arc<PlanError>),
    /// The requested precision is invalid.
    #[error(transparent)]
    Statistics(#[from] StatisticsError),
    /// An injection failed.
    #[error("injection {index} failed: {reason}")]
    Injection {
        /// Index of the injection in the plan.
        index: u64,
        /// Cause.
        reason: Box<CampaignError>,
    },
    /// A fault was not injected.
    #[error(transparent)]
    NotInjected(#[from] Box<InjectionError>),
    /// A fault was not injected, into a register that the program's code declares.
    #[error("{message}")]
    AtDeclaredRegister {
        /// Message of the cause, with the register's name.
        message: String,
        /// Cause.
        reason: Box<CampaignError>,
    },
    /// The selected registers do not exist.
    #[error(transparent)]
    Registers(#[from] UndeclaredRegister),
    /// A fault cannot be traced.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Flipwave panicked during an injection.
    #[error(
        "injection {index} failed: internal error: {message}; the site is: {site} (this is a \
         bug of Flipwave: please report it with the campaign)"
    )]
    Panic {
        /// Index of the injection in the plan.
        index: u64,
        /// The fault site, for `flipwave replay`.
        site: String,
        /// Message of the panic.
        message: String,
    },
    /// A tool failed.
    #[error(transparent)]
    Tool(#[from] Box<ToolError>),
    /// The severity of silent data corruption cannot be determined.
    #[error(transparent)]
    Severity(#[from] SeverityError),
    /// The campaign was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// The results folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A variant of a file with `vary` cannot be run.
    #[error("variant `{name}` ({settings}): {reason}")]
    Variant {
        /// Name of the variant.
        name: String,
        /// Its value of each dimension.
        settings: String,
        /// Cause.
        reason: Box<CampaignError>,
    },
}

impl CampaignError {
    /// Names the register of a fault site in the message as the program's code declares it.
    pub(crate) fn at_declared_register(self, workload: &Workload, site: &Site) -> CampaignError {
        let text = self.to_string();
        let message = workload.with_declared_name(site, &text);
        if message == text {
            return self;
        }
        CampaignError::AtDeclaredRegister { message, reason: Box::new(self) }
    }
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
    /// Returns `result`, or [`CampaignError::Interrupted`] if the campaign has been cancelled, which makes
    /// `result` meaningless.
    ///
    /// # Errors
    /// [`CampaignError::Interrupted`].
    pub(crate) fn unless_cancelled<T>(
        &self,
        result: Result<T, CampaignError>,
    ) -> Result<T, CampaignError> {
        if self.cancellation.is_stopped() {
            return Err(CampaignError::Interrupted);
        }
        result
    }

    /// The error for an operation that only the embedded GPU supports.
    pub(crate) fn requires_embedded(&self, operation: &'static str) -> CampaignError {
        CampaignError::RequiresEmbedded { operation, device: self.device() }
    }

    /// Returns the faults to inject.
    ///
    /// # Errors
    /// [`CampaignError::NoFaults`].
    pub fn faults(&self) -> Result<&Faults, CampaignError> {
        self.faults.as_ref().ok_or(CampaignError::NoFaults)
    }
}
