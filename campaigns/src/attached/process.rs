//! Faulty runs of a program in separate processes.

use super::hooks::{HookFault, HookFiles};
use super::{AttachError, AttachedProgram};
use crate::application::{ApplicationError, ApplicationGolden, ApplicationRun, Ended, Limits};
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::device::CampaignDevice;
use crate::outputs::compare::Difference;
use crate::platform::HookedCodes;
use crate::program::launch::order::LaunchOrder;
use crate::run::outcome::ComparedEnding;
use flipwave_agent::{Event, ProcessEvent, TargetProcess, Task};
use flipwave_device::FaultKind;
use flipwave_injector::{Accelerations, Action, Golden, InjectedChange, Injection, Planned, Site};
use flipwave_injector_amdgpu::HookedCode;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Kinds of programs in separate processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// The user's application.
    Application,
    /// `flipwave launch`, which runs the campaign's kernels.
    Launch,
}

/// The error for a program whose golden run fails on this machine's GPU. The end of
/// `flipwave launch` itself is of no interest to users.
fn not_on_hardware(
    device: CampaignDevice,
    kind: ProgramKind,
    ended: String,
    advice: String,
    stderr: &str,
) -> AttachError {
    let stderr = stderr.trim();
    if device == CampaignDevice::Cuda {
        // The program is `flipwave launch`.
        let reason = stderr.rsplit("flipwave: ").next().unwrap_or_default();
        let reason = if reason.is_empty() { ended } else { reason.to_owned() };
        return AttachError::OnCuda { reason };
    }
    let (what, advice, stderr) = match kind {
        ProgramKind::Application => ("the application", advice, stderr),
        ProgramKind::Launch => {
            let stderr = stderr.strip_prefix("flipwave: ").unwrap_or(stderr);
            ("running the kernels", String::new(), stderr)
        }
    };
    let messages = match stderr {
        "" => String::new(),
        text => format!("; it wrote:\n{text}"),
    };
    AttachError::OnHardware { what, ended, advice, messages }
}

/// A program in separate processes, with its golden runs.
pub(crate) struct ProcessRuns<'a> {
    /// The program.
    pub attached: AttachedProgram<'a>,
    /// The golden runs.
    pub golden: ApplicationGolden,
    /// The target process.
    pub process: TargetProcess,
}

/// A faulty run whose outputs have not been compared.
pub(crate) struct StruckRun {
    /// The struck value.
    pub struck: InjectedChange,
    /// The fault with which the device stopped a dispatch. It takes precedence over the end of the
    /// program, which is a consequence.
    pub fault: Option<FaultKind>,
    /// The run of the program.
    pub ran: ApplicationRun,
}

impl<'a> ProcessRuns<'a> {
    /// Executes the golden runs of a program on the device of its campaign.
    ///
    /// # Errors
    /// [`CampaignError`] if a run does not end as expected.
    pub fn new(
        campaign: &'a Campaign,
        attached: AttachedProgram<'a>,
        kind: ProgramKind,
    ) -> Result<Self, CampaignError> {
        let golden = attached.golden(campaign, campaign.cancellation.stopped());
        let golden = golden.map_err(|error| match error {
            CampaignError::Application(ApplicationError::GoldenEnded { ended, advice, stderr })
                if campaign.device().is_hardware() =>
            {
                not_on_hardware(campaign.device(), kind, ended, advice, &stderr).into()
            }
            error => error,
        })?;
        Ok(ProcessRuns { attached, golden, process: TargetProcess::Any })
    }

    /// Writes the instruction limits of dispatches for faulty runs inside the embedded GPU.
    ///
    /// # Errors
    /// [`AttachError::Files`].
    pub fn write_limits(&self, golden: &Golden) -> Result<(), AttachError> {
        // Numbers can always be serialized.
        let text = serde_json::to_string(&golden.instruction_limits()).unwrap_or_default();
        std::fs::write(self.limits_file(), text).map_err(|reason| self.attached.file_error(reason))
    }

    /// Writes the function of a site for the agent, if it has one, and returns the file.
    fn write_function(&self, site: &Site) -> Result<Option<PathBuf>, AttachError> {
        let Action::Function { function, .. } = site.action else { return Ok(None) };
        // Sources can always be serialized.
        let text = serde_json::to_string(function.source()).unwrap_or_default();
        let file = self.attached.folder.path().join("function.json");
        flipwave_host::output::replace(&file, text.as_bytes())
            .map_err(|reason| self.attached.file_error(reason))?;
        Ok(Some(file))
    }

    fn limits_file(&self) -> PathBuf {
        self.attached.folder.path().join("limits.json")
    }

    /// Executes a run with a fault that is injected inside the embedded GPU.
    ///
    /// # Errors
    /// [`CampaignError`] if the program cannot be run, or the fault was not injected.
    pub fn inject(&self, site: &Site, interrupt: &AtomicBool) -> Result<StruckRun, CampaignError> {
        self.inject_in_gpu(site, None, interrupt)
    }

    /// Executes a run with a fault at a site, which hooks in the file `hooks` inject, or else the embedded GPU.
    fn inject_in_gpu(
        &self,
        site: &Site,
        hooks: Option<PathBuf>,
        interrupt: &AtomicBool,
    ) -> Result<StruckRun, CampaignError> {
        let (process, limits) = (self.process.clone(), self.limits_file());
        let function = self.write_function(site)?;
        let task = Task::Inject { process, site: site.to_string(), limits, function, hooks };
        let (ran, events) = self.attached.run(task, &self.golden.limits, interrupt)?;
        StruckRun::new(*site, ran, &events)
    }

    /// Executes a run with a fault that the hooks in `codes` inject. The program writes the
    /// addresses of its buffers to the file `addresses`, if given.
    ///
    /// # Errors
    /// As [`ProcessRuns::inject`].
    pub fn inject_with_hooks(
        &self,
        site: &Site,
        codes: &HookedCodes,
        addresses: Option<PathBuf>,
        interrupt: &AtomicBool,
    ) -> Result<StruckRun, CampaignError> {
        match codes {
            HookedCodes::Amdgpu(codes) => self.inject_in_objects(site, codes, addresses, interrupt),
            HookedCodes::Ptx(codes) => self.inject_in_modules(site, codes, interrupt),
        }
    }

    /// Executes a run of `flipwave launch` with a fault that hooks in the file `hooks` inject.
    fn inject_in_launch(
        &self,
        site: &Site,
        hooks: PathBuf,
        interrupt: &AtomicBool,
    ) -> Result<StruckRun, CampaignError> {
        // A dispatch that takes longer than a run may is hung.
        let time_limit = self.golden.limits.timeout;
        let order = LaunchOrder {
            report: self.attached.run_file("report"),
            site: site.to_string(),
            function: self.write_function(site)?,
            hooks,
            time_limit,
        };
        let limits = Limits { timeout: time_limit * 2, ..self.golden.limits };
        let (ran, events) = self.attached.run_launch(&order, &limits, interrupt)?;
        let has_failed = !matches!(ran.ended, Ended::Exited(0)) && events.is_empty();
        if has_failed && !ran.stderr.is_empty() {
            let message = String::from_utf8_lossy(&ran.stderr);
            return Err(AttachError::Failed(message.trim().to_owned()).into());
        }
        StruckRun::new(*site, ran, &events)
    }

    /// Executes a run with a fault that hooks in PTX modules inject.
    fn inject_in_modules(
        &self,
        site: &Site,
        codes: &[flipwave_injector_ptx::HookedCode],
        interrupt: &AtomicBool,
    ) -> Result<StruckRun, CampaignError> {
        let file = self.attached.run_file("hooks");
        // Texts and numbers can always be serialized.
        let text = serde_json::to_vec(codes).unwrap_or_default();
        std::fs::write(&file, text).map_err(|reason| self.attached.file_error(reason))?;
        let run = if self.attached.application.device == CampaignDevice::Cuda {
            self.inject_in_launch(site, file.clone(), interrupt)
        } else {
            self.inject_in_gpu(site, Some(file.clone()), interrupt)
        };
        // A file that cannot be removed is removed with its folder later.
        let _ = std::fs::remove_file(file);
        run
    }

    /// Executes a run with a fault that hooks in code objects of AMD GPUs inject.
    fn inject_in_objects(
        &self,
        site: &Site,
        codes: &[HookedCode],
        addresses: Option<PathBuf>,
        interrupt: &AtomicBool,
    ) -> Result<StruckRun, CampaignError> {
        // A dispatch that takes longer than a run may is hung.
        let time_limit = self.golden.limits.timeout;
        let function = self.write_function(site)?;
        let fault = HookFault { process: &self.process, site, codes, function };
        let files = HookFiles::write(&self.attached, fault, addresses, time_limit)?;
        let limits = Limits { timeout: time_limit * 2, ..self.golden.limits };
        let task = Task::InjectWithHooks(files.session.clone());
        let (ran, events) = self.attached.run(task, &limits, interrupt)?;
        StruckRun::new(*site, ran, &events)
    }
}

impl StruckRun {
    fn new(
        site: Site,
        ran: ApplicationRun,
        events: &[ProcessEvent],
    ) -> Result<StruckRun, CampaignError> {
        Ok(StruckRun { struck: struck(events, site)?, fault: fault(events), ran })
    }
}

/// The result of a planned injection that needs no run, because nothing reads the struck value.
/// `None` for other injections, and if def-use pruning is disabled.
pub(crate) fn known_result(
    planned: &Planned,
    accelerations: Accelerations,
) -> Option<Injection<ComparedEnding>> {
    let struck = planned.masked_strike().filter(|_| accelerations.dead_values)?;
    let ending = ComparedEnding::Completed {
        is_correct: true,
        difference: Difference::default(),
        detector: None,
        wave_instructions: None,
        outputs: None,
    };
    Some(Injection { struck, ending })
}

/// The first fault with which the device stopped a dispatch.
fn fault(events: &[ProcessEvent]) -> Option<FaultKind> {
    events.iter().find_map(|reported| match &reported.event {
        Event::Fault { cause, .. } => Some(*cause),
        _ => None,
    })
}

/// The struck value in the events of a run.
fn struck(events: &[ProcessEvent], site: Site) -> Result<InjectedChange, AttachError> {
    let site = Box::new(site);
    for reported in events {
        match &reported.event {
            Event::Struck { before, after, words, absorbed } => {
                return Ok(InjectedChange {
                    before: *before,
                    after: *after,
                    words: *words,
                    absorbed: *absorbed,
                });
            }
            Event::NotStruck { reason } => {
                return Err(AttachError::NotStruck { site, reason: reason.clone() });
            }
            Event::NotReached { lanes } => {
                return Err(AttachError::NotReached { site, lanes: *lanes });
            }
            _ => {}
        }
    }
    Err(AttachError::NotActivated { site })
}
