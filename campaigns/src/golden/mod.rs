//! The golden run, and checks that outcomes relative to it are meaningful.

pub mod expected;
pub mod save;
pub mod suspicion;

use crate::application::{Application, ApplicationRun};
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::file::faults::Faults;
use crate::file::kernels::{BufferRole, Kernels};
use crate::golden::suspicion::{Suspicion, SuspicionError};
use crate::outputs::compare::{OutputFormat, OutputRole, accepts_everything, is_all_nan};
use crate::program::prepare::Prepared;
use crate::run::injection_path::InjectionPath;
use crate::sample::Sample;
use flipwave_device::Statistics;
use flipwave_injector::{
    Golden, Output, ProfiledRun, ProfilingOptions, Selection, Unreached, Workload,
    instruction_limit, run_with_profiling,
};
use flipwave_machine::{OutsideSegment, Segment};
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;

/// Performs the golden run of a workload. `formats` describes its outputs.
///
/// # Errors
/// [`CampaignError::Golden`] if it does not complete; [`CampaignError::Suspicion`] if it makes outcomes
/// meaningless and the campaign file does not allow it.
pub(crate) fn golden(
    campaign: &Campaign,
    workload: &Workload,
    formats: &[OutputFormat],
) -> Result<Golden, CampaignError> {
    let golden = golden_within_segments(campaign, workload)?;
    check(campaign, workload, formats, &golden)?;
    Ok(golden)
}

/// Rejects a golden run that makes outcomes meaningless.
fn check(
    campaign: &Campaign,
    workload: &Workload,
    formats: &[OutputFormat],
    golden: &Golden,
) -> Result<(), CampaignError> {
    match &campaign.workload {
        CampaignWorkload::Kernels(kernels) => {
            check_outputs(campaign, workload, formats, golden)?;
            check_detections(campaign, kernels, workload, golden)?;
            let compared = expected::compare_with_expected(kernels, workload, golden)?;
            match compared.into_iter().find_map(|output| output.unexpected) {
                Some(unexpected) => Err(unexpected.into()),
                None => Ok(()),
            }
        }
        // The memory that the host of an application reads is not checked; the results of the
        // application are compared.
        CampaignWorkload::Application(_) | CampaignWorkload::Capture(_) => Ok(()),
    }
}

/// Performs the golden run of a workload on at most `threads` threads, and counts the fault space of the
/// campaign. If `touched` is set, records the memory that each workgroup accesses.
///
/// # Errors
/// The errors of [`golden`], and [`CampaignError::Profile`] if profiling fails.
pub(crate) fn profiled(
    campaign: &Campaign,
    prepared: &Prepared,
    touched: bool,
    threads: NonZeroUsize,
) -> Result<ProfiledRun, CampaignError> {
    let Faults { fault, selection, stratification, counting, sample, .. } = campaign.faults()?;
    let (stratification, counting) = (*stratification, *counting);
    let Prepared { workload, formats, path, .. } = prepared;
    workload.check_registers(selection)?;
    let unreached = match path {
        InjectionPath::Embedded => Unreached::default(),
        InjectionPath::Hook => campaign.target.hooks()?.unreached(workload, fault, selection)?,
    };
    let selection = &Selection { unreached, ..selection.clone() };
    let Sample { draw, known_masked, .. } = *sample;
    let options = ProfilingOptions {
        fault,
        selection,
        stratification,
        counting,
        draw,
        known_masked,
        touched,
        threads,
    };
    let (profiled, violations) = run_with_profiling(workload, &options);
    reject_violations(campaign, workload, violations)?;
    let profiled = profiled?;
    check(campaign, workload, formats, &profiled.golden)?;
    Ok(profiled)
}

/// A golden run to compare other golden runs with. It contains digests in place of outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Execution statistics of each dispatch.
    pub statistics: Vec<Statistics>,
    /// SHA-256 of each output after the run.
    pub outputs: Vec<[u8; 32]>,
}

impl Reference {
    /// Computes the digests of a golden run's outputs.
    pub fn new(golden: &Golden) -> Reference {
        let digest = |output: &Output| Sha256::digest(output.bytes()).into();
        let outputs = golden.outputs.iter().map(digest).collect();
        Reference { statistics: golden.statistics.clone(), outputs }
    }

    /// Returns the number of wave instructions executed by each dispatch.
    pub fn wave_instructions(&self) -> Vec<u64> {
        self.statistics.iter().map(|executed| executed.wave_instructions).collect()
    }

    /// Returns the watchdog limit of each dispatch in faulty runs, in wave instructions.
    pub fn instruction_limits(&self) -> Vec<u64> {
        self.wave_instructions().into_iter().map(instruction_limit).collect()
    }
}

/// Checks that a second golden run equals the first.
///
/// # Errors
/// [`CampaignError::NotDeterministic`].
pub(crate) fn check_same(
    workload: &Workload,
    first: &Reference,
    second: &Golden,
) -> Result<(), CampaignError> {
    let second = Reference::new(second);
    let outputs = first.outputs.iter().zip(&second.outputs).zip(&workload.program.outputs);
    for ((first, second), output) in outputs {
        if first != second {
            let difference = format!("output `{}`", output.name);
            return Err(CampaignError::NotDeterministic { difference });
        }
    }
    if *first != second {
        let difference = "the instructions executed".to_owned();
        return Err(CampaignError::NotDeterministic { difference });
    }
    Ok(())
}

/// Performs the golden run of a workload, and rejects accesses outside LDS and private memory.
pub(crate) fn golden_within_segments(
    campaign: &Campaign,
    workload: &Workload,
) -> Result<Golden, CampaignError> {
    let (golden, violations) = workload.golden_within_segments();
    reject_violations(campaign, workload, violations)?;
    Ok(golden?)
}

/// Rejects accesses outside the LDS of a workgroup or the private memory of a work-item. If the run fails
/// because of such an access, this reports the cause.
fn reject_violations(
    campaign: &Campaign,
    workload: &Workload,
    violations: Vec<(u32, OutsideSegment)>,
) -> Result<(), CampaignError> {
    let suspicion = |violation: &OutsideSegment| match violation.segment {
        Segment::Private => Suspicion::OutsidePrivateMemory,
        Segment::Workgroup => Suspicion::OutsideLocalMemory,
    };
    let rejected = violations
        .into_iter()
        .find(|(_, violation)| !campaign.allow.contains(&suspicion(violation)));
    let Some((dispatch, violation)) = rejected else { return Ok(()) };
    let kernel = workload.program.dispatches[dispatch as usize].kernel.clone();
    let suspicion = suspicion(&violation);
    let violation = Box::new(violation);
    Err(match suspicion {
        Suspicion::OutsidePrivateMemory => {
            SuspicionError::OutsidePrivateMemory { dispatch, kernel, violation }
        }
        _ => SuspicionError::OutsideLocalMemory { dispatch, kernel, violation },
    }
    .into())
}

/// Rejects an application whose golden run leaves nothing to compare.
///
/// # Errors
/// [`CampaignError::Suspicion`], [`CampaignError::Application`].
pub(crate) fn check_application(
    campaign: &Campaign,
    application: &Application,
    first: &ApplicationRun,
) -> Result<(), CampaignError> {
    if campaign.allow.contains(&Suspicion::UnwrittenOutput) {
        return Ok(());
    }
    match application.empty_outputs(first)? {
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
    let is_rejected = |suspicion| !campaign.allow.contains(&suspicion);
    let initial =
        workload.read_outputs(&workload.device).map_err(flipwave_injector::GoldenError::from)?;
    // Computed only if some output has not changed.
    let mut written = None;
    let outputs =
        workload.program.outputs.iter().zip(formats).zip(golden.outputs.iter().zip(initial));
    for (index, ((output, format), (golden, initial))) in outputs.enumerate() {
        let OutputRole::Result(tolerance) = &format.role else { continue };
        let (buffer, golden) = (output.name.clone(), golden.bytes());
        if is_rejected(Suspicion::UnwrittenOutput) && *golden == *initial {
            let written = match &written {
                Some(written) => written,
                None => written.insert(workload.written_outputs()?),
            };
            if !written[index] {
                return Err(SuspicionError::UnwrittenOutput { buffer }.into());
            }
        }
        if is_rejected(Suspicion::NanOutput) && is_all_nan(format.element, &golden) {
            return Err(SuspicionError::NanOutput { buffer }.into());
        }
        if is_rejected(Suspicion::UnlimitedTolerance)
            && accepts_everything(format.element, tolerance, &golden)
        {
            return Err(SuspicionError::UnlimitedTolerance { buffer }.into());
        }
    }
    Ok(())
}

/// Rejects detections of the campaign's detector, whose counters are the last outputs.
fn check_detections(
    campaign: &Campaign,
    kernels: &Kernels,
    workload: &Workload,
    golden: &Golden,
) -> Result<(), CampaignError> {
    if kernels.detector.is_none() || campaign.allow.contains(&Suspicion::GoldenDetection) {
        return Ok(());
    }
    let of_program =
        kernels.buffers.iter().filter(|buffer| buffer.role != BufferRole::Data).count();
    let outputs = workload.program.outputs.iter().zip(&golden.outputs);
    for (buffer, output) in outputs.skip(of_program) {
        let bytes = output.bytes();
        let detections = bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if detections > 0 {
            let name = buffer.name.clone();
            return Err(SuspicionError::GoldenDetection { name, detections }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::prepare::prepare;
    use std::path::Path;

    /// Outcomes are undefined for a nondeterministic program.
    #[test]
    fn check_same_detects_different_outputs_and_instructions() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns/vector_add.yaml");
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let survey = profiled(&campaign, &prepared, false, NonZeroUsize::MIN);
        let golden = survey.unwrap_or_else(|error| panic!("{error}")).golden;
        let check = |second: &Golden| {
            let same = check_same(&prepared.workload, &Reference::new(&golden), second);
            same.map_err(|error| error.to_string())
        };
        assert_eq!(check(&golden), Ok(()));
        let name = &prepared.workload.program.outputs[0].name;
        let mut changed = golden.clone();
        let mut bytes = changed.outputs[0].bytes().into_owned();
        bytes[5] ^= 1;
        changed.outputs[0] = bytes.into();
        assert!(check(&changed).is_err_and(|error| error.contains(name.as_str())));
        let mut changed = golden.clone();
        changed.statistics[0].wave_instructions += 1;
        assert!(check(&changed).is_err_and(|error| error.contains("the instructions executed")));
    }
}
