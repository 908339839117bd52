//! Execution of dispatches.

use super::barrier;
use super::fidelity::Executions;
use super::gpu::PtxGpu;
use super::running::Running;
use super::survey::PtxCounts;
use crate::execute::{Effect, Reach, Rows};
use crate::wave::Status;
use flipwave_arch::{LaneMask, Pc};
use flipwave_device::{Completion, DeviceError, DeviceFault, FaultCause, WaveId, WaveLocation};
use flipwave_machine::{
    Executed, Execution, Footprints, Interest, Observer, Progress, Watch, WaveState,
};
use flipwave_ptx::Origin;

/// Inserted instructions that a wave executes between two original ones before the dispatch counts as endless.
const MOST_INSERTED: u64 = 1 << 22;

/// The observer and the checks that accompany the execution of a dispatch.
pub(super) struct Company<'a> {
    pub observer: &'a mut dyn Observer,
    pub counts: Option<&'a mut PtxCounts>,
    pub footprints: Option<&'a mut Footprints>,
    pub fidelity: Option<&'a mut Executions>,
    /// `true` to report the bytes that instructions write.
    pub is_recording: bool,
}

/// The wave whose turn it is.
#[derive(Clone, Copy)]
struct Turn {
    wave: WaveId,
    is_watched: bool,
}

impl PtxGpu {
    /// Executes a dispatch until it ends, or until it has executed `until` instructions.
    pub(super) fn run(
        &mut self,
        execution: &mut Execution,
        company: &mut Company<'_>,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let other = || DeviceError::Internal("an execution of another machine".into());
        let running = execution.as_any_mut().downcast_mut::<Running>().ok_or_else(other)?;
        let program = self.modules.get(running.module.0 as usize).cloned().ok_or_else(other)?;
        let mut turn: Option<Turn> = None;
        let mut rows = Rows::default();
        loop {
            if running.statistics.wave_instructions >= until {
                return Ok(Progress::Paused);
            }
            if running.current.is_none() && !running.start_next(&program) {
                if let Some(footprints) = &mut company.footprints {
                    footprints.end_all();
                }
                return Ok(Progress::Ended(Completion::Completed(running.statistics)));
            }
            let Running { current, launch, limit, statistics, inserted, .. } = running;
            let Some(workgroup) = current else { continue };
            let position = workgroup.position;
            let faulted = |cause, pc, wave| {
                let place = WaveLocation { pc, wave };
                let fault = DeviceFault { cause, place, context: None };
                Ok(Progress::Ended(Completion::Faulted(fault)))
            };
            let executed = statistics.wave_instructions;
            let Some(index) = workgroup.wave(&program) else {
                // All waves wait: the barrier is never completed.
                let wave = &workgroup.waves[0];
                return faulted(FaultCause::Watchdog { executed }, Pc(wave.pc()), wave.id);
            };
            let id = workgroup.waves[index].id;
            let pc = Pc(workgroup.waves[index].pc());
            let origin = program.origin(pc.0);
            let is_inserted = matches!(origin, Some(Origin::Before | Origin::After));
            let is_free = program.is_free(origin);
            *inserted = if is_free { *inserted + 1 } else { 0 };
            if executed >= *limit && !is_free || *inserted > MOST_INSERTED {
                return faulted(FaultCause::Watchdog { executed }, pc, id);
            }
            let is_watched = match turn {
                Some(turn) if turn.wave == id => turn.is_watched,
                _ => company.observer.watches(id),
            };
            turn = Some(Turn { wave: id, is_watched });
            let footprint = company.footprints.as_mut().map(|all| all.entry(position, 0));
            let mut reach = Reach {
                wave: &mut workgroup.waves[index],
                memory: &mut self.memory,
                shared: &mut workgroup.shared,
                program: &program,
                launch,
                footprint,
                rows: &mut rows,
                written: Vec::new(),
                is_recording: company.is_recording,
            };
            let number = match reach.fetch() {
                Ok(number) => number,
                Err(cause) => return faulted(cause, pc, id),
            };
            let inst = program.seen(number);
            let is_called = is_watched
                && !is_inserted
                && match company.observer.interest() {
                    Interest::Every => true,
                    Interest::Address(address) => address == inst.pc,
                    Interest::Operation(operation) => operation == inst.operation(),
                };
            if is_called {
                company.observer.before(inst, id, &mut reach);
                if WaveState::pc(&reach) != inst.pc {
                    reach.wave.settle();
                    continue;
                }
            }
            let lanes = reach.executing(program.steps[number].inst.guard);
            let effect = match reach.execute(number) {
                Ok(effect) => effect,
                Err(cause) => return faulted(cause, pc, id),
            };
            if is_called {
                let executed = Executed { inst, wave: id, lanes: LaneMask(lanes.into()) };
                let is_over = company.observer.after(&executed, &mut reach) == Watch::Off;
                turn = Some(Turn { wave: id, is_watched: !is_over });
            }
            if is_called || effect == Effect::Branch {
                // The observer may have moved the wave to an address where paths meet.
                reach.wave.settle();
            }
            // Free instructions do not count, so that the original ones see the same clock.
            reach.wave.executed -= u64::from(is_free);
            if let Effect::Barrier { op, lanes } = effect {
                let arrived = barrier::arrive(&mut reach, &mut workgroup.barriers, op, lanes);
                if let Err(cause) = arrived {
                    return faulted(cause, pc, id);
                }
            }
            if let Some(counts) = company.counts.as_mut().filter(|_| !is_inserted) {
                counts.count(id, inst, lanes);
            }
            if let Some(fidelity) = company.fidelity.as_mut().filter(|_| !is_inserted) {
                fidelity.count(&program, number);
            }
            let has_ended = workgroup.waves[index].status == Status::Ended;
            if !is_free {
                for statistics in [statistics, &mut workgroup.statistics] {
                    statistics.wave_instructions += 1;
                    statistics.lane_operations += u64::from(lanes.count_ones());
                }
                workgroup.count();
            }
            if let Some(footprints) = &mut company.footprints {
                footprints.entry(position, 0).statistics = workgroup.statistics;
            }
            if has_ended && let Some(counts) = &mut company.counts {
                counts.end(id);
            }
            if has_ended || matches!(effect, Effect::Barrier { .. }) {
                barrier::release(&mut workgroup.waves, &mut workgroup.barriers);
            }
            if workgroup.has_ended() {
                running.current = None;
                if let Some(footprints) = &mut company.footprints {
                    footprints.end(position);
                }
            }
        }
    }
}
