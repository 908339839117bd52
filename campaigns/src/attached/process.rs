//! Runs of a program with a fault, each in processes of its own.

use super::hooks::HookFiles;
use super::{AttachError, Attached};
use crate::application::{ApplicationError, ApplicationGolden, Limits, Ran};
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::outputs::compare::Difference;
use crate::run::outcome::ComparedEnding;
use flipwave_agent::{Event, ProcessEvent, TargetProcess, Task};
use flipwave_device::FaultKind;
use flipwave_injector::{Accelerations, Golden, HookedCode, Injection, Planned, Site, Struck};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A program that does not run on this machine's GPU without a fault: the user's own, or the one that
/// runs kernels, of which nobody wants to hear how it ended.
fn not_on_hardware(is_launch: bool, ended: String, advice: String, stderr: &str) -> AttachError {
    let stderr = stderr.trim();
    let stderr = stderr.strip_prefix("flipwave: ").filter(|_| is_launch).unwrap_or(stderr);
    let messages = match stderr {
        "" => String::new(),
        text => format!("; it wrote:\n{text}"),
    };
    let (what, advice) = match is_launch {
        true => ("running the kernels", String::new()),
        false => ("the application", advice),
    };
    AttachError::OnHardware { what, ended, advice, messages }
}

/// A program that runs in processes of its own, and its runs there without a fault.
pub(crate) struct ProcessRuns<'a> {
    /// The program.
    pub attached: Attached<'a>,
    /// Its runs without a fault.
    pub golden: ApplicationGolden,
    /// Which of its processes is struck.
    pub process: TargetProcess,
}

/// What came of a run with a fault before its outputs are looked at.
pub(crate) struct StruckRun {
    /// What was struck.
    pub struck: Struck,
    /// Why the device has stopped a dispatch, if it has. That stands above all else: what the
    /// program made of it follows from that.
    pub fault: Option<FaultKind>,
    /// What the program left.
    pub ran: Ran,
}

impl<'a> ProcessRuns<'a> {
    /// Runs a program without a fault on the device of its campaign. `is_launch`: the program is
    /// Flipwave's own, which runs kernels.
    ///
    /// # Errors
    /// [`CampaignError`] if it does not end as it must there.
    pub fn new(
        campaign: &'a Campaign,
        attached: Attached<'a>,
        is_launch: bool,
    ) -> Result<Self, CampaignError> {
        let golden = attached.golden(campaign, campaign.cancellation.stopped());
        let golden = golden.map_err(|error| match error {
            CampaignError::Application(ApplicationError::GoldenEnded { ended, advice, stderr })
                if campaign.device().is_hardware() =>
            {
                not_on_hardware(is_launch, ended, advice, &stderr).into()
            }
            error => error,
        })?;
        Ok(ProcessRuns { attached, golden, process: TargetProcess::Any })
    }

    /// Writes down what dispatches may execute in runs with faults inside of the embedded GPU.
    ///
    /// # Errors
    /// [`AttachError::Files`].
    pub fn write_limits(&self, golden: &Golden) -> Result<(), AttachError> {
        // Numbers are always JSON.
        let text = serde_json::to_string(&golden.instruction_limits()).unwrap_or_default();
        std::fs::write(self.limits_file(), text).map_err(|reason| self.attached.files(reason))
    }

    fn limits_file(&self) -> PathBuf {
        self.attached.folder.path().join("limits.json")
    }

    /// One run with a fault inside of the embedded GPU.
    ///
    /// # Errors
    /// [`CampaignError`] if the program cannot be run, or the fault did not take place.
    pub fn inject(&self, site: &Site, interrupt: &AtomicBool) -> Result<StruckRun, CampaignError> {
        let (process, limits) = (self.process.clone(), self.limits_file());
        let task = Task::Inject { process, site: site.to_string(), limits };
        let (ran, events) = self.attached.run(task, &self.golden.limits, interrupt)?;
        StruckRun::new(*site, ran, &events)
    }

    /// One run with a fault by the hooks in `codes`. `addresses` is where the program leaves the
    /// addresses of its data, if it does.
    ///
    /// # Errors
    /// As [`ProcessRuns::inject`].
    pub fn inject_by_hooks(
        &self,
        site: &Site,
        codes: &[HookedCode],
        addresses: Option<PathBuf>,
        interrupt: &AtomicBool,
    ) -> Result<StruckRun, CampaignError> {
        // A dispatch may take as long as a run, and a hung one shows by that.
        let limit = self.golden.limits.timeout;
        let files =
            HookFiles::write(&self.attached, (&self.process, site), codes, (addresses, limit))?;
        let limits = Limits { timeout: limit * 2, ..self.golden.limits };
        let task = Task::InjectWithHooks(files.session.clone());
        let (ran, events) = self.attached.run(task, &limits, interrupt)?;
        StruckRun::new(*site, ran, &events)
    }
}

impl StruckRun {
    fn new(site: Site, ran: Ran, events: &[ProcessEvent]) -> Result<StruckRun, CampaignError> {
        Ok(StruckRun { struck: struck(events, site)?, fault: fault(events), ran })
    }
}

/// The end of a run that need not be run, because nothing reads what was struck; nothing where that
/// is not so, and where such faults are injected all the same.
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

/// What was struck.
fn struck(events: &[ProcessEvent], site: Site) -> Result<Struck, AttachError> {
    let site = Box::new(site);
    for reported in events {
        match &reported.event {
            Event::Struck { before, after, words, absorbed } => {
                return Ok(Struck {
                    before: *before,
                    after: *after,
                    words: *words,
                    absorbed: *absorbed,
                });
            }
            Event::NotStruck { reason } => {
                return Err(AttachError::NotStruck { site, reason: reason.clone() });
            }
            _ => {}
        }
    }
    Err(AttachError::NotActivated { site })
}
