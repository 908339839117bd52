//! Errors of programs with the agent.

use crate::application::ApplicationError;
use flipwave_agent::{Event, ProcessEvent};
use flipwave_device::demangled_kernel;
use flipwave_injector::Site;
use std::path::PathBuf;

/// Errors returned when a program cannot be run with the agent, or a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The agent cannot be loaded.
    #[error(transparent)]
    Library(#[from] flipwave_agent::LibraryError),
    /// This program cannot run kernels in separate processes.
    #[error(
        "{} is not the program `flipwave`, which is required to run kernels in separate processes",
        found.display()
    )]
    NoProgram {
        /// The running program.
        found: PathBuf,
    },
    /// A golden run failed on this machine's GPU.
    #[error(
        "with `device: rocr`, {what} {ended} in a golden run{advice}: is there an AMD GPU of the \
         campaign's target that this user may access (/dev/kfd, the groups render and video)? \
         `device: embedded` needs none{messages}"
    )]
    OnHardware {
        /// The program.
        what: &'static str,
        /// The end of the run, as a predicate.
        ended: String,
        /// Additional advice.
        advice: String,
        /// Output of the program.
        messages: String,
    },
    /// A golden run failed on NVIDIA's driver.
    #[error("with `device: cuda`, the kernels did not complete in a golden run: {reason}")]
    OnCuda {
        /// The reason, as `flipwave launch` reports it.
        reason: String,
    },
    /// Files of a run cannot be written or read.
    #[error("cannot write files of the run in {}: {reason}", folder.display())]
    Files {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        reason: std::io::Error,
    },
    /// The application did not use a GPU.
    #[error(
        "the application did not use a GPU: it is not linked with AMD's runtime, or for targets such as sm_90 \
         with CUDA's driver or its shared runtime, or ended before"
    )]
    NoGpu,
    /// Several processes dispatch kernels, and none is selected.
    #[error(
        "several processes of the application dispatch kernels; select one in `app`, with \
         `process: {{index: 0}}`, `process: {{rank: 0}}` or `process: {{command: ...}}`:\n{list}"
    )]
    SeveralProcesses {
        /// The processes.
        list: String,
    },
    /// No process matches the selection.
    #[error("no process that dispatches kernels matches `process: {choice}`; there are:\n{list}")]
    NoProcess {
        /// The selection.
        choice: String,
        /// The processes.
        list: String,
    },
    /// Several processes match the selection.
    #[error(
        "several processes that dispatch kernels match `process: {choice}`; select one by its \
         index, such as `process: {{index: 0}}`:\n{list}"
    )]
    AmbiguousProcess {
        /// The selection.
        choice: String,
        /// The processes.
        list: String,
    },
    /// The agent failed.
    #[error("inside the application: {0}")]
    Failed(String),
    /// The device stopped a golden run.
    #[error("the device stopped a golden run: {fault}\n{error}")]
    Stopped {
        /// The device fault with its context, on several lines.
        fault: String,
        /// The error caused by it.
        error: String,
    },
    /// The run never reached the site.
    #[error(
        "the fault was not injected: the application never reached {site}; it behaves differently \
         in each run"
    )]
    NotActivated {
        /// The site.
        site: Box<Site>,
    },
    /// The site was reached, but the fault could not be injected.
    #[error("the fault was not injected at {site}: {reason}")]
    NotStruck {
        /// The site.
        site: Box<Site>,
        /// The reason.
        reason: String,
    },
    /// Lanes of the site did not reach the instruction, and the hooks strike no others.
    #[error(
        "the fault was not injected at {site}: the lanes {lanes:#010x} of the wave do not reach the instruction, and \
         no hook reaches their state; use `scope: active_lanes`, or `--by embedded`"
    )]
    NotReached {
        /// The site.
        site: Box<Site>,
        /// The lanes.
        lanes: u64,
    },
}

impl AttachError {
    /// Returns the error for a golden run that failed with `error`, if the device stopped it.
    pub(super) fn stopped_golden(
        events: &[ProcessEvent],
        error: &ApplicationError,
    ) -> Option<AttachError> {
        let ApplicationError::GoldenEnded { .. } = error else { return None };
        let fault = events.iter().find_map(|reported| match &reported.event {
            Event::Fault { dispatch: Some(dispatch), kernel, text, .. } => {
                let kernel = demangled_kernel(kernel);
                Some(format!("in dispatch {dispatch}, kernel {kernel}: {text}"))
            }
            Event::Fault { text, .. } | Event::Refused { text } => Some(text.clone()),
            _ => None,
        })?;
        Some(AttachError::Stopped { fault, error: error.to_string() })
    }
}
