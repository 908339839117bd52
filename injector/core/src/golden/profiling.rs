//! Golden run with profiling: one fault-free run that yields the outputs, the fault space, the
//! fidelity, and the data that the resolving run starts from.

use crate::fault::Fault;
use crate::fault_space::{
    Counting, Draw, FaultSpaceCounter, Frame, KnownMasked, Profile, ProfileError, Profiler,
    Selection, Stratification,
};
use crate::golden::checkpoints::{CheckpointCollector, DispatchCheckpoint, DispatchCheckpoints};
use crate::{Golden, Workload};
use flipwave_device::{Completion, DeviceError, Dispatch};
use flipwave_machine::{
    Fidelity, FidelityCheck, Footprints, OutsideSegment, Simulator, Unobserved,
};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Options of a golden run with profiling.
#[derive(Clone, Copy, Debug)]
pub struct ProfilingOptions<'a> {
    /// The fault whose sites are counted.
    pub fault: &'a Fault,
    /// Selects where the fault may strike.
    pub selection: &'a Selection,
    /// Stratification of the sites.
    pub stratification: Stratification,
    /// Dispatches to count.
    pub counting: Counting,
    /// Units that are drawn with equal probability.
    pub draw: Draw,
    /// `true` if sites in values that nothing reads are excluded from the fault space and counted.
    pub known_masked: KnownMasked,
    /// `true` to record the footprints of workgroups, which decide later which workgroups can be
    /// executed alone, and device checkpoints between dispatches.
    pub touched: bool,
    /// Maximum number of threads that execute the run while footprints are recorded. The result does
    /// not depend on it.
    pub threads: NonZeroUsize,
}

/// Result of a golden run with profiling.
#[derive(Debug)]
pub struct ProfiledRun {
    /// The golden run.
    pub golden: Golden,
    /// The fault space.
    pub profile: Profile,
    /// Exactness of the executed operations, and the decisions that depend on results that are not
    /// settled.
    pub fidelity: Fidelity,
    /// Footprints and checkpoints, if requested.
    pub recorded: Option<RecordedRun>,
}

/// Data recorded in the golden run for the resolving run.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// Footprints of the workgroups.
    pub touched: WorkgroupFootprints,
    /// Device checkpoints between dispatches, unless they took too much memory.
    pub checkpoints: Option<DispatchCheckpoints>,
}

/// Footprints (memory read and written) of the workgroups in the dispatches that faults can hit, by
/// dispatch index. Once the footprints take [`WorkgroupFootprints::MOST_BYTES`], later dispatches get empty
/// footprints, and none of their workgroups is executed alone.
#[derive(Clone, Debug, Default)]
pub struct WorkgroupFootprints(pub(crate) BTreeMap<u32, Footprints>);

impl WorkgroupFootprints {
    /// Maximum bytes of the footprints of all dispatches except the last one.
    pub const MOST_BYTES: u64 = 1 << 30;
}

/// Runs `workload` once without a fault and profiles it. Also returns the out-of-bounds accesses to LDS
/// or private memory, each with the index of its dispatch, even if the run fails.
pub fn run_with_profiling(
    workload: &Workload,
    options: &ProfilingOptions<'_>,
) -> (Result<ProfiledRun, ProfileError>, Vec<(u32, OutsideSegment)>) {
    let mut violations = Vec::new();
    (run(workload, options, &mut violations), violations)
}

fn run(
    workload: &Workload,
    options: &ProfilingOptions<'_>,
    violations: &mut Vec<(u32, OutsideSegment)>,
) -> Result<ProfiledRun, ProfileError> {
    let frame = Frame {
        fault: options.fault.clone(),
        selection: options.selection.clone(),
        stratification: options.stratification,
        draw: options.draw,
        known_masked: options.known_masked,
    };
    let mut profiler = Profiler::new(workload, frame, options.counting)?;
    let mut fidelity = workload.device.fidelity_check();
    let settled_from = workload.settled_from();
    let mut touched = options.touched.then(WorkgroupFootprints::default);
    let mut keeper = options.touched.then(CheckpointCollector::default);
    let mut bytes = 0;
    let golden = workload.run_fault_free(|index, device, dispatch| {
        if index == settled_from {
            fidelity.only_count();
        }
        let is_selected = options.selection.has_dispatch(index, &dispatch.kernel);
        let mut footprints = (options.touched && is_selected).then(Footprints::default);
        let has_room = bytes < WorkgroupFootprints::MOST_BYTES;
        let (mut threads, violations_before) = (options.threads, violations.len());
        let may_run_again = threads > NonZeroUsize::MIN;
        let is_wanted = footprints.is_some() && (keeper.is_some() || may_run_again);
        let before = is_wanted.then(|| shared_clone(device));
        let completion = profiler.count(index, dispatch, |space_counter| {
            let touched = footprints.as_mut().filter(|_| has_room);
            let followed = Followed { fidelity: &mut *fidelity, threads };
            let instruments = Instruments {
                space_counter,
                footprints: touched,
                violations: &mut *violations,
                followed: Some(followed),
            };
            let (end, matches_single_thread) =
                run_dispatch_profiled(workload, index, dispatch, device, instruments)?;
            let Some(before) = before.as_ref().filter(|_| !matches_single_thread) else {
                return Ok(Some(end));
            };
            threads = NonZeroUsize::MIN;
            device.clone_from(before);
            footprints = Some(Footprints::default());
            fidelity.forget();
            violations.truncate(violations_before);
            Ok(None)
        })?;
        if let (Some(WorkgroupFootprints(all)), Some(footprints)) = (&mut touched, footprints) {
            bytes += footprints.host_bytes();
            if let (Some(keeper_of_run), Some(before)) = (&mut keeper, before)
                && !keeper_of_run
                    .keep(index, DispatchCheckpoint { before, after: shared_clone(device) })
            {
                keeper = None;
            }
            all.insert(index, footprints);
        }
        Ok(completion)
    })?;
    let recorded = touched.map(|touched| {
        // Writes of a dispatch without footprints are not counted, so checkpoints could be wrong.
        let keeper = keeper.filter(|_| bytes < WorkgroupFootprints::MOST_BYTES);
        RecordedRun {
            touched,
            checkpoints: keeper.map(|keeper| keeper.into_checkpoints(golden.clone())),
        }
    });
    let fidelity = workload.device.fidelity(&mut *fidelity);
    Ok(ProfiledRun { golden, profile: profiler.into_profile(), fidelity, recorded })
}

/// Clones a device; the clone shares its memory.
fn shared_clone(device: &mut Simulator) -> Simulator {
    device.share_memory();
    device.clone()
}

/// The fidelity check of a run, and the maximum number of threads that execute the run.
pub(crate) struct Followed<'a> {
    fidelity: &'a mut dyn FidelityCheck,
    threads: NonZeroUsize,
}

/// Measurements of a dispatch.
pub(crate) struct Instruments<'a, 'c> {
    /// Counts executions and sites.
    pub space_counter: Option<&'a mut FaultSpaceCounter<'c>>,
    /// Receives the footprints of the workgroups.
    pub footprints: Option<&'a mut Footprints>,
    /// Receives the out-of-bounds accesses to LDS and private memory, with the index of the dispatch.
    pub violations: &'a mut Vec<(u32, OutsideSegment)>,
    /// Tracks fidelity.
    pub followed: Option<Followed<'a>>,
}

/// Runs a dispatch with instruments. Returns how the dispatch ended and whether the result equals that
/// of a single thread; if not, the caller must run the dispatch again on one thread.
pub(crate) fn run_dispatch_profiled(
    workload: &Workload,
    index: u32,
    dispatch: &Dispatch,
    device: &mut Simulator,
    instruments: Instruments<'_, '_>,
) -> Result<(Completion, bool), DeviceError> {
    let Instruments { mut space_counter, mut footprints, violations, mut followed } = instruments;
    let mut execution = device.begin(dispatch)?;
    let counted = space_counter.as_deref().and_then(FaultSpaceCounter::counted_lanes);
    let mut check = device.begin_survey(&execution, counted)?;
    let (kernel, cancellation) = (&dispatch.kernel, &workload.cancellation);
    if let Some(followed) = &mut followed {
        device.begin_fidelity(kernel, &execution, followed.fidelity);
    }
    let completion = match &mut space_counter {
        Some(space_counter) if counted.is_none() => {
            cancellation.run_to_end(kernel, &mut execution, |execution, until| {
                let fidelity = followed.as_mut().map(|followed| &mut *followed.fidelity);
                let footprints = footprints.as_deref_mut();
                device.advance_surveyed(
                    execution,
                    *space_counter,
                    &mut *check,
                    fidelity,
                    footprints,
                    until,
                )
            })
        }
        space_counter => cancellation.run_to_end(kernel, &mut execution, |execution, until| {
            let progress = match (&mut followed, footprints.as_deref_mut()) {
                (Some(Followed { fidelity, threads }), Some(footprints)) => {
                    let (check, fidelity) = (&mut *check, &mut **fidelity);
                    device.advance_surveyed_divided(
                        execution, check, fidelity, footprints, *threads, until,
                    )
                }
                (followed, footprints) => {
                    let (check, observer) = (&mut *check, &mut Unobserved);
                    let fidelity = followed.as_mut().map(|followed| &mut *followed.fidelity);
                    device.advance_surveyed(execution, observer, check, fidelity, footprints, until)
                }
            };
            if let (Some(space_counter), Some(counts)) =
                (space_counter.as_deref_mut(), check.counts())
            {
                space_counter.add(counts);
            }
            progress
        }),
    }?;
    let matches_single_thread = footprints.is_none_or(|footprints| check.end_division(footprints));
    let outside = device.outside_segments(check);
    violations.extend(outside.into_iter().map(|violation| (index, violation)));
    Ok((completion, matches_single_thread))
}
