//! What is learnt in one fault-free run before it is known where faults strike: outputs, what there is
//! to strike, and what workgroups touch.

use crate::fault::Fault;
use crate::population::{
    Census, Counting, Draw, Frame, KnownMasked, Profile, ProfileError, Profiler, Selection,
    Stratification,
};
use crate::{Golden, Workload};
use flipwave_device::{Completion, DeviceError, Dispatch, WaveLocation};
use flipwave_sim::strict::Violation;
use flipwave_sim::{EmbeddedGpu, Execution, Footprints, Observer, SurveyCheck, Unobserved};
use std::collections::BTreeMap;

/// What a fault-free run is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Inquiry<'a> {
    /// The fault whose places are counted.
    pub fault: &'a Fault,
    /// Where it may strike.
    pub selection: &'a Selection,
    /// What divides the places into strata.
    pub stratification: Stratification,
    /// Which dispatches are counted.
    pub counting: Counting,
    /// What of them is equally likely.
    pub draw: Draw,
    /// Whether places of values that nothing reads are left out, and counted.
    pub known_masked: KnownMasked,
    /// Whether to record what workgroups touch, by which it is known later which of them can be
    /// executed alone.
    pub touched: bool,
}

/// What a fault-free run has shown.
#[derive(Debug)]
pub struct Survey {
    /// The run.
    pub golden: Golden,
    /// What faults can strike in it.
    pub profile: Profile,
    /// What workgroups touch, if that was recorded.
    pub touched: Option<Touched>,
}

/// What workgroups touch in the dispatches that faults can strike, by the index of the dispatch. It is
/// not known of dispatches after those whose footprints take [`Touched::MOST_BYTES`]: they have empty
/// ones, and none of their workgroups is executed alone.
#[derive(Clone, Debug, Default)]
pub struct Touched(pub(crate) BTreeMap<u32, Footprints>);

impl Touched {
    /// Bytes that the footprints of all dispatches but the last one take at most.
    pub const MOST_BYTES: u64 = 1 << 30;
}

/// Runs `workload` once without a fault and learns from it what is asked for; besides, the accesses
/// beyond the LDS of a workgroup, each with the index of its dispatch, however the run ends.
pub fn survey(
    workload: &Workload,
    inquiry: &Inquiry<'_>,
) -> (Result<Survey, ProfileError>, Vec<(u32, Violation)>) {
    let mut violations = Vec::new();
    (run(workload, inquiry, &mut violations), violations)
}

fn run(
    workload: &Workload,
    inquiry: &Inquiry<'_>,
    violations: &mut Vec<(u32, Violation)>,
) -> Result<Survey, ProfileError> {
    let frame = Frame {
        fault: inquiry.fault.clone(),
        selection: inquiry.selection.clone(),
        stratification: inquiry.stratification,
        draw: inquiry.draw,
        known_masked: inquiry.known_masked,
    };
    let mut profiler = Profiler::new(workload, frame, inquiry.counting)?;
    let mut touched = inquiry.touched.then(Touched::default);
    let mut bytes = 0;
    let golden = workload.run_fault_free(|index, device, dispatch| {
        let is_selected = inquiry.selection.has_dispatch(index, &dispatch.kernel);
        let mut footprints = (inquiry.touched && is_selected).then(Footprints::default);
        let has_room = bytes < Touched::MOST_BYTES;
        let completion = profiler.count((index, dispatch), |census| {
            let of = (index, dispatch);
            let footprints = footprints.as_mut().filter(|_| has_room);
            surveyed(workload, of, device, census, footprints, violations)
        })?;
        if let (Some(Touched(all)), Some(footprints)) = (&mut touched, footprints) {
            bytes += footprints.host_bytes();
            all.insert(index, footprints);
        }
        Ok(completion)
    })?;
    Ok(Survey { golden, profile: profiler.into_profile(), touched })
}

/// Runs a dispatch on a clone of the workload's device, and reports the accesses beyond the LDS of a
/// workgroup. `census` counts what it executes, `footprints` gets what its workgroups touch.
pub(crate) fn surveyed(
    workload: &Workload,
    (index, dispatch): (u32, &Dispatch),
    device: &mut EmbeddedGpu,
    mut census: Option<&mut Census<'_>>,
    mut footprints: Option<&mut Footprints>,
    violations: &mut Vec<(u32, Violation)>,
) -> Result<Completion, DeviceError> {
    let mut execution = device.begin(dispatch)?;
    let counted = census.as_deref().and_then(Census::counted_lanes);
    let mut check = device.begin_survey(&execution, counted);
    let kernel = &dispatch.kernel;
    let mut advance =
        |execution: &mut Execution, observer: &mut dyn Observer, check: &mut SurveyCheck, until| {
            let footprints = footprints.as_deref_mut();
            device.advance_surveyed(execution, observer, check, footprints, until)
        };
    let completion = match &mut census {
        Some(census) if counted.is_none() => workload.as_it_was(dispatch, *census, |observer| {
            workload.attendance.carry_on(kernel, &mut execution, |execution, until| {
                advance(execution, observer, &mut check, until)
            })
        }),
        census => workload.attendance.carry_on(kernel, &mut execution, |execution, until| {
            let progress = advance(execution, &mut Unobserved, &mut check, until);
            if let (Some(census), Some(counter)) = (census.as_deref_mut(), &mut check.counter) {
                census.add(counter);
            }
            progress
        }),
    }?;
    violations.extend(device.outside_lds(check).into_iter().map(|mut own| {
        let place = WaveLocation { pc: own.place.pc, wave: own.wave };
        own.place.pc = workload.original_place(dispatch, place).pc;
        (index, own)
    }));
    Ok(completion)
}
