//! What is learnt in one fault-free run before it is known where faults strike: outputs, what there is
//! to strike, how exact the run is, and what the second one begins with.

use crate::fault::Fault;
use crate::golden::boundaries::{Boundaries, Boundary, BoundaryKeeper};
use crate::population::{
    Census, Counting, Draw, Frame, KnownMasked, Profile, ProfileError, Profiler, Selection,
    Stratification,
};
use crate::{Golden, Workload};
use flipwave_device::{Completion, DeviceError, Dispatch, WaveLocation};
use flipwave_sim::strict::Violation;
use flipwave_sim::{EmbeddedGpu, Fidelity, FidelityCheck, Footprints, Unobserved};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

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
    /// executed alone, and the device between dispatches.
    pub touched: bool,
    /// Threads that execute it at most where that is recorded; what is learnt is the same with any
    /// number.
    pub threads: NonZeroUsize,
}

/// What a fault-free run has shown.
#[derive(Debug)]
pub struct Survey {
    /// The run.
    pub golden: Golden,
    /// What faults can strike in it.
    pub profile: Profile,
    /// How exact the operations are that it executes, and what results that are not settled decide.
    pub fidelity: Fidelity,
    /// What was recorded of it, if that was asked for.
    pub recorded: Option<Recorded>,
}

/// What is recorded of a fault-free run for the second one.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What workgroups touch.
    pub touched: Touched,
    /// The device between dispatches, unless that took too much memory.
    pub boundaries: Option<Boundaries>,
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
/// beyond the LDS of a workgroup or the private memory of a work-item, each with the index of its dispatch, however the run ends.
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
    let mut fidelity = FidelityCheck::new();
    let settled_from = workload.settled_from();
    let mut touched = inquiry.touched.then(Touched::default);
    let mut keeper = inquiry.touched.then(BoundaryKeeper::default);
    let mut bytes = 0;
    let golden = workload.run_fault_free(|index, device, dispatch| {
        if index == settled_from {
            fidelity.only_count();
        }
        let is_selected = inquiry.selection.has_dispatch(index, &dispatch.kernel);
        let mut footprints = (inquiry.touched && is_selected).then(Footprints::default);
        let has_room = bytes < Touched::MOST_BYTES;
        let (mut threads, violations_before) = (inquiry.threads, violations.len());
        let may_be_anew = threads > NonZeroUsize::MIN;
        let is_wanted = footprints.is_some() && (keeper.is_some() || may_be_anew);
        let before = is_wanted.then(|| shared_clone(device));
        let completion = profiler.count((index, dispatch), |census| {
            let of = (index, dispatch);
            let touched = footprints.as_mut().filter(|_| has_room);
            let followed = Followed { fidelity: &mut fidelity, threads };
            let found = (&mut *violations, Some(followed));
            let (end, is_as_on_one) = surveyed(workload, of, device, census, touched, found)?;
            let Some(before) = before.as_ref().filter(|_| !is_as_on_one) else {
                return Ok(Some(end));
            };
            threads = NonZeroUsize::MIN;
            device.clone_from(before);
            footprints = Some(Footprints::default());
            fidelity.forget();
            violations.truncate(violations_before);
            Ok(None)
        })?;
        if let (Some(Touched(all)), Some(footprints)) = (&mut touched, footprints) {
            bytes += footprints.host_bytes();
            if let (Some(own), Some(before)) = (&mut keeper, before)
                && !own.keep(index, Boundary { before, after: shared_clone(device) })
            {
                keeper = None;
            }
            all.insert(index, footprints);
        }
        Ok(completion)
    })?;
    let recorded = touched.map(|touched| {
        // What a dispatch writes of which it is not known is not counted.
        let keeper = keeper.filter(|_| bytes < Touched::MOST_BYTES);
        Recorded { touched, boundaries: keeper.map(|own| own.into_boundaries(golden.clone())) }
    });
    let fidelity = workload.fidelity(&mut fidelity);
    Ok(Survey { golden, profile: profiler.into_profile(), fidelity, recorded })
}

/// A clone of a device that shares its memory.
fn shared_clone(device: &mut EmbeddedGpu) -> EmbeddedGpu {
    device.share_memory();
    device.clone()
}

/// What follows the fidelity of a run, and how many threads execute it at most.
pub(crate) struct Followed<'a> {
    fidelity: &'a mut FidelityCheck,
    threads: NonZeroUsize,
}

/// Runs a dispatch on a clone of the workload's device, and reports the accesses beyond the LDS of a
/// workgroup. `census` counts what it executes, `footprints` gets what its workgroups touch, and the
/// fidelity of the run is followed where there is something that does. Whether it was all as on one
/// thread: else it is to be run anew on that.
pub(crate) fn surveyed(
    workload: &Workload,
    (index, dispatch): (u32, &Dispatch),
    device: &mut EmbeddedGpu,
    mut census: Option<&mut Census<'_>>,
    mut footprints: Option<&mut Footprints>,
    (violations, mut followed): (&mut Vec<(u32, Violation)>, Option<Followed<'_>>),
) -> Result<(Completion, bool), DeviceError> {
    let mut execution = device.begin(dispatch)?;
    let counted = census.as_deref().and_then(Census::counted_lanes);
    let mut check = device.begin_survey(&execution, counted);
    let (kernel, attendance) = (&dispatch.kernel, &workload.attendance);
    if let Some(followed) = &mut followed {
        device.begin_fidelity(kernel, &execution, followed.fidelity);
    }
    let completion = match &mut census {
        Some(census) if counted.is_none() => workload.as_it_was(dispatch, *census, |observer| {
            attendance.carry_on(kernel, &mut execution, |execution, until| {
                let check = &mut check;
                let fidelity = followed.as_mut().map(|followed| &mut *followed.fidelity);
                let footprints = footprints.as_deref_mut();
                device.advance_surveyed(execution, observer, check, fidelity, footprints, until)
            })
        }),
        census => attendance.carry_on(kernel, &mut execution, |execution, until| {
            let progress = match (&mut followed, footprints.as_deref_mut()) {
                (Some(Followed { fidelity, threads }), Some(footprints)) => {
                    let (check, fidelity) = (&mut check, &mut **fidelity);
                    device.advance_surveyed_divided(
                        execution, check, fidelity, footprints, *threads, until,
                    )
                }
                (followed, footprints) => {
                    let (check, observer) = (&mut check, &mut Unobserved);
                    let fidelity = followed.as_mut().map(|followed| &mut *followed.fidelity);
                    device.advance_surveyed(execution, observer, check, fidelity, footprints, until)
                }
            };
            if let (Some(census), Some(counter)) = (census.as_deref_mut(), &mut check.counter) {
                census.add(counter);
            }
            progress
        }),
    }?;
    let is_as_on_one = footprints.is_none_or(|own| check.end_division(own));
    violations.extend(device.outside_segments(check).into_iter().map(|mut own| {
        let place = WaveLocation { pc: own.place.pc, wave: own.wave };
        own.place.pc = workload.original_place(dispatch, place).pc;
        (index, own)
    }));
    Ok((completion, is_as_on_one))
}
