//! The resolving run: a second fault-free run that maps drawn indices to fault sites, checks that the
//! workload is deterministic, and records checkpoints that faulty runs start from.
//!
//! If device checkpoints before each dispatch are available, only the dispatches with faults are
//! executed; if the workgroups with faults are independent of other workgroups, only these workgroups.

use crate::checkpoints::{Alone, AloneEnd, Checkpoints, Part, Recorder};
use crate::fault_space::{FaultsOfWaves, Plan, PlanError, Planned, Search};
use crate::golden::checkpoints::{DispatchCheckpoint, DispatchCheckpoints};
use crate::golden::profiling::RecordedRun;
use crate::{Golden, GoldenError, Workload};
use flipwave_device::{Completion, DeviceError, Dim3, Dispatch, Statistics};
use flipwave_machine::{Execution, FaultDetail, Simulator};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Wave instructions that justify starting another thread.
const WORTH_A_THREAD: u64 = 1 << 16;

/// Result of the resolving run.
pub struct ResolvingRun {
    /// The run, which must equal the first golden run.
    pub golden: Golden,
    /// The requested faults, in ascending order of their indices.
    pub faults: Vec<Planned>,
    /// Checkpoints for faults in the workgroups that the plan hits; `None` if not requested or too
    /// large.
    pub checkpoints: Option<Checkpoints>,
}

/// Limits of a resolving run.
#[derive(Clone, Copy, Debug)]
pub struct ResolvingLimits {
    /// Maximum bytes of the recorded checkpoints.
    pub state_bytes: u64,
    /// Maximum number of threads. Neither the sites nor the outcomes depend on it.
    pub threads: NonZeroUsize,
}

impl Plan<'_> {
    /// Runs the workload once more, or the part of it that is needed, and resolves the faults with the
    /// given indices. `statistics` lists what each dispatch executes without a fault. Checkpoints are
    /// recorded if the footprints of the workgroups are known.
    ///
    /// # Errors
    /// As [`Plan::faults`]; [`PlanError::NotTheSame`].
    pub fn resolve(
        &self,
        indices: impl IntoIterator<Item = u64>,
        statistics: &[Statistics],
        recorded: Option<RecordedRun>,
        ResolvingLimits { state_bytes, threads }: ResolvingLimits,
    ) -> Result<ResolvingRun, PlanError> {
        let workload = self.workload();
        let wanted = self.drawn(indices)?;
        let search = self.search(&wanted)?;
        let struck = self.struck_workgroups();
        let (touched, checkpoints) = match recorded {
            Some(RecordedRun { touched, checkpoints }) => (Some(touched), checkpoints),
            None => (None, None),
        };
        let recorder = Recorder::new(workload, statistics, struck, touched, state_bytes);
        let mut run = ResolvingState { workload, search, recorder, threads };
        let struck = run.recorder.dispatches();
        let is_enough = |checkpoints: &DispatchCheckpoints| {
            run.search.dispatches().all(|index| struck.contains(&index))
                && struck.iter().all(|index| checkpoints.dispatches.contains_key(index))
        };
        let golden = match checkpoints.filter(is_enough) {
            Some(checkpoints) => run.between(&struck, checkpoints)?,
            None => run.whole()?,
        };
        let faults = self.complete(wanted, run.search.found)?;
        Ok(ResolvingRun { golden, faults, checkpoints: run.recorder.finish() })
    }
}

/// A resolving run in progress.
struct ResolvingState<'a> {
    workload: &'a Workload,
    search: Search<'a>,
    recorder: Recorder,
    threads: NonZeroUsize,
}

impl ResolvingState<'_> {
    /// Executes the whole workload.
    fn whole(&mut self) -> Result<Golden, PlanError> {
        // Faulty runs start from these checkpoints, so the policy is the device's. Their faults are only
        // counted.
        let mut device = self.workload.start().map_err(GoldenError::from)?;
        device.set_fault_detail(FaultDetail::Cause);
        let golden = self.workload.run_on(device, |index, device, dispatch| {
            let mut execution = self.recorder.begin(index, dispatch, device)?;
            let end = self.execute_whole(index, dispatch, device, &mut execution)?;
            device.share_memory();
            self.recorder.end(device);
            Ok(end)
        })?;
        Ok(golden)
    }

    /// Executes only the given dispatches, or their workgroups with faults, starting from checkpoints.
    fn between(
        &mut self,
        struck: &[u32],
        DispatchCheckpoints { golden, mut dispatches }: DispatchCheckpoints,
    ) -> Result<Golden, PlanError> {
        let workload = self.workload;
        for index in struck {
            let Some(checkpoint) = dispatches.remove(index) else { continue };
            let DispatchCheckpoint { mut before, after } = checkpoint.of_faulty_runs(workload);
            let dispatch = &workload.program.dispatches[*index as usize];
            let begun = self.recorder.begin(*index, dispatch, &mut before);
            let mut execution = begun.map_err(GoldenError::from)?;
            if !self.execute_alone(*index, dispatch, &after)? {
                let end = self.execute_whole(*index, dispatch, &mut before, &mut execution);
                match end.map_err(GoldenError::from)? {
                    Completion::Completed(statistics)
                        if statistics == golden.statistics[*index as usize]
                            && before.is_in_state_of(&after) => {}
                    Completion::Completed(_) => {
                        return Err(PlanError::NotTheSame { dispatch: *index, workgroup: None });
                    }
                    Completion::Faulted(fault) => {
                        let fault = workload.original(dispatch, fault);
                        return Err(workload.failed(*index, fault).into());
                    }
                }
            }
            self.recorder.end(&after);
        }
        Ok(golden)
    }

    /// Executes a whole dispatch that has begun.
    fn execute_whole(
        &mut self,
        index: u32,
        dispatch: &Dispatch,
        device: &mut Simulator,
        execution: &mut Execution,
    ) -> Result<Completion, DeviceError> {
        let ResolvingState { workload, search, recorder, .. } = self;
        search.look(index, dispatch, |observer| {
            workload.cancellation.run_to_end(&dispatch.kernel, execution, |execution, until| {
                recorder.advance(device, execution, until, |device, execution, until| {
                    device.advance(execution, observer, until)
                })
            })
        })
    }

    /// Executes the workgroups with faults of a dispatch that has begun, each alone, on several
    /// threads. Returns `false` without executing anything if one of them depends on others. `after` is
    /// the device after the dispatch.
    fn execute_alone(
        &mut self,
        index: u32,
        dispatch: &Dispatch,
        after: &Simulator,
    ) -> Result<bool, PlanError> {
        let ResolvingState { search, recorder, threads, .. } = self;
        let Some(alone) = recorder.alone() else { return Ok(false) };
        let threads = alone.instructions().div_ceil(WORTH_A_THREAD).min(threads.get() as u64);
        let shares = shares(alone.workgroups(), search.take(index), threads.max(1) as usize);
        let (workload, shares) = (self.workload, Mutex::new(shares));
        let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let execute = || {
            let mut found = Vec::new();
            while let Some(share) = next() {
                let context =
                    ShareContext { workload, index, dispatch, alone: &alone, search, after };
                found.append(&mut execute_share(context, share)?);
            }
            Ok(found)
        };
        let found: Vec<Result<Vec<(u64, Planned)>, PlanError>> = thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, execute).ok();
            // If the system cannot start more threads, the existing ones do all the work.
            let helpers: Vec<_> = (1..threads).map_while(start).collect();
            let found_here = execute();
            let helpers = helpers
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            [found_here].into_iter().chain(helpers).collect()
        });
        for found in found {
            search.found.append(&mut found?);
        }
        Ok(true)
    }
}

/// Workgroups and faults assigned to one thread.
#[derive(Default)]
struct Share {
    workgroups: Vec<Part>,
    faults: FaultsOfWaves,
}

/// Distributes workgroups and their faults over threads.
fn shares(workgroups: &[Part], faults: FaultsOfWaves, threads: usize) -> Vec<Share> {
    let mut shares: Vec<Share> = (0..threads).map(|_| Share::default()).collect();
    let mut share_of: HashMap<Dim3, usize> = HashMap::new();
    for (part, share) in workgroups.iter().zip((0..threads).cycle()) {
        shares[share].workgroups.push(*part);
        share_of.insert(part.position, share);
    }
    for (wave, faults_of_wave) in faults {
        if let Some(share) = share_of.get(&wave.workgroup) {
            shares[*share].faults.insert(wave, faults_of_wave);
        }
    }
    shares
}

/// The dispatch that threads execute shares of.
#[derive(Clone, Copy)]
struct ShareContext<'a> {
    workload: &'a Workload,
    index: u32,
    dispatch: &'a Dispatch,
    alone: &'a Alone<'a>,
    search: &'a Search<'a>,
    /// The device after the dispatch.
    after: &'a Simulator,
}

/// Executes workgroups of a dispatch, each alone, and resolves the faults drawn in them.
fn execute_share(
    ShareContext { workload, index, dispatch, alone, search, after }: ShareContext<'_>,
    Share { workgroups, faults }: Share,
) -> Result<Vec<(u64, Planned)>, PlanError> {
    let mut resolver = search.resolver(index, dispatch, faults);
    let mut device = alone.device();
    let (kernel, cancellation) = (&dispatch.kernel, &workload.cancellation);
    for part in workgroups {
        let end = alone.execute(part, &mut device, after, |device, execution, until| {
            cancellation.run_until(kernel, execution, until, |execution, until| {
                device.advance(execution, &mut resolver, until)
            })
        });
        match end.map_err(GoldenError::from)? {
            AloneEnd::Same => {}
            AloneEnd::Other => {
                let workgroup = Some(part.position);
                return Err(PlanError::NotTheSame { dispatch: index, workgroup });
            }
            AloneEnd::Faulted(fault) => {
                return Err(workload.failed(index, workload.original(dispatch, fault)).into());
            }
        }
    }
    Ok(resolver.finish())
}
