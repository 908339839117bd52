//! `flipwave replay`: repeats one injection.

use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::file::kernels::Buffer;
use crate::golden::golden;
use crate::program::prepare::Prepared;
use crate::program::site_in;
use crate::run::injection_path::InjectionPath;
use crate::run::outcome::{Classifier, ComparedEnding, Verdict};
use crate::run::process_site::ProcessSite;
use crate::run::runners::{in_process_runner, runner};
use crate::severity::Judge;
use flipwave_codeobj::SourceLine;
use flipwave_device::DeviceFault;
use flipwave_injector::{
    Accelerations, Ending, Golden, InjectedChange, Site, Workload, analyze_site, inject,
};

/// Result of one injection.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The struck value.
    pub struck: InjectedChange,
    /// The outcome.
    pub verdict: Verdict,
    /// The dispatch that the device stopped, with the device fault.
    pub fault: Option<(u32, DeviceFault)>,
    /// Source line of the instruction at which the device stopped, if known.
    pub fault_line: Option<SourceLine>,
}

/// Executes a campaign's program with one fault at `site`: kernels and captures on the embedded GPU, applications in
/// new processes, as when the campaign runs.
///
/// # Errors
/// [`CampaignError`] if the program has no output or cannot be assembled, the golden run does not
/// complete, or the faulty run never reaches the site.
pub fn replay(
    campaign: &Campaign,
    site: impl Into<ProcessSite>,
    path: InjectionPath,
) -> Result<Replay, CampaignError> {
    if campaign.kernels().is_some_and(|kernels| !kernels.buffers.iter().any(Buffer::is_output)) {
        return Err(CampaignError::NoOutputs);
    }
    let runner = match &campaign.workload {
        CampaignWorkload::Application(_) => runner(campaign, path)?,
        CampaignWorkload::Kernels(_) | CampaignWorkload::Capture(_) => {
            in_process_runner(campaign, path)?
        }
    };
    let Prepared { workload, formats, .. } = runner.prepared();
    let site = &site_in(campaign, runner.prepared(), site.into())?;
    let golden = golden(campaign, workload, formats)?;
    let injector = runner.injector(&golden, None, Accelerations::NONE)?;
    let injected = campaign
        .unless_cancelled(injector.inject(site))
        .map_err(|error| error.at_declared_register(workload, site))?;
    let threshold = campaign.faults.as_ref().map_or(0.0, |faults| faults.timing_threshold);
    let classifier = Classifier { golden: &golden, timing_threshold: threshold };
    let analysis = analyze_site(workload, site)?;
    let verdict = classifier.verdict(&injected, analysis.and_then(|analysis| analysis.next_use));
    let judge = Judge::for_campaign(campaign, runner.shown_outputs(&golden)?);
    let verdict = verdict.judged(judge.as_ref(), 0, &injected.ending)?;
    let fault = match injected.ending {
        ComparedEnding::Faulted { dispatch, fault } => Some((dispatch, fault)),
        ComparedEnding::Stopped(_) => fault_in_recording(workload, site, &golden),
        ComparedEnding::Completed { .. } => None,
    };
    let line = |(dispatch, fault): &(u32, DeviceFault)| {
        let module = workload.program.dispatches.get(*dispatch as usize)?.module;
        workload.device.lines(module)?.lookup(fault.place.pc)
    };
    let fault_line = fault.as_ref().and_then(line);
    Ok(Replay { struck: injected.struck, verdict, fault, fault_line })
}

/// The dispatch that the device stops in a recorded run of an application, with the device fault: processes report only
/// its kind.
fn fault_in_recording(
    workload: &Workload,
    site: &Site,
    golden: &Golden,
) -> Option<(u32, DeviceFault)> {
    match inject(workload, site, &golden.instruction_limits()).ok()?.ending {
        Ending::Faulted { dispatch, fault } => Some((dispatch, fault)),
        Ending::Completed { .. } => None,
    }
}
