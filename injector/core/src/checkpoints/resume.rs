//! Faulty runs that start from checkpoints.

use super::record::changed;
use super::{Checkpoint, CheckpointedDispatch, Checkpoints, Time};
use crate::fault_space::workgroups;
use crate::inject::fault_observer::FaultObserver;
use crate::inject::injection::{Ending, Injection, InjectionError};
use crate::inject::run::{conclude, inject, run_from};
use crate::site::Event;
use crate::workload::program::Program;
use crate::{Golden, Site, Workload};
use flipwave_device::{Address, Completion, DeviceError, Dispatch, Statistics};
use flipwave_machine::{ByteSet, Execution, Footprints, Progress, Simulator};
use std::ops::ControlFlow;

/// A fault and the run it is injected into.
pub(crate) struct Attempt<'a> {
    pub workload: &'a Workload,
    pub golden: &'a Golden,
    /// Watchdog limits of the dispatches, in wave instructions.
    pub limits: &'a [u64],
    pub site: &'a Site,
    /// The site's event.
    pub event: &'a Event,
    /// Instructions that the wave has executed before the site's instruction, if known.
    pub time: Option<u64>,
    /// `true` to end the run once it is in the golden run's state again.
    pub converges: bool,
}

/// The end of a struck workgroup that was executed alone.
struct Alone {
    completion: Completion,
    device: Simulator,
    footprints: Footprints,
}

impl Checkpoints {
    /// Runs a workload with a fault, like [`inject`], from the nearest checkpoint before the fault;
    /// from the start if the dispatch has no checkpoints.
    ///
    /// # Errors
    /// As [`inject`].
    pub(crate) fn inject(&self, attempt: &Attempt<'_>) -> Result<Injection, InjectionError> {
        let Some(saved) = self.dispatches.get(&attempt.event.dispatch) else {
            return inject(attempt.workload, attempt.site, attempt.limits);
        };
        if let Some(injection) = saved.inject_alone(self, attempt)? {
            return Ok(injection);
        }
        let (state, is_under_way) = saved.latest(attempt);
        let mut observer = attempt.observer(is_under_way);
        let mut device = state.device.clone();
        let mut execution = state.execution.clone();
        execution.set_limit(attempt.limit());
        let later = saved
            .checkpoints
            .whole
            .iter()
            .filter(|checkpoint| checkpoint.executed() > state.executed());
        let ending = match attempt.complete_unless_converged(
            &mut device,
            &mut execution,
            &mut observer,
            later,
        )? {
            Some(completion) => self.finish(attempt, completion, device)?,
            None => attempt.golden.ending(),
        };
        conclude(attempt.site, observer.outcome(), ending)
    }

    /// Completes a run whose struck dispatch has ended on `device`.
    fn finish(
        &self,
        attempt: &Attempt<'_>,
        completion: Completion,
        device: Simulator,
    ) -> Result<Ending, DeviceError> {
        let Attempt { workload, golden, limits, .. } = attempt;
        let before = golden.statistics[..attempt.index()].to_vec();
        let mut struck_completion = Some(completion);
        let mut has_converged = false;
        let run = |index: u32, device: &mut Simulator, dispatch: &Dispatch| {
            if has_converged {
                let statistics = golden.statistics[index as usize];
                return Ok::<_, DeviceError>(Completion::Completed(statistics));
            }
            let completion = match struck_completion.take() {
                Some(completion) => completion,
                None => workload.dispatch(device, dispatch)?,
            };
            has_converged = attempt.converges
                && matches!(completion, Completion::Completed(_))
                && self
                    .dispatches
                    .get(&index)
                    .is_some_and(|saved| device.is_in_state_of(&saved.ended));
            Ok(completion)
        };
        Ok(match run_from(workload, limits, attempt.index(), device, before, run)? {
            ControlFlow::Continue((_, statistics)) if has_converged => {
                Ending::Completed { outputs: golden.outputs.clone(), statistics }
            }
            ControlFlow::Continue((device, statistics)) => {
                let outputs = workload.outputs_beside(&device, golden, self.after(workload))?;
                Ending::Completed { outputs, statistics }
            }
            ControlFlow::Break(ending) => ending,
        })
    }

    /// The device after the golden run, if the last dispatch has faults and the host changes no memory
    /// after it.
    fn after(&self, workload: &Workload) -> Option<&Simulator> {
        let Program { dispatches, changes, .. } = &workload.program;
        let last = self.dispatches.get(&u32::try_from(dispatches.len()).ok()?.checked_sub(1)?)?;
        changes.before(dispatches.len()).is_empty().then_some(&last.ended)
    }
}

impl CheckpointedDispatch {
    /// Executes only the struck workgroup, if it is independent of the others both without and with the
    /// fault.
    fn inject_alone(
        &self,
        checkpoints: &Checkpoints,
        attempt: &Attempt<'_>,
    ) -> Result<Option<Injection>, InjectionError> {
        let position = attempt.event.workgroup;
        let Some(footprint) = self.footprints.get(position) else { return Ok(None) };
        if self.dependent.contains(&position) {
            return Ok(None);
        }
        let by_other_workgroups =
            self.statistics.wave_instructions - footprint.statistics.wave_instructions;
        let Some(limit) = attempt.limit().checked_sub(by_other_workgroups) else { return Ok(None) };
        let (observer, alone) = match self.run_alone(attempt, footprint.slot, limit)? {
            Some(run) => run,
            None => return Ok(None),
        };
        let Some(faulty) = alone.footprints.get(position) else { return Ok(None) };
        if self.union.meets(footprint, faulty) {
            return Ok(None);
        }
        let statistics = match alone.completion {
            Completion::Completed(statistics) => statistics,
            Completion::Faulted(fault) => {
                let dispatch = &attempt.workload.program.dispatches[attempt.index()];
                let mut fault = attempt.workload.original(dispatch, fault);
                // The watchdog counts the instructions of all workgroups.
                if let Some(executed) = fault.cause.executed_mut() {
                    *executed += by_other_workgroups;
                }
                let ending = Ending::Faulted { dispatch: attempt.event.dispatch, fault };
                return conclude(attempt.site, observer.outcome(), ending).map(Some);
            }
        };
        let statistics = Statistics {
            wave_instructions: by_other_workgroups + statistics.wave_instructions,
            lane_operations: self.statistics.lane_operations - footprint.statistics.lane_operations
                + statistics.lane_operations,
            waves: self.statistics.waves,
        };
        let touched: ByteSet = [&footprint.written, &faulty.written].into_iter().collect();
        let ending =
            self.go_on(checkpoints, attempt, statistics, &alone.device, &touched.runs())?;
        ending.map(|ending| conclude(attempt.site, observer.outcome(), ending)).transpose()
    }

    /// Completes a run in which the struck workgroup has written the ranges `touched` on `device`, and
    /// all other workgroups behave as in the golden run. Returns `None` if the workgroup has written to
    /// memory that only existed during the launch.
    fn go_on(
        &self,
        checkpoints: &Checkpoints,
        attempt: &Attempt<'_>,
        statistics: Statistics,
        device: &Simulator,
        touched: &[(Address, u64)],
    ) -> Result<Option<Ending>, DeviceError> {
        let Ok(changed) = changed(&self.ended, device, touched.iter().copied()) else {
            return Ok(None);
        };
        if changed.is_empty() {
            let Golden { outputs, statistics: mut all } = attempt.golden.clone();
            all[attempt.index()] = statistics;
            return Ok(Some(Ending::Completed { outputs, statistics: all }));
        }
        let mut resumed = self.ended.clone();
        for (start, bytes) in &changed {
            resumed.write_pages(*start, bytes)?;
        }
        checkpoints.finish(attempt, Completion::Completed(statistics), resumed).map(Some)
    }

    /// The latest checkpoint before the fault, and whether the struck wave may already be running in
    /// it.
    fn latest(&self, attempt: &Attempt<'_>) -> (&Checkpoint, bool) {
        let slot =
            self.footprints.get(attempt.event.workgroup).map_or(0, |footprint| footprint.slot);
        let is_before = |state: &&Checkpoint| {
            let time = Time::of(attempt.event, attempt.time);
            let has_not_ended = state.execution.alone(attempt.event.workgroup, slot).is_some();
            time.is_some_and(|time| has_not_ended && time.is_ahead_of(&state.execution))
        };
        match self.checkpoints.whole.iter().rev().find(is_before) {
            Some(state) => (state, true),
            None => (&self.begun, false),
        }
    }

    /// Executes the struck workgroup alone, from its latest checkpoint before the fault.
    fn run_alone<'a>(
        &self,
        attempt: &Attempt<'a>,
        slot: usize,
        limit: u64,
    ) -> Result<Option<(FaultObserver<'a>, Alone)>, DeviceError> {
        let position = attempt.event.workgroup;
        let time = Time::of(attempt.event, attempt.time);
        let checkpoints = self.checkpoints.workgroups.get(&position).map_or(&[][..], Vec::as_slice);
        let is_before =
            |execution: &Execution| time.is_some_and(|time| time.is_ahead_of(execution));
        let state = checkpoints.iter().rev().find(|state| is_before(&state.execution));
        let mut device = self.begun.device.clone();
        let mut execution = match state {
            Some(state) => {
                for (start, bytes) in &state.memory {
                    device.write_pages(*start, bytes)?;
                }
                state.execution.clone()
            }
            None => match self.begun.execution.alone(position, slot) {
                Some(execution) => execution,
                None => return Ok(None),
            },
        };
        execution.set_limit(limit);
        let mut observer = attempt.observer(state.is_some());
        let mut footprints = Footprints::default();
        let completion =
            attempt.complete(&mut device, &mut execution, &mut observer, Some(&mut footprints))?;
        Ok(Some((observer, Alone { completion, device, footprints })))
    }
}

impl<'a> Attempt<'a> {
    fn index(&self) -> usize {
        self.event.dispatch as usize
    }

    fn limit(&self) -> u64 {
        self.limits[self.index()]
    }

    /// Creates the observer that injects the fault; it identifies the execution by its time if the wave
    /// may already be running.
    fn observer(&self, is_under_way: bool) -> FaultObserver<'a> {
        let observer = FaultObserver::new(self.site, self.workload.cells(), self.workload.simds());
        let mut observer = match self.time.filter(|_| is_under_way) {
            Some(time) => observer.at_time(time),
            None => observer,
        };
        observer.begin(workgroups(&self.workload.program.dispatches[self.index()]));
        observer
    }

    /// Runs the struck dispatch to its end and adds the footprints of its workgroups to `footprints`,
    /// if given.
    fn complete(
        &self,
        device: &mut Simulator,
        execution: &mut Execution,
        observer: &mut FaultObserver<'_>,
        footprints: Option<&mut Footprints>,
    ) -> Result<Completion, DeviceError> {
        let Workload { program, cancellation, .. } = self.workload;
        let kernel = &program.dispatches[self.index()].kernel;
        cancellation.finish(kernel, device, execution, observer, footprints)
    }

    /// Runs the struck dispatch to its end. Returns `None` if the run reaches the state of one of the
    /// golden run's later checkpoints, because the remaining run is then known.
    fn complete_unless_converged<'s>(
        &self,
        device: &mut Simulator,
        execution: &mut Execution,
        observer: &mut FaultObserver<'_>,
        checkpoints: impl Iterator<Item = &'s Checkpoint>,
    ) -> Result<Option<Completion>, DeviceError> {
        let dispatch = &self.workload.program.dispatches[self.index()];
        // In rewritten code, an instruction stands for several original ones, and a wave may be inside
        // such a sequence; and a repeated fault never stops striking.
        let is_rewritten = self.workload.device.is_rewritten(dispatch.module);
        let checkpoints =
            checkpoints.filter(|_| self.converges && !is_rewritten && self.event.is_single());
        for state in checkpoints {
            let (kernel, end) = (&dispatch.kernel, state.executed());
            let cancellation = &self.workload.cancellation;
            let progress = cancellation.run_until(kernel, execution, end, |execution, until| {
                device.advance(execution, observer, until)
            })?;
            if let Progress::Ended(completion) = progress {
                return Ok(Some(completion));
            }
            let has_struck = matches!(observer.so_far(), Some(Ok(_)));
            if has_struck && state.is_state_of(device, execution) {
                return Ok(None);
            }
        }
        self.complete(device, execution, observer, None).map(Some)
    }
}
