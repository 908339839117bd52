//! Why an application cannot be run under AMD's runtime.

use crate::application::ApplicationError;
use flipwave_agent::{Event, ProcessEvent};
use flipwave_injector::Site;
use std::path::PathBuf;

/// Why an application cannot be run under AMD's runtime, or came to no outcome.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The library that is loaded into it.
    #[error(transparent)]
    Library(#[from] flipwave_agent::LibraryError),
    /// The program that runs kernels.
    #[error(
        "{} is not the program `flipwave`, which is needed to run kernels in processes of their \
         own", found.display()
    )]
    NoProgram {
        /// The program that runs.
        found: PathBuf,
    },
    /// The GPU of this machine.
    #[error(
        "with `device: rocr`, {what} {ended} without a fault{advice}: is there an AMD GPU of the \
         campaign's target that this user may use (/dev/kfd, the groups render and video)? \
         `device: embedded` needs none{messages}"
    )]
    OnHardware {
        /// What ran.
        what: &'static str,
        /// How it ended.
        ended: String,
        /// What else to do.
        advice: String,
        /// What it wrote.
        messages: String,
    },
    /// Files of the tool.
    #[error("cannot keep files of the run in {}: {reason}", folder.display())]
    Files {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// No GPU was used.
    #[error(
        "the application did not use a GPU: it is not linked with AMD's runtime, or ended before"
    )]
    NoGpu,
    /// Several processes, of which none is named.
    #[error(
        "several processes of the application dispatch kernels; name the one that is struck in `app`, \
         with `process: {{index: 0}}`, `process: {{rank: 0}}` or `process: {{command: ...}}`:\n{list}"
    )]
    SeveralProcesses {
        /// The processes.
        list: String,
    },
    /// No process is the one that is named.
    #[error("no process that dispatches kernels is `process: {choice}`; there are:\n{list}")]
    NoProcess {
        /// What is named.
        choice: String,
        /// The processes.
        list: String,
    },
    /// Several processes are the one that is named.
    #[error(
        "several processes that dispatch kernels are `process: {choice}`; name one by its index, \
         for example `process: {{index: 0}}`:\n{list}"
    )]
    AmbiguousProcess {
        /// What is named.
        choice: String,
        /// The processes.
        list: String,
    },
    /// The library failed inside of the application.
    #[error("inside of the application: {0}")]
    Failed(String),
    /// The device stopped a run without a fault.
    #[error("a run without a fault was stopped by the device: {fault}; {error}")]
    Stopped {
        /// Why, and where.
        fault: String,
        /// What came of it.
        error: String,
    },
    /// The fault did not strike.
    #[error(
        "the fault was not injected: the application never came to {site}; it does not do the same \
         in each run"
    )]
    NotActivated {
        /// The site.
        site: Box<Site>,
    },
    /// The place of the fault is not there.
    #[error("the fault was not injected at {site}: {reason}")]
    NotStruck {
        /// The site.
        site: Box<Site>,
        /// Why not.
        reason: String,
    },
}

impl AttachError {
    /// Why a run without a fault did not end as it must, if the device has stopped it.
    pub(super) fn stopped_golden(
        events: &[ProcessEvent],
        error: &ApplicationError,
    ) -> Option<AttachError> {
        let ApplicationError::GoldenEnded { .. } = error else { return None };
        let fault = events.iter().find_map(|reported| match &reported.event {
            Event::Fault { dispatch: Some(dispatch), kernel, text, .. } => {
                Some(format!("in dispatch {dispatch}, kernel {kernel}: {text}"))
            }
            Event::Fault { text, .. } | Event::Refused { text } => Some(text.clone()),
            _ => None,
        })?;
        Some(AttachError::Stopped { fault, error: error.to_string() })
    }
}
