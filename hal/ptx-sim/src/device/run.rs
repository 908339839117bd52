//! Execution of dispatches.

use super::barrier;
use super::fidelity::Executions;
use super::gpu::{Loaded, PtxGpu};
use super::running::{Running, Workgroup};
use super::stretch::PtxStretch;
use super::survey::PtxCounts;
use crate::compile::{Limits, Outcome, Recording, Workspace};
use crate::execute::{Effect, Reach, Rows};
use crate::program::{Inserted, Program};
use crate::strict::StrictCheck;
use crate::wave::{RegisterRange, Registers, Status};
use flipwave_arch::{LaneMask, Pc};
use flipwave_device::{
    AccessKind, Address, Completion, DeviceError, DeviceFault, FaultCause, Statistics, WaveId,
    WaveLocation,
};
use flipwave_jit::Compiling;
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
    pub strict: Option<&'a mut StrictCheck>,
}

/// The wave whose turn it is.
#[derive(Clone, Copy)]
struct Turn {
    wave: WaveId,
    is_watched: bool,
}

/// Compiled code that a wave may execute.
#[derive(Clone, Copy, Default)]
struct Permission {
    /// First instruction of a block that the wave may not execute.
    stop: Option<usize>,
    /// `true` for one block only.
    is_single: bool,
    /// `true` to report the block to the observer.
    is_reported: bool,
}

impl Company<'_> {
    /// Returns `true` if a wave may execute blocks of a program as compiled code. Turns end at the blocks of rewritten
    /// code only if inserted instructions count, and observers see other instructions than its blocks have.
    fn may_run_blocks(&self, program: &Program, is_watched: bool) -> bool {
        program.original.as_ref().is_none_or(|original| {
            let is_seen = is_watched || self.counts.is_some() || self.fidelity.is_some();
            original.inserted == Inserted::Counted && !is_seen
        })
    }

    /// Compiled code that a wave may execute from the first instruction of a block on; `None` if it may not.
    fn permission(
        &mut self,
        program: &Program,
        number: usize,
        wave: WaveId,
        executed: u64,
        is_watched: bool,
    ) -> Option<Permission> {
        let is_single = self.counts.is_some() || self.fidelity.is_some();
        let all = Permission { stop: None, is_single, is_reported: false };
        if !is_watched {
            return Some(all);
        }
        let stretch = PtxStretch::at(program, number)?;
        let contains = |interest: Interest| {
            stretch.steps().iter().any(|step| match interest {
                Interest::Every => true,
                Interest::Address(pc) => step.inst.pc == pc,
                Interest::Operation(operation) => step.inst.operation() == operation,
            })
        };
        let interest = self.observer.interest();
        if !contains(interest) {
            // Other blocks of the region may have the operation.
            let Interest::Address(pc) = interest else {
                return Some(Permission { is_single: true, ..all });
            };
            let number = program.code.number_of(pc);
            let block = number.and_then(|number| program.blocks.around(number));
            return Some(Permission { stop: block.map(|block| block.instructions.start), ..all });
        }
        let stretches = self.observer.of_stretches()?;
        let is_allowed = stretches.allows(wave, executed, &stretch) > 0;
        is_allowed.then_some(Permission { stop: None, is_single: true, is_reported: true })
    }

    /// Reports the block that a wave has executed, or the part before a fault.
    fn report(
        &mut self,
        program: &Program,
        first: usize,
        outcome: &Outcome,
        wave: WaveId,
        permission: Permission,
        lanes: impl Fn(usize) -> u32,
    ) {
        if permission.is_reported
            && let Some(stretch) = PtxStretch::at(program, first)
            && let Some(stretches) = self.observer.of_stretches()
        {
            let mask = |number: usize| LaneMask(lanes(number).into());
            let count = stretch.steps().len();
            if outcome.fault.is_none() {
                stretches.executed(wave, &stretch, 1, [mask(first), mask(first + count - 1)]);
            } else {
                let executed = stretch.steps().iter().take(outcome.executed as usize);
                for (number, step) in (first..).zip(executed) {
                    stretches.executed_one(wave, &step.inst, mask(number));
                }
            }
        }
        if !permission.is_single {
            return;
        }
        for number in first..first + outcome.executed as usize {
            if let Some(counts) = &mut self.counts {
                counts.count(program, wave, number, lanes(number));
            }
            if let Some(fidelity) = &mut self.fidelity {
                fidelity.count(number);
            }
        }
    }
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
        let loaded = self.modules.get(running.module.0 as usize).cloned();
        let Loaded { program, tier } = loaded.ok_or_else(other)?;
        if let Some(fidelity) = &mut company.fidelity {
            fidelity.enter(&program);
        }
        let compiling = self.compiling;
        let mut turn: Option<Turn> = None;
        let mut rows = Rows::default();
        let mut workspace = Workspace::new(&program);
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
            running.pass_turn(&program);
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
            let is_inserted = origin.is_some_and(Origin::is_inserted);
            let is_free = program.is_free(origin);
            *inserted = if is_free { *inserted + 1 } else { 0 };
            if executed >= *limit && !is_free || *inserted > MOST_INSERTED {
                return faulted(FaultCause::Watchdog { executed }, pc, id);
            }
            let is_watched = match turn {
                Some(turn) if turn.wave == id => turn.is_watched,
                _ => {
                    workgroup.waves[index].begin(&program);
                    company.observer.watches(id)
                }
            };
            turn = Some(Turn { wave: id, is_watched });
            let Some(number) = program.code.number_of(pc) else {
                let access = AccessKind::Fetch;
                let address = Address(pc.0);
                return faulted(
                    FaultCause::MemoryViolation { address, access, lane: None },
                    pc,
                    id,
                );
            };
            let before = workgroup.waves[index].executed;
            let is_compiled = compiling != Compiling::Never
                && company.strict.is_none()
                && company.may_run_blocks(&program, is_watched)
                && program.blocks.at(number).is_some();
            let permission = is_compiled
                .then(|| company.permission(&program, number, id, before, is_watched))
                .flatten();
            let memory = match (company.is_recording, &company.footprints) {
                (true, _) => Recording::Writes,
                (false, Some(_)) => Recording::Footprint,
                (false, None) => Recording::Nothing,
            };
            let left = workgroup.left();
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
            if let Some(permission) = permission {
                let limits = Limits {
                    instructions: until.min(*limit) - executed,
                    turn: if permission.is_single { 1 } else { left },
                    stop: permission.stop,
                    memory,
                };
                let active = reach.wave.active();
                let outcome =
                    tier.run(number, &program, compiling, &mut reach, &mut workspace, limits);
                if let Some(outcome) = outcome {
                    let lanes = |number| workspace.lanes(&program, number, active);
                    company.report(&program, number, &outcome, id, permission, lanes);
                    add(statistics, workgroup, &outcome);
                    if let Some(footprints) = &mut company.footprints {
                        footprints.entry(position, 0).statistics = workgroup.statistics;
                    }
                    if let Some((at, cause)) = outcome.fault {
                        return faulted(cause, flipwave_ptx::pc_of(at), id);
                    }
                    continue;
                }
            }
            let inst = program.seen(number);
            let is_interesting = is_watched
                && match company.observer.interest() {
                    Interest::Every => true,
                    Interest::Address(address) => address == inst.pc,
                    Interest::Operation(operation) => operation == inst.operation(),
                };
            // Hooks that replace an emulated instruction run between the calls before and after it.
            let original = program.original.as_ref();
            let begins = original.is_some_and(|original| original.begins_emulated(number));
            let is_inside = original.is_some_and(|original| original.is_inside_emulated(number));
            let is_called = is_interesting && !is_inserted;
            if is_interesting && (begins || !is_inserted && !is_inside) {
                company.observer.before(inst, id, &mut reach);
                if WaveState::pc(&reach) != inst.pc {
                    reach.wave.settle();
                    continue;
                }
            }
            let lanes = reach.executing(program.steps[number].inst.guard);
            if let Some(strict) = &mut company.strict {
                strict.before(&reach, number, lanes);
            }
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
                counts.count(&program, id, number, lanes);
            }
            if let Some(fidelity) = company.fidelity.as_mut().filter(|_| !is_inserted) {
                fidelity.count(number);
            }
            let has_ended = workgroup.waves[index].status == Status::Ended;
            if !is_free {
                let lane_operations = lanes.count_ones().into();
                add(statistics, workgroup, &Outcome { executed: 1, lane_operations, fault: None });
            }
            if let Some(footprints) = &mut company.footprints {
                footprints.entry(position, 0).statistics = workgroup.statistics;
            }
            if has_ended {
                // Nothing reads the registers any more.
                workgroup.waves[index].registers = Registers::new(&RegisterRange::default());
                if let Some(counts) = &mut company.counts {
                    counts.end(id);
                }
            }
            if has_ended || matches!(effect, Effect::Barrier { .. }) {
                barrier::release(&mut workgroup.waves, &mut workgroup.barriers);
            }
            if has_ended && workgroup.has_ended() {
                running.current = None;
                if let Some(footprints) = &mut company.footprints {
                    footprints.end(position);
                }
                if let Some(strict) = &mut company.strict {
                    strict.end(position);
                }
            }
        }
    }
}

/// Counts the instructions that a wave has executed.
fn add(statistics: &mut Statistics, workgroup: &mut Workgroup, outcome: &Outcome) {
    for statistics in [statistics, &mut workgroup.statistics] {
        statistics.wave_instructions += outcome.executed;
        statistics.lane_operations += outcome.lane_operations;
    }
    workgroup.count(outcome.executed);
}
