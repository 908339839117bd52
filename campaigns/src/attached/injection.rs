//! Runs of a program with a fault, and their outcomes.

use super::hooks::HookFiles;
use super::{AttachError, Attached};
use crate::application::{ApplicationError, ApplicationGolden, Ended, Limits, Output, Ran};
use crate::campaign::{Campaign, CampaignWorkload};
use crate::compare::Difference;
use crate::device::CampaignDevice;
use crate::error::CampaignError;
use crate::launch;
use crate::outcome::{CompletedRun, MaskedCause, Rules, Verdict};
use crate::prepare::{Prepared, prepare};
use flipwave_attach::{Event, Task};
use flipwave_device::FaultCause;
use flipwave_injector::{
    Accelerations, Ending, Fate, Golden, HookedCode, Injection, Planned, Site, Struck,
};
use std::borrow::Cow;
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

/// What it takes to run a program with faults in processes of its own.
pub(crate) struct ApplicationRuns<'a> {
    attached: Attached<'a>,
    golden: ApplicationGolden,
    /// Where the program's outputs are, if it is made of kernels and buffers.
    outputs: Option<Vec<Output>>,
}

impl<'a> ApplicationRuns<'a> {
    /// Runs the program of a campaign without a fault; nothing for a workload that runs in this
    /// process.
    pub fn new(
        campaign: &'a Campaign,
        interrupt: &AtomicBool,
    ) -> Result<Option<Self>, CampaignError> {
        let (application, outputs) = match &campaign.workload {
            CampaignWorkload::Application(application) => (Cow::Borrowed(application), None),
            CampaignWorkload::Kernels(kernels) => match kernels.device {
                CampaignDevice::Embedded => return Ok(None),
                CampaignDevice::Rocr => {
                    let own = launch::application(campaign, kernels)?;
                    (Cow::Owned(own), Some(launch::outputs(kernels)))
                }
            },
            CampaignWorkload::Capture(_) => return Ok(None),
        };
        let attached = Attached::new(campaign, application)?;
        let golden = attached.golden(campaign, interrupt).map_err(|error| match error {
            CampaignError::Application(ApplicationError::GoldenEnded { ended, advice, stderr })
                if campaign.device() == CampaignDevice::Rocr =>
            {
                not_on_hardware(outputs.is_some(), ended, advice, &stderr).into()
            }
            error => error,
        })?;
        Ok(Some(ApplicationRuns { attached, golden, outputs }))
    }

    /// The program as a workload of the embedded GPU, on which faults are planned.
    pub fn prepare(
        &self,
        campaign: &Campaign,
        interrupt: &AtomicBool,
    ) -> Result<Prepared, CampaignError> {
        match &self.outputs {
            None => self.attached.record(campaign, &self.golden, interrupt),
            // Hardware takes no instructions that are to be emulated.
            Some(_) => Ok(prepare(campaign)?),
        }
    }

    /// Says what the fault-free run of the workload was. Its outputs are those of the campaign's
    /// device from then on.
    pub fn know(&self, golden: &mut Golden) -> Result<(), CampaignError> {
        let file = self.limits_file();
        // Numbers are always JSON.
        let text = serde_json::to_string(&golden.instruction_limits()).unwrap_or_default();
        std::fs::write(&file, text).map_err(|reason| self.attached.files(reason))?;
        if let Some(outputs) = &self.outputs {
            golden.outputs = contents(outputs, &self.golden.first)?;
        }
        Ok(())
    }

    /// The file with the watchdogs of dispatches, for runs with faults.
    fn limits_file(&self) -> PathBuf {
        self.attached.folder.path().join("limits.json")
    }

    /// A run with a fault, or what is known of it without one: by hooks in `codes`, or inside of
    /// the embedded GPU.
    pub fn inject(
        &self,
        planned: &Planned,
        codes: Option<&[HookedCode]>,
        accelerations: Accelerations,
        rules: &Rules<'_>,
        interrupt: &AtomicBool,
    ) -> Result<(Struck, Verdict), CampaignError> {
        if accelerations.dead_values
            && let Some(struck) = planned.foreseen()
        {
            let cause = MaskedCause::of(&struck, planned.fate());
            return Ok((struck, Verdict::Masked { cause, run: CompletedRun::default() }));
        }
        let site = planned.site;
        let (ran, events) = match codes {
            None => {
                let task = Task::Inject { site: site.to_string(), limits: self.limits_file() };
                self.attached.run(task, &self.golden.limits, interrupt)?
            }
            Some(codes) => {
                // A dispatch may take as long as a run, and a hung one is told by that.
                let limit = self.golden.limits.timeout;
                let buffers = self.outputs.as_ref().map(|_| launch::ADDRESSES.into());
                let files = HookFiles::write(&self.attached, &site, codes, (buffers, limit))?;
                let limits = Limits { timeout: limit * 2, ..self.golden.limits };
                let task = Task::InjectByHooks(files.session.clone());
                self.attached.run(task, &limits, interrupt)?
            }
        };
        let struck = struck(&events, site)?;
        let verdict = match fault(&events)? {
            // A fault that the device found stands above all else: what the program made of it
            // follows from that.
            Some(cause) => Verdict::Due { cause },
            None => self.verdict(&ran, struck, planned.fate(), rules, interrupt)?,
        };
        Ok((struck, verdict))
    }

    /// The outcome of a run in which the device found no fault.
    fn verdict(
        &self,
        ran: &Ran,
        struck: Struck,
        fate: Option<Fate>,
        rules: &Rules<'_>,
        interrupt: &AtomicBool,
    ) -> Result<Verdict, CampaignError> {
        if let Some(outputs) = &self.outputs {
            return self.verdict_on_kernels(ran, outputs, struck, fate, rules);
        }
        let run = |difference: Difference| CompletedRun { difference, ..CompletedRun::default() };
        let judged = self.attached.application.judge(&self.golden, ran, interrupt)?;
        Ok(match judged.completed() {
            Err(cause) => Verdict::Due { cause },
            Ok((true, difference)) => {
                Verdict::Masked { cause: MaskedCause::of(&struck, fate), run: run(difference) }
            }
            Ok((false, difference)) => Verdict::Sdc(run(difference)),
        })
    }

    /// The same where the program is Flipwave's own, whose exit code says that it failed itself.
    fn verdict_on_kernels(
        &self,
        ran: &Ran,
        outputs: &[Output],
        struck: Struck,
        fate: Option<Fate>,
        rules: &Rules<'_>,
    ) -> Result<Verdict, CampaignError> {
        let cause = match ran.ended {
            Ended::Exited(0) => {
                let (outputs, statistics) = (contents(outputs, ran)?, Vec::new());
                let ending = Ending::Completed { outputs, statistics };
                return Ok(rules.classify(&Injection { struck, ending }, fate));
            }
            Ended::Exited(_) => {
                let said = String::from_utf8_lossy(&ran.stderr);
                return Err(AttachError::Failed(said.trim().to_owned()).into());
            }
            Ended::Signalled(_) => "signal",
            Ended::TimedOut => "timeout",
            Ended::OutOfMemory => "out_of_memory",
            Ended::OutputTooLarge => "output_too_large",
        };
        Ok(Verdict::Due { cause })
    }
}

/// What a run has left of the outputs.
fn contents(outputs: &[Output], ran: &Ran) -> Result<Vec<Vec<u8>>, CampaignError> {
    let content = |output: &Output| {
        let bytes = ran.output(output)?;
        // A program that ends well has written all of them.
        Ok(bytes.ok_or_else(|| AttachError::Failed(format!("{output} is missing")))?.into_owned())
    };
    outputs.iter().map(content).collect()
}

/// Why the device has stopped a dispatch, if it has.
fn fault(events: &[Event]) -> Result<Option<&'static str>, AttachError> {
    let name = events.iter().find_map(|event| match event {
        Event::Fault { cause, .. } => Some(cause.as_str()),
        _ => None,
    });
    let known = |name: &str| {
        let cause = FaultCause::NAMES.into_iter().find(|own| *own == name);
        cause.ok_or_else(|| AttachError::Failed(format!("a fault `{name}` is not known")))
    };
    name.map(known).transpose()
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
