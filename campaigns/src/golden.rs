//! The fault-free run, and what of it would make outcomes mean nothing.

use crate::application::{Application, Ran};
use crate::campaign::{Campaign, CampaignWorkload};
use crate::compare::{accepts_everything, is_all_nan};
use crate::error::CampaignError;
use crate::prepare::{OutputFormat, OutputRole};
use flipwave_injector::{Golden, Workload};
use flipwave_sim::strict::Violation;
use schemars::JsonSchema;
use serde::Deserialize;

/// What a fault-free run may do only if the campaign file says so, under `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "the name of what is allowed, for example `unwritten_output`")]
pub enum Suspicion {
    /// Access LDS beyond what the workgroup has.
    OutsideLocalMemory,
    /// Leave an output as it is: of an application all that is compared empty.
    UnwrittenOutput,
    /// Leave no number in an output, only NaN.
    NanOutput,
    /// Have a tolerance that calls every number right.
    UnlimitedTolerance,
}

/// A fault-free run beside which outcomes would mean nothing.
#[derive(Debug, thiserror::Error)]
pub enum SuspicionError {
    /// It reads zero where the program expects its data, or loses what it writes.
    #[error(
        "the fault-free run leaves its LDS in dispatch {dispatch} (kernel `{kernel}`): {}, at \
         {}{}, {}; hardware reads zero there and drops what is written. Give the launch the dynamic \
         LDS that the host code asks for, `local_memory: BYTES`; if the kernel is meant to do \
         this, say so with `allow: [outside_local_memory]`",
        violation.finding, violation.place, line(violation), violation.wave
    )]
    OutsideLocalMemory {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// The first such access.
        violation: Box<Violation>,
    },
    /// Nothing to compare.
    #[error(
        "the fault-free run writes nothing to the output `{buffer}`: faulty runs would be right \
         whatever they compute; mark the buffer that holds results, or if it is meant, say so with \
         `allow: [unwritten_output]`"
    )]
    UnwrittenOutput {
        /// The output.
        buffer: String,
    },
    /// Nothing to compare, of an application.
    #[error(
        "all that is compared is empty after a run without a fault: {outputs}; runs with faults would \
         be right whatever they compute. Compare what holds results, or if it is meant, say so with \
         `allow: [unwritten_output]`"
    )]
    NothingCompared {
        /// What is compared.
        outputs: String,
    },
    /// No numbers to compare.
    #[error(
        "the fault-free run leaves nothing but NaN in the output `{buffer}`: every NaN is as right \
         as another; look at the buffers' contents, or if it is meant, say so with `allow: \
         [nan_output]`"
    )]
    NanOutput {
        /// The output.
        buffer: String,
    },
    /// Nothing is wrong.
    #[error(
        "the tolerance of the output `{buffer}` calls every number right; narrow it under `compare`, \
         or if it is meant, say so with `allow: [unlimited_tolerance]`"
    )]
    UnlimitedTolerance {
        /// The output.
        buffer: String,
    },
}

/// Where in the source a violation is, in brackets.
fn line(violation: &Violation) -> String {
    let line = violation.line.as_ref();
    line.map(|own| format!(" ({}:{})", own.file, own.line)).unwrap_or_default()
}

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

/// Runs a workload without a fault, and refuses accesses beyond the LDS of a workgroup.
fn golden_within_lds(campaign: &Campaign, workload: &Workload) -> Result<Golden, CampaignError> {
    if campaign.allow.contains(&Suspicion::OutsideLocalMemory) {
        return Ok(workload.golden()?);
    }
    let (golden, violations) = workload.golden_within_lds();
    // Where a run fails in consequence, this is the cause.
    if let Some((dispatch, violation)) = violations.into_iter().next() {
        let kernel = workload.dispatches[dispatch as usize].kernel.clone();
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
    let outputs = workload.outputs.iter().zip(formats).zip(golden.outputs.iter().zip(initial));
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
