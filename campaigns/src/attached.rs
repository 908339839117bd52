//! Applications on the embedded GPU: recorded, run without a fault, and run with one.

use crate::application::{Application, ApplicationGolden, Judged, Ran};
use crate::campaign::Campaign;
use crate::capture::{CaptureSource, prepare_checked};
use crate::compare::Difference;
use crate::error::CampaignError;
use crate::outcome::{CompletedRun, MaskedCause, Verdict};
use crate::prepare::Prepared;
use flipwave_attach::{Event, Library, Session, Task, read_report};
use flipwave_device::FaultCause;
use flipwave_hooks::hook::cache_folder;
use flipwave_injector::{Accelerations, Fate, Golden, Planned, Site, Struck};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why an application cannot be run on the embedded GPU, or came to no outcome.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The library that is loaded into it.
    #[error(transparent)]
    Library(#[from] flipwave_attach::LibraryError),
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
    /// The library failed inside of the application.
    #[error("inside of the application: {0}")]
    Failed(String),
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

/// An application and where its runs leave what they tell.
pub(crate) struct Attached<'a> {
    application: &'a Application,
    gpu: String,
    library: Library,
    folder: tempfile::TempDir,
    /// Numbers the runs.
    runs: AtomicU64,
}

impl<'a> Attached<'a> {
    pub fn new(campaign: &Campaign, application: &'a Application) -> Result<Self, CampaignError> {
        let library = Library::find(&cache_folder()).map_err(AttachError::from)?;
        let failed = |reason| AttachError::Files { folder: std::env::temp_dir(), reason };
        Ok(Attached {
            application,
            gpu: campaign.target.processor().to_owned(),
            library,
            folder: tempfile::tempdir().map_err(failed)?,
            runs: AtomicU64::new(0),
        })
    }

    fn session(&self, task: Task, report: Option<PathBuf>) -> Session {
        Session { task, report, ..Session::new(&self.gpu, 1) }
    }

    fn environment(&self, session: &Session) -> BTreeMap<OsString, OsString> {
        let paths = self.application.environment.get(Library::PATHS).map(OsString::from);
        let variables = self.library.environment_beside(session, paths);
        variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// The runs without a fault.
    pub fn golden(&self, interrupt: &AtomicBool) -> Result<ApplicationGolden, CampaignError> {
        let environment = self.environment(&self.session(Task::Run, None));
        Ok(self.application.golden(&environment, interrupt)?)
    }

    /// One run recorded, as a workload.
    pub fn record(
        &self,
        campaign: &Campaign,
        golden: &ApplicationGolden,
        interrupt: &AtomicBool,
    ) -> Result<Prepared, CampaignError> {
        let file = self.folder.path().join("golden.capture");
        let report = self.folder.path().join("golden.report");
        let command = self.application.command.to_string();
        let task = Task::Capture { file: file.clone(), command };
        let environment = self.environment(&self.session(task, Some(report.clone())));
        // Recording takes its time.
        let limits =
            crate::application::Limits { timeout: golden.limits.timeout * 20, ..golden.limits };
        let ran = self.application.run(&environment, &limits, interrupt)?;
        self.check_failure(&self.events(&report)?)?;
        if !file.exists() {
            return Err(AttachError::NoGpu.into());
        }
        if let Some(cause) = self.application.judge(golden, &ran, interrupt)?.due_cause() {
            let reason = format!("the recorded run ended otherwise than the others: {cause}");
            return Err(AttachError::Failed(reason).into());
        }
        prepare_checked(campaign, &CaptureSource { file, dispatches: None })
    }

    /// Writes the watchdogs of dispatches for runs with faults; gives the file.
    pub fn write_limits(&self, golden: &Golden) -> Result<PathBuf, CampaignError> {
        let file = self.folder.path().join("limits.json");
        // Numbers are always JSON.
        let text = serde_json::to_string(&golden.instruction_limits()).unwrap_or_default();
        std::fs::write(&file, text).map_err(|reason| self.files(reason))?;
        Ok(file)
    }

    fn files(&self, reason: std::io::Error) -> AttachError {
        AttachError::Files { folder: self.folder.path().to_owned(), reason }
    }

    fn events(&self, report: &Path) -> Result<Vec<Event>, AttachError> {
        let events = read_report(report).map_err(|reason| self.files(reason))?;
        let _ = std::fs::remove_file(report);
        Ok(events)
    }

    fn check_failure(&self, events: &[Event]) -> Result<(), AttachError> {
        let reason = events.iter().find_map(|event| match event {
            Event::Failed { reason } => Some(reason.clone()),
            _ => None,
        });
        reason.map_or(Ok(()), |reason| Err(AttachError::Failed(reason)))
    }

    /// Runs the application with a fault.
    pub fn inject(
        &self,
        planned: &Planned,
        golden: &ApplicationGolden,
        limits: &Path,
        interrupt: &AtomicBool,
    ) -> Result<(Struck, Verdict), CampaignError> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let report = self.folder.path().join(format!("{number}.report"));
        let site = planned.site;
        let task = Task::Inject { site: site.to_string(), limits: limits.to_owned() };
        let environment = self.environment(&self.session(task, Some(report.clone())));
        let ran = self.application.run(&environment, &golden.limits, interrupt)?;
        let events = self.events(&report)?;
        self.check_failure(&events)?;
        let struck = struck(&events, site)?;
        let fate = planned.foresight.and_then(|own| own.value).map(|(fate, _)| fate);
        let verdict = self.verdict(&ran, golden, &events, &struck, fate, interrupt)?;
        Ok((struck, verdict))
    }

    /// The outcome. A fault that the device found stands above all else: what the application made
    /// of it follows from that.
    fn verdict(
        &self,
        ran: &Ran,
        golden: &ApplicationGolden,
        events: &[Event],
        struck: &Struck,
        fate: Option<Fate>,
        interrupt: &AtomicBool,
    ) -> Result<Verdict, CampaignError> {
        let fault = events.iter().find_map(|event| match event {
            Event::Fault { cause, .. } => Some(cause.as_str()),
            _ => None,
        });
        if let Some(name) = fault {
            let cause = FaultCause::NAMES.into_iter().find(|own| *own == name);
            let unknown = || AttachError::Failed(format!("a fault `{name}` is not known"));
            return Ok(Verdict::Due { cause: cause.ok_or_else(unknown)? });
        }
        let run = |difference: Difference| CompletedRun { difference, ..CompletedRun::default() };
        let judged = self.application.judge(golden, ran, interrupt)?;
        Ok(match (judged.due_cause(), judged) {
            (Some(cause), _) => Verdict::Due { cause },
            (None, Judged::Differs { difference, .. }) => Verdict::Sdc(run(difference)),
            (None, Judged::Matches { difference, .. }) => {
                Verdict::Masked { cause: MaskedCause::of(struck, fate), run: run(difference) }
            }
            // The others have causes.
            (None, _) => Verdict::Masked {
                cause: MaskedCause::of(struck, fate),
                run: CompletedRun::default(),
            },
        })
    }
}

/// What it takes to run an application with faults.
pub(crate) struct ApplicationRuns<'a> {
    pub attached: Attached<'a>,
    pub golden: ApplicationGolden,
    limits: PathBuf,
}

impl<'a> ApplicationRuns<'a> {
    /// Runs the application without a fault.
    pub fn new(
        campaign: &Campaign,
        application: &'a Application,
        interrupt: &AtomicBool,
    ) -> Result<Self, CampaignError> {
        let attached = Attached::new(campaign, application)?;
        let golden = attached.golden(interrupt)?;
        Ok(ApplicationRuns { attached, golden, limits: PathBuf::new() })
    }

    /// With the watchdogs that follow from the recorded run.
    pub fn with_limits(self, golden: &Golden) -> Result<Self, CampaignError> {
        let limits = self.attached.write_limits(golden)?;
        Ok(ApplicationRuns { limits, ..self })
    }

    /// A run with a fault, or what is known of it without one.
    pub fn inject(
        &self,
        planned: &Planned,
        accelerations: Accelerations,
        interrupt: &AtomicBool,
    ) -> Result<(Struck, Verdict), CampaignError> {
        if accelerations.dead_values
            && let Some(struck) = planned.foreseen()
        {
            let fate = planned.foresight.and_then(|own| own.value).map(|(fate, _)| fate);
            let cause = MaskedCause::of(&struck, fate);
            return Ok((struck, Verdict::Masked { cause, run: CompletedRun::default() }));
        }
        self.attached.inject(planned, &self.golden, &self.limits, interrupt)
    }
}

/// What was struck.
fn struck(events: &[Event], site: Site) -> Result<Struck, AttachError> {
    let site = Box::new(site);
    for event in events {
        match event {
            Event::Struck { before, after, words } => {
                return Ok(Struck { before: *before, after: *after, words: *words });
            }
            Event::NotStruck { reason } => {
                return Err(AttachError::NotStruck { site, reason: reason.clone() });
            }
            _ => {}
        }
    }
    Err(AttachError::NotActivated { site })
}
