//! The fault-free run, and what of it would make outcomes mean nothing.

use crate::application::{Application, Ran};
use crate::campaign::{Campaign, CampaignWorkload};
use crate::compare::{OutputFormat, OutputRole, accepts_everything, is_all_nan};
use crate::error::CampaignError;
use crate::prepare::Prepared;
use crate::suspicion::{Suspicion, SuspicionError};
use flipwave_injector::{Golden, Workload};
use flipwave_sim::Fidelity;

/// Runs a workload of a campaign without a fault; `formats` are its outputs'.
///
/// # Errors
/// [`CampaignError::Golden`] if it does not complete; [`CampaignError::Suspicion`] if outcomes beside
/// it would mean nothing and the campaign file does not allow it.
pub(crate) fn golden(
    campaign: &Campaign,
    workload: &Workload,
    formats: &[OutputFormat],
) -> Result<Golden, CampaignError> {
    let golden = golden_within_lds(campaign, workload)?;
    match &campaign.workload {
        CampaignWorkload::Kernels(_) => check_outputs(campaign, workload, formats, &golden)?,
        // What the host of an application reads is its own affair; what it makes of it is compared.
        CampaignWorkload::Application(_) | CampaignWorkload::Capture(_) => {}
    }
    Ok(golden)
}

/// The fault-free run, and how exact it is.
pub(crate) struct FaultFree {
    pub golden: Golden,
    /// Of what the embedded GPU executed; none where another device gave the outputs.
    pub fidelity: Option<Fidelity>,
}

/// The fault-free run, done twice to see that it is the same each time.
///
/// # Errors
/// As [`golden`]; [`CampaignError::NotDeterministic`].
pub(crate) fn golden_twice(
    campaign: &Campaign,
    prepared: &Prepared,
) -> Result<FaultFree, CampaignError> {
    let Prepared { workload, formats, .. } = prepared;
    let golden = golden(campaign, workload, formats)?;
    let (again, fidelity) = workload.golden_with_fidelity()?;
    let outputs = golden.outputs.iter().zip(&again.outputs).zip(&workload.program.outputs);
    for ((first, second), output) in outputs {
        if first != second {
            let difference = format!("output `{}`", output.name);
            return Err(CampaignError::NotDeterministic { difference });
        }
    }
    if golden != again {
        let difference = "the instructions executed".to_owned();
        return Err(CampaignError::NotDeterministic { difference });
    }
    Ok(FaultFree { golden, fidelity: Some(fidelity) })
}

/// Runs a workload without a fault, and refuses accesses beyond the LDS of a workgroup.
fn golden_within_lds(campaign: &Campaign, workload: &Workload) -> Result<Golden, CampaignError> {
    if campaign.allow.contains(&Suspicion::OutsideLocalMemory) {
        return Ok(workload.golden()?);
    }
    let (golden, violations) = workload.golden_within_lds();
    // Where a run fails in consequence, this is the cause.
    if let Some((dispatch, violation)) = violations.into_iter().next() {
        let kernel = workload.program.dispatches[dispatch as usize].kernel.clone();
        let violation = Box::new(violation);
        return Err(SuspicionError::OutsideLocalMemory { dispatch, kernel, violation }.into());
    }
    Ok(golden?)
}

/// Refuses an application of which nothing would be compared with its run without a fault.
///
/// # Errors
/// [`CampaignError::Suspicion`], [`CampaignError::Application`].
pub(crate) fn check_application(
    campaign: &Campaign,
    application: &Application,
    first: &Ran,
) -> Result<(), CampaignError> {
    if campaign.allow.contains(&Suspicion::UnwrittenOutput) {
        return Ok(());
    }
    match application.compares_nothing(first)? {
        Some(outputs) => Err(SuspicionError::NothingCompared { outputs }.into()),
        None => Ok(()),
    }
}

fn check_outputs(
    campaign: &Campaign,
    workload: &Workload,
    formats: &[OutputFormat],
    golden: &Golden,
) -> Result<(), CampaignError> {
    let is_refused = |suspicion| !campaign.allow.contains(&suspicion);
    let initial =
        workload.read_outputs(&workload.device).map_err(flipwave_injector::GoldenError::from)?;
    // Which are written is looked for only where one has not changed.
    let mut written = None;
    let outputs =
        workload.program.outputs.iter().zip(formats).zip(golden.outputs.iter().zip(initial));
    for (index, ((output, format), (golden, initial))) in outputs.enumerate() {
        let OutputRole::Result(tolerance) = &format.role else { continue };
        let buffer = output.name.clone();
        if is_refused(Suspicion::UnwrittenOutput) && *golden == initial {
            let written = match &written {
                Some(written) => written,
                None => written.insert(workload.written_outputs()?),
            };
            if !written[index] {
                return Err(SuspicionError::UnwrittenOutput { buffer }.into());
            }
        }
        if is_refused(Suspicion::NanOutput) && is_all_nan(format.element, golden) {
            return Err(SuspicionError::NanOutput { buffer }.into());
        }
        if is_refused(Suspicion::UnlimitedTolerance)
            && accepts_everything(format.element, tolerance, golden)
        {
            return Err(SuspicionError::UnlimitedTolerance { buffer }.into());
        }
    }
    Ok(())
}
