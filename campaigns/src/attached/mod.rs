//! Programs of their own under AMD's runtime, on the embedded GPU or on this machine's own:
//! recorded, run without a fault, and run with one. They are applications, and kernels on a device
//! that needs a process for each run.

pub(crate) mod error;
mod hooks;
pub(crate) mod process;
mod processes;

pub use error::AttachError;

use processes::{Chosen, choose};

use crate::application::{Application, ApplicationGolden, Limits, Ran};
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CaptureSource};
use crate::golden::check_application;
use crate::program::capture::prepare_checked;
use crate::program::prepare::{Origin, Prepared};
use flipwave_agent::{
    Event, Follower, Library, ProcessEvent, Processes, Session, Table, TargetProcess, Task,
    ToolPath, read_report,
};
use flipwave_host::cache::cache_folder;
use flipwave_injector::{CancellationToken, Running};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Variables of this process that programs on this machine's own GPU get, too, by how their names
/// begin: where AMD's runtime and the driver are, and which GPUs it may use.
const RUNTIME_VARIABLES: [&str; 9] = [
    Library::PATHS,
    Library::PRELOAD,
    Library::DEVICES,
    "HSA_",
    "HSAKMT_",
    "ROCR_",
    "HIP_",
    "ROC_",
    "GPU_",
];

/// How many times as long as others a run may take that is recorded.
const RECORDING: u32 = 20;

/// How often reports of programs under way are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Variables of a program's environment.
type Variables = BTreeMap<OsString, OsString>;

/// A program and where its runs leave what they report.
pub(crate) struct Attached<'a> {
    pub(crate) application: Cow<'a, Application>,
    gpu: String,
    library: Library,
    folder: tempfile::TempDir,
    /// Numbers the runs.
    runs: AtomicU64,
}

/// A recorded run of a program.
pub(crate) struct RecordedRun {
    /// The process that is struck, as a workload.
    pub prepared: Prepared,
    /// How that process is known in other runs.
    pub process: TargetProcess,
}

impl<'a> Attached<'a> {
    pub fn new(
        campaign: &Campaign,
        application: Cow<'a, Application>,
    ) -> Result<Self, CampaignError> {
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

    /// A session of one run, which reports to a file and has its table of processes beside that.
    fn session(&self, task: Task, report: &Path) -> Result<Session, AttachError> {
        let processes = report.with_extension("processes");
        let has = |name: &str| self.application.environment.contains_key(name);
        Table::create(&processes, has).map_err(|reason| self.files(reason))?;
        let (report, processes) = (Some(report.to_owned()), Some(processes));
        Ok(Session { task, report, processes, ..Session::new(vec![self.gpu.clone()]) })
    }

    /// How the tools library sees what a program does.
    fn tool_path(&self) -> ToolPath {
        match self.application.device.is_hardware() {
            true => ToolPath::Hardware,
            false => ToolPath::Hook,
        }
    }

    /// What a program needs to run on the campaign's device.
    fn environment(&self, session: &Session) -> Result<Variables, AttachError> {
        if !self.application.device.is_hardware() {
            return self.embedded(session);
        }
        let mut all: BTreeMap<OsString, OsString> = std::env::vars_os()
            .filter(|(name, _)| {
                let name = name.to_string_lossy();
                RUNTIME_VARIABLES.iter().any(|own| name.starts_with(own))
            })
            .collect();
        // What the campaign file says stands above that.
        let given = self.application.environment.iter();
        all.extend(given.map(|(name, value)| (name.into(), value.into())));
        let others = |name: &str| all.get(OsStr::new(name)).cloned();
        let own = self.library.environment_on_hardware(session, others);
        all.extend(own.into_iter().map(|(name, value)| (name.into(), value)));
        Ok(all)
    }

    /// What a program needs to run on the embedded GPU.
    fn embedded(&self, session: &Session) -> Result<Variables, AttachError> {
        let own = |name: &str| self.application.environment.get(name).map(OsString::from);
        let variables = self.library.environment_with(session, own)?;
        Ok(variables.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// The runs without a fault.
    fn golden(
        &self,
        campaign: &Campaign,
        interrupt: &AtomicBool,
    ) -> Result<ApplicationGolden, CampaignError> {
        self.golden_in(campaign, |session| self.environment(session), interrupt)
    }

    /// The same with the environment that a session gets. Where the device stops one, that is why
    /// it does not end as it must, whatever the application makes of it.
    fn golden_in(
        &self,
        campaign: &Campaign,
        environment: impl FnOnce(&Session) -> Result<Variables, AttachError>,
        interrupt: &AtomicBool,
    ) -> Result<ApplicationGolden, CampaignError> {
        let report = self.run_file("report");
        let environment = environment(&self.session(Task::Run, &report)?)?;
        let golden = with_cancellation(&campaign.cancellation, &report, || {
            self.application.golden(&environment, interrupt)
        });
        let events = self.take_report(&report)?;
        let golden =
            golden.map_err(|error| match AttachError::stopped_golden(&events, &error) {
                Some(stopped) => CampaignError::from(stopped),
                None => error.into(),
            })?;
        check_application(campaign, &self.application, &golden.first)?;
        Ok(golden)
    }

    /// One run on the embedded GPU recorded, as a workload.
    pub(crate) fn record(
        &self,
        campaign: &Campaign,
        golden: &ApplicationGolden,
        interrupt: &AtomicBool,
    ) -> Result<RecordedRun, CampaignError> {
        let file = self.folder.path().join("golden.capture");
        let report = self.folder.path().join("golden.report");
        let command = self.application.command.to_string();
        let task = Task::Capture { file: file.clone(), command };
        let environment = self.embedded(&self.session(task, &report)?)?;
        let limits = Limits { timeout: golden.limits.timeout * RECORDING, ..golden.limits };
        let ran = with_cancellation(&campaign.cancellation, &report, || {
            self.application.run(&environment, &limits, interrupt)
        })?;
        let processes = Processes::from_events(&self.events(&report)?);
        if processes.all().next().is_none() {
            return Err(AttachError::NoGpu.into());
        }
        if let Err(cause) = self.application.judge(golden, &ran, interrupt)?.completed() {
            let reason = format!("the recorded run ended otherwise than the others: {cause}");
            return Err(AttachError::Failed(reason).into());
        }
        // One more run without a fault, on the same device.
        if !self.application.device.is_hardware() {
            self.application.confirm(golden, &ran, interrupt)?;
        }
        let Chosen { capture: file, index, process } =
            choose(&processes, self.application.process.as_ref())?;
        let prepared = prepare_checked(campaign, &CaptureSource { file, dispatches: None })?;
        // It ended as the others did, be that without an orderly end.
        let origin = Origin::Recording { warnings: Vec::new() };
        Ok(RecordedRun { prepared: Prepared { process: index, origin, ..prepared }, process })
    }

    /// One run with a fault, and what the library reported in it.
    fn run(
        &self,
        task: Task,
        limits: &Limits,
        interrupt: &AtomicBool,
    ) -> Result<(Ran, Vec<ProcessEvent>), CampaignError> {
        let report = self.run_file("report");
        let environment = self.environment(&self.session(task, &report)?)?;
        let ran = self.application.run(&environment, limits, interrupt)?;
        Ok((ran, self.events(&report)?))
    }

    fn run_file(&self, what: &str) -> PathBuf {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        self.folder.path().join(format!("{number}.{what}"))
    }

    fn files(&self, reason: std::io::Error) -> AttachError {
        AttachError::Files { folder: self.folder.path().to_owned(), reason }
    }

    /// Reads the report of a run, and removes it with the table of processes.
    fn take_report(&self, report: &Path) -> Result<Vec<ProcessEvent>, AttachError> {
        let events = read_report(report).map_err(|reason| self.files(reason))?;
        for file in [report, &report.with_extension("processes")] {
            // They are in a folder that is removed later, if they cannot be now.
            let _ = std::fs::remove_file(file);
        }
        Ok(events)
    }

    /// What the library reported, and no more than once.
    fn events(&self, report: &Path) -> Result<Vec<ProcessEvent>, AttachError> {
        let events = self.take_report(report)?;
        let failure = events.iter().find_map(|reported| match &reported.event {
            Event::Failed { reason } => Some(reason.clone()),
            _ => None,
        });
        failure.map_or(Ok(events), |reason| Err(AttachError::Failed(reason)))
    }
}

/// What comes of `run`, during which programs report to a file: whoever attends sees which of their
/// dispatches take long.
fn with_cancellation<T>(
    cancellation: &CancellationToken,
    report: &Path,
    run: impl FnOnce() -> T,
) -> T {
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let follow = move || {
            let mut follower = Follower::new(report.to_owned());
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
                // A report that cannot be read is an error when all of it is read.
                let running =
                    follower.read_new().unwrap_or_default().into_iter().filter_map(running);
                running.for_each(|own| cancellation.report(own));
            }
        };
        // Where the system has no thread for it, nobody sees them.
        let _ = std::thread::Builder::new().spawn_scoped(scope, follow);
        let result = run();
        drop(end);
        result
    })
}

/// What an event says of a dispatch of the application that takes long.
fn running(reported: ProcessEvent) -> Option<Running> {
    let Event::Running { dispatch: Some(_), kernel, instructions, milliseconds } = reported.event
    else {
        return None;
    };
    let elapsed = Duration::from_millis(milliseconds);
    Some(Running { kernel, wave_instructions: instructions, elapsed })
}

/// An application as one run of it on the embedded GPU, recorded.
///
/// # Errors
/// [`CampaignError`] if it does not run there.
pub(crate) fn recorded(
    campaign: &Campaign,
    application: &Application,
) -> Result<Prepared, CampaignError> {
    let interrupt = campaign.cancellation.stopped();
    let attached = Attached::new(campaign, Cow::Borrowed(application))?;
    let environment = |session: &Session| attached.embedded(session);
    let golden = attached.golden_in(campaign, environment, interrupt)?;
    Ok(attached.record(campaign, &golden, interrupt)?.prepared)
}
