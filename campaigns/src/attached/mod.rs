//! Programs under AMD's runtime in separate processes, on the embedded GPU or on this machine's
//! GPU: recording, golden runs and faulty runs. The programs are applications, or `flipwave launch`
//! for kernels on hardware.

pub(crate) mod error;
mod hooks;
pub(crate) mod process;
mod processes;

pub use error::AttachError;

use processes::{Chosen, choose};

use crate::application::{Application, ApplicationGolden, ApplicationGpus, ApplicationRun, Limits};
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CaptureSource};
use crate::file::device::CampaignDevice;
use crate::golden::check_application;
use crate::program::capture::prepare_checked;
use crate::program::launch::order::{self, LaunchOrder};
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

/// Prefixes of variables that programs on this machine's GPU inherit: they locate AMD's runtime and
/// driver, and select GPUs.
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

/// Prefixes of variables that programs on NVIDIA's driver inherit: they locate the driver and select GPUs. In an
/// application of `flipwave exec`, they are those of the stand-in.
const DRIVER_VARIABLES: [&str; 5] =
    [Library::PATHS, Library::PRELOAD, "FLIPWAVE_", "CUDA_", "NVIDIA_"];

/// Time limit of a recorded run, relative to other runs.
const RECORDING_FACTOR: u32 = 20;

/// Interval between reads of the report of a running program.
const REPORT_PERIOD: Duration = Duration::from_millis(500);

/// Environment variables.
type Variables = BTreeMap<OsString, OsString>;

/// A program with the agent in its processes, and the folder for reports of its runs.
pub(crate) struct AttachedProgram<'a> {
    pub(crate) application: Cow<'a, Application>,
    gpu: String,
    library: Library,
    folder: tempfile::TempDir,
    /// Number of runs so far.
    runs: AtomicU64,
}

/// A recorded run of a program.
pub(crate) struct RecordedRun {
    /// The target process as a workload.
    pub prepared: Prepared,
    /// Identifies the target process in other runs.
    pub process: TargetProcess,
}

impl<'a> AttachedProgram<'a> {
    pub fn new(
        campaign: &Campaign,
        application: Cow<'a, Application>,
    ) -> Result<Self, CampaignError> {
        if campaign.target.ptx().is_none() {
            // Only AMD's GPUs and those for PTX run applications.
            campaign.target.amdgpu()?;
        }
        let library = Library::find(&cache_folder()).map_err(AttachError::from)?;
        let failed = |reason| AttachError::Files { folder: std::env::temp_dir(), reason };
        Ok(AttachedProgram {
            application,
            gpu: campaign.target.gpu().to_owned(),
            library,
            folder: tempfile::tempdir().map_err(failed)?,
            runs: AtomicU64::new(0),
        })
    }

    /// Creates the session of one run, with a report file and a table of processes.
    fn session(&self, task: Task, report: &Path) -> Result<Session, AttachError> {
        let processes = report.with_extension("processes");
        let is_set = |name: &str| self.application.environment.contains_key(name);
        Table::create(&processes, is_set).map_err(|reason| self.file_error(reason))?;
        let (report, processes) = (Some(report.to_owned()), Some(processes));
        let ApplicationGpus { count, target, ignored_kernels } = &self.application.gpus;
        Ok(Session {
            task,
            report,
            processes,
            target_gpu: Some(*target),
            ignored_kernels: ignored_kernels.clone(),
            ..Session::new(vec![self.gpu.clone(); *count])
        })
    }

    /// The way in which the agent observes the program.
    fn tool_path(&self) -> ToolPath {
        if self.application.device.is_hardware() { ToolPath::Hardware } else { ToolPath::Hook }
    }

    /// The environment of a program on the campaign's device.
    fn environment(&self, session: &Session) -> Result<Variables, AttachError> {
        match self.application.device {
            CampaignDevice::Embedded => self.embedded_environment(session),
            CampaignDevice::Rocr => Ok(self.rocr_environment(session)),
            CampaignDevice::Cuda => Ok(self.inherited_environment(&DRIVER_VARIABLES)),
        }
    }

    /// The environment of a program that inherits variables with these prefixes.
    fn inherited_environment(&self, prefixes: &[&str]) -> Variables {
        let mut variables: Variables = std::env::vars_os()
            .filter(|(name, _)| {
                let name = name.to_string_lossy();
                prefixes.iter().any(|prefix| name.starts_with(prefix))
            })
            .collect();
        // The campaign file takes precedence.
        let given = self.application.environment.iter();
        variables.extend(given.map(|(name, value)| (name.into(), value.into())));
        variables
    }

    /// The environment of a program on a GPU of AMD's runtime.
    fn rocr_environment(&self, session: &Session) -> Variables {
        let mut variables = self.inherited_environment(&RUNTIME_VARIABLES);
        let existing = |name: &str| variables.get(OsStr::new(name)).cloned();
        let added = self.library.environment_on_hardware(session, existing);
        variables.extend(added.into_iter().map(|(name, value)| (name.into(), value)));
        variables
    }

    /// The environment of a program on the embedded GPU.
    fn embedded_environment(&self, session: &Session) -> Result<Variables, AttachError> {
        let existing = |name: &str| self.application.environment.get(name).map(OsString::from);
        let variables = self.library.environment_with(session, existing)?;
        Ok(variables.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Executes the golden runs on the campaign's device.
    fn golden(
        &self,
        campaign: &Campaign,
        interrupt: &AtomicBool,
    ) -> Result<ApplicationGolden, CampaignError> {
        self.golden_in_environment(campaign, |session| self.environment(session), interrupt)
    }

    /// Executes the golden runs in the environment that `environment` returns. If the device stops
    /// a run, the error is the device fault, regardless of how the application ends after it.
    fn golden_in_environment(
        &self,
        campaign: &Campaign,
        environment: impl FnOnce(&Session) -> Result<Variables, AttachError>,
        interrupt: &AtomicBool,
    ) -> Result<ApplicationGolden, CampaignError> {
        let report = self.run_file("report");
        let environment = environment(&self.session(Task::Run, &report)?)?;
        let golden = run_with_reports(&campaign.cancellation, &report, || {
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

    /// Records a run on the embedded GPU as a workload.
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
        let environment = self.embedded_environment(&self.session(task, &report)?)?;
        let limits = Limits { timeout: golden.limits.timeout * RECORDING_FACTOR, ..golden.limits };
        let ran = run_with_reports(&campaign.cancellation, &report, || {
            self.application.run(&environment, &limits, interrupt)
        })?;
        let processes = Processes::from_events(&self.events(&report)?);
        if processes.all().next().is_none() {
            return Err(AttachError::NoGpu.into());
        }
        if let Err(cause) = self.application.judge(golden, &ran, interrupt)?.outputs() {
            let reason =
                format!("the recorded run did not end like the other golden runs: {cause}");
            return Err(AttachError::Failed(reason).into());
        }
        // On the embedded GPU, the recorded run is another golden run.
        if !self.application.device.is_hardware() {
            self.application.confirm(golden, &ran, interrupt)?;
        }
        let Chosen { capture: file, index, process } =
            choose(&processes, self.application.process.as_ref())?;
        let prepared = prepare_checked(campaign, &CaptureSource { file, dispatches: None })?;
        // The run ended like the others, so an irregular end needs no warning.
        let origin = Origin::Recording { warnings: Vec::new() };
        Ok(RecordedRun { prepared: Prepared { process: index, origin, ..prepared }, process })
    }

    /// Executes a faulty run and returns the events that the agent reported.
    fn run(
        &self,
        task: Task,
        limits: &Limits,
        interrupt: &AtomicBool,
    ) -> Result<(ApplicationRun, Vec<ProcessEvent>), CampaignError> {
        let report = self.run_file("report");
        let environment = self.environment(&self.session(task, &report)?)?;
        let ran = self.application.run(&environment, limits, interrupt)?;
        Ok((ran, self.events(&report)?))
    }

    /// Executes a faulty run of `flipwave launch` on NVIDIA's driver and returns the events that it reported.
    fn run_launch(
        &self,
        launch_order: &LaunchOrder,
        limits: &Limits,
        interrupt: &AtomicBool,
    ) -> Result<(ApplicationRun, Vec<ProcessEvent>), CampaignError> {
        let mut environment = self.inherited_environment(&DRIVER_VARIABLES);
        // An order is plain data, whose serialization cannot fail.
        let text = serde_json::to_string(launch_order).unwrap_or_default();
        environment.insert(order::VARIABLE.into(), text.into());
        let ran = self.application.run(&environment, limits, interrupt)?;
        Ok((ran, self.events(&launch_order.report)?))
    }

    fn run_file(&self, extension: &str) -> PathBuf {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        self.folder.path().join(format!("{number}.{extension}"))
    }

    fn file_error(&self, reason: std::io::Error) -> AttachError {
        AttachError::Files { folder: self.folder.path().to_owned(), reason }
    }

    /// Reads the report of a run, and removes the report and the table of processes.
    fn take_report(&self, report: &Path) -> Result<Vec<ProcessEvent>, AttachError> {
        let events = read_report(report).map_err(|reason| self.file_error(reason))?;
        for file in [report, &report.with_extension("processes")] {
            // A file that cannot be removed is removed with its folder later.
            let _ = std::fs::remove_file(file);
        }
        Ok(events)
    }

    /// Reads and removes the report of a run. A failure of the agent becomes an error.
    fn events(&self, report: &Path) -> Result<Vec<ProcessEvent>, AttachError> {
        let events = self.take_report(report)?;
        let failure = events.iter().find_map(|reported| match &reported.event {
            Event::Failed { reason } => Some(reason.clone()),
            _ => None,
        });
        failure.map_or(Ok(events), |reason| Err(AttachError::Failed(reason)))
    }
}

/// Calls `run` and passes long-running dispatches in the report of its programs to `cancellation`.
fn run_with_reports<T>(
    cancellation: &CancellationToken,
    report: &Path,
    run: impl FnOnce() -> T,
) -> T {
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let follow = move || {
            let mut follower = Follower::new(report.to_owned());
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(REPORT_PERIOD) {
                // An unreadable report becomes an error after the run.
                let events = follower.read_new().unwrap_or_default();
                events.into_iter().filter_map(running).for_each(|dispatch| {
                    cancellation.report(dispatch);
                });
            }
        };
        // Without a thread, long-running dispatches are not reported.
        let _ = std::thread::Builder::new().spawn_scoped(scope, follow);
        let result = run();
        drop(end);
        result
    })
}

/// The long-running dispatch in an event.
fn running(reported: ProcessEvent) -> Option<Running> {
    let Event::Running { dispatch: Some(_), kernel, instructions, milliseconds } = reported.event
    else {
        return None;
    };
    let elapsed = Duration::from_millis(milliseconds);
    Some(Running { kernel, wave_instructions: instructions, elapsed })
}

/// Records a run of an application on the embedded GPU as a workload.
///
/// # Errors
/// [`CampaignError`] if the application does not run there.
pub(crate) fn recorded(
    campaign: &Campaign,
    application: &Application,
) -> Result<Prepared, CampaignError> {
    let interrupt = campaign.cancellation.stopped();
    let attached = AttachedProgram::new(campaign, Cow::Borrowed(application))?;
    let environment = |session: &Session| attached.embedded_environment(session);
    let golden = attached.golden_in_environment(campaign, environment, interrupt)?;
    Ok(attached.record(campaign, &golden, interrupt)?.prepared)
}
