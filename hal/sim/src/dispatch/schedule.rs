//! Wave scheduler. One thread runs a dispatch in a deterministic order: workgroups start in the
//! order of their positions, and the waves of a workgroup take turns. Long-running workgroups share
//! the device with later ones, so that workgroups can wait for each other if hardware would keep
//! them resident at the same time.
//!
//! The first few workgroups start one by one, each after all resident workgroups have had a long
//! turn. Workgroups that do not wait for others therefore run one after the other. If none of the
//! first workgroups has ended by then, they run long or wait for later workgroups: the number of
//! resident workgroups then doubles in each round, and turns become shorter.

use crate::compile::{Outcome, Request, WaveContext, Workspace};
use crate::dispatch::checker::Checker;
use crate::dispatch::execution::{Execution, Position, StallReport};
use crate::dispatch::observer::{Executed, Interest, Observer};
use crate::dispatch::spare::Spare;
use crate::dispatch::stall::{ExplainedStall, Watching, explain};
use crate::dispatch::turns::{CurrentTurn, FEW, rounds_of_turn};
use crate::dispatch::watched::Watched;
use crate::dispatch::wave_state::WaveState;
use crate::dispatch::workgroup::{Common, Workgroup};
use crate::dispatch::workgroup_barrier::WorkgroupBarrier;
use crate::execute::control::Step;
use crate::execute::step::step;
use crate::fault::StoppedWave;
use crate::instruction::control::{Control, SplitBarrier};
use crate::instruction::{Flow, Run};
use crate::memory::{AlignedBytes, Memory, Recording};
use crate::translate::program::Program;
use crate::wave::{Level, Status, Wave};
use flipwave_device::{Completion, DeviceFault, FaultCause, Statistics, WaveId, WaveLocation};
use flipwave_jit::Compiling;
use flipwave_machine::{FaultDetail, Footprints, Progress, Stalls, Watch};
use std::mem;
use std::sync::Arc;

/// Advances a dispatch. Generic over checkers, but not over observers: there are many observers,
/// and the interpreter is long.
pub struct Scheduler<'a, C> {
    programs: &'a [Arc<Program>],
    observer: &'a mut dyn Observer,
    checker: &'a mut C,
    /// Number of wave instructions of the dispatch at which it pauses.
    pause: u64,
    /// Reusable waves of workgroups that have ended, and reusable footprint regions of compiled
    /// code.
    spare: Spare,
    /// Host memory that compiled code uses in addition to the waves.
    workspace: Workspace,
}

/// End of a workgroup's turn.
enum TurnResult {
    /// The dispatch pauses.
    Paused,
    /// The next workgroup has its turn.
    Over,
    /// All waves of the workgroup have ended.
    Ended,
}

impl<'a, C: Checker> Scheduler<'a, C> {
    /// Creates a scheduler that pauses when the dispatch has executed `pause` wave instructions in
    /// all.
    pub fn new(
        programs: &'a [Arc<Program>],
        observer: &'a mut dyn Observer,
        checker: &'a mut C,
        pause: u64,
        spare: Spare,
    ) -> Scheduler<'a, C> {
        Scheduler { programs, observer, checker, pause, spare, workspace: Workspace::default() }
    }

    /// Takes a reusable wave, or creates one.
    fn take_wave(spare: &mut Vec<Wave>, level: Level) -> Wave {
        spare.pop().unwrap_or_else(|| Wave::new(level))
    }

    /// Makes the waves of a workgroup reusable.
    fn put_back(&mut self, mut workgroup: Workgroup) {
        for program in self.programs {
            let used = program.rows_used();
            for wave in &mut workgroup.waves {
                wave.rows_used = [0, 1].map(|file| wave.rows_used[file].max(used[file]));
            }
        }
        self.spare.waves.append(&mut workgroup.waves);
    }

    /// Advances a dispatch until it pauses or ends, and adds to the footprints of its workgroups if
    /// they are given.
    pub fn run(
        &mut self,
        execution: &mut Execution,
        memory: &mut dyn Memory,
        mut footprints: Option<&mut Footprints>,
    ) -> Progress {
        let progress = self.advance(execution, memory, footprints.as_deref_mut());
        if matches!(progress, Progress::Ended(_)) {
            if let Some(footprints) = footprints {
                footprints.end_all();
            }
            mem::take(&mut execution.resident)
                .into_iter()
                .for_each(|workgroup| self.put_back(workgroup));
        }
        progress
    }

    /// Returns the reusable memory.
    pub fn into_spare(self) -> Spare {
        self.spare
    }

    fn advance(
        &mut self,
        execution: &mut Execution,
        memory: &mut dyn Memory,
        mut footprints: Option<&mut Footprints>,
    ) -> Progress {
        for state in mem::take(&mut execution.compacted) {
            let level = self.programs[execution.home].level();
            let spare = &mut self.spare.waves;
            let workgroup = state.restore(|| Scheduler::<C>::take_wave(spare, level));
            execution.resident.push_back(workgroup);
        }
        for workgroup in &mut execution.resident {
            for (wave, watched) in workgroup.waves.iter().zip(&mut workgroup.watched) {
                *watched = self.observer.watches(wave.id);
            }
        }
        loop {
            if execution.position.workgroups == 0
                && let Some(fault) = self.next_round(execution)
            {
                for workgroup in &execution.resident {
                    self.checker.faults(&fault.cause, &workgroup.waves);
                }
                return Progress::Ended(Completion::Faulted(fault));
            }
            let Some(mut workgroup) = execution.resident.pop_front() else {
                return Progress::Ended(Completion::Completed(execution.statistics));
            };
            let turn = match &mut footprints {
                None => self.turn(execution, &mut workgroup, memory),
                Some(footprints) => {
                    self.recorded_turn(execution, &mut workgroup, memory, footprints)
                }
            };
            match turn {
                Err(fault) => {
                    self.checker.faults(&fault.cause, &workgroup.waves);
                    self.put_back(workgroup);
                    return Progress::Ended(Completion::Faulted(fault));
                }
                Ok(TurnResult::Paused) => {
                    execution.resident.push_front(workgroup);
                    return Progress::Paused;
                }
                Ok(TurnResult::Over) => {
                    execution.search.examine_workgroup(&workgroup);
                    execution.resident.push_back(workgroup);
                }
                Ok(TurnResult::Ended) => {
                    execution.search.give_up();
                    execution.ended += 1;
                    execution.free.give_back(workgroup.slot);
                    if let Some(footprints) = &mut footprints {
                        footprints.end(workgroup.position);
                    }
                    self.put_back(workgroup);
                }
            }
            let workgroups = execution.position.workgroups - 1;
            execution.position = Position { workgroups, ..Position::default() };
        }
    }

    /// Begins a round: starts workgroups, unless it is certain that no wave can progress.
    fn next_round(&mut self, execution: &mut Execution) -> Option<DeviceFault> {
        let count = match execution.resident.len() {
            resident if resident < FEW => 1,
            resident if execution.ended == 0 => resident,
            _ => execution.ended,
        };
        let started = (0..count).take_while(|_| self.start_next(execution)).count();
        let has_moved = started + mem::take(&mut execution.ended) > 0;
        execution.position.workgroups = execution.resident.len();
        if execution.search.is_still(execution.statistics.wave_instructions) {
            let ExplainedStall { fault, stopped } = explain(execution, self.programs)?;
            execution.stopped = stopped;
            return Some(fault);
        }
        let stalls = execution.policy.stalls;
        if execution.search.all_wait()
            && !has_moved
            && let Some(ExplainedStall { fault, stopped }) = explain(execution, self.programs)
        {
            execution.stopped = stopped;
            if stalls == Stalls::End {
                return Some(fault);
            }
            let pages = execution.search.take_pages();
            execution.stall = Some(StallReport { fault, pages });
        }
        execution.search.begin_round(has_moved, stalls);
        None
    }

    /// Starts the next workgroup. Returns `false` if there is none, or no slot for it.
    fn start_next(&mut self, execution: &mut Execution) -> bool {
        if execution.waiting.is_empty() {
            return false;
        }
        let Some(slot) = execution.free.take() else { return false };
        let Some(index) = execution.waiting.next() else { return false };
        let launch = &execution.launch;
        let position = launch.position(index);
        let level = self.programs[execution.home].level();
        let count = launch.waves(position);
        let left = self.spare.waves.len().saturating_sub(count as usize);
        // With capacity for these alone: a list that is split off may take over the capacity of the
        // original.
        let mut waves = Vec::with_capacity(count as usize);
        waves.extend(self.spare.waves.drain(left..));
        waves.resize_with(count as usize, || Wave::new(level));
        let mut watched = Vec::with_capacity(waves.len());
        for (index, wave) in (0..count).zip(&mut waves) {
            launch.start(wave, position, index, slot);
            self.checker.starts(wave, launch);
            watched.push(self.observer.watches(wave.id));
        }
        execution.statistics.waves += u64::from(count);
        let mut workgroup = Workgroup {
            position,
            slot,
            waves,
            watched,
            short_turns: 0,
            round_from: 0,
            lds: AlignedBytes::new(launch.lds_bytes as usize),
            barrier: WorkgroupBarrier::new(count),
            statistics: Statistics { waves: count.into(), ..Statistics::default() },
        };
        workgroup.begin_together();
        execution.resident.push_back(workgroup);
        true
    }

    /// Executes a turn as [`Scheduler::turn`] does, and records the workgroup's footprint.
    fn recorded_turn(
        &mut self,
        execution: &mut Execution,
        workgroup: &mut Workgroup,
        memory: &mut dyn Memory,
        footprints: &mut Footprints,
    ) -> Result<TurnResult, DeviceFault> {
        let footprint = footprints.entry(workgroup.position, workgroup.slot);
        let launch = &execution.launch;
        let private = [launch.private_memory(workgroup.slot), launch.all_private_memory()];
        self.workspace.forget_private();
        let mut touched = mem::take(&mut self.spare.touched);
        let mut recording = Recording::new(memory, footprint, &mut touched, private);
        let turn = self.turn(execution, workgroup, &mut recording);
        drop(recording);
        self.spare.touched = touched;
        footprint.statistics = workgroup.statistics;
        footprint.uses_global_sync = execution.sync.is_used_by(workgroup.position);
        turn
    }

    /// Executes a workgroup's turn: rounds of turns of its waves.
    fn turn(
        &mut self,
        execution: &mut Execution,
        workgroup: &mut Workgroup,
        memory: &mut dyn Memory,
    ) -> Result<TurnResult, DeviceFault> {
        let rounds = rounds_of_turn(execution.policy.workgroup_turn, execution.resident.len() + 1);
        while execution.position.round < rounds {
            while execution.position.wave < workgroup.waves.len() {
                self.wave_turn(execution, workgroup, memory)?;
                if execution.statistics.wave_instructions >= self.pause {
                    return Ok(TurnResult::Paused);
                }
                execution.position.wave += 1;
                execution.position.end = None;
            }
            if workgroup.waves.iter().all(|wave| wave.status == Status::Ended) {
                return Ok(TurnResult::Ended);
            }
            let passes = workgroup.pass_barrier(self.checker) | workgroup.pass_split_barrier();
            execution.position.wave = 0;
            let is_short = mem::take(&mut execution.position.is_short);
            if passes {
                workgroup.begin_together();
                execution.position.round += 1;
            } else if execution.policy.short_turn(workgroup.short_turns).is_some() {
                workgroup.short_turns += 1;
            } else if !is_short || workgroup.has_whole_round(execution.policy.wave_turn) {
                execution.position.round += 1;
            }
        }
        Ok(TurnResult::Over)
    }

    /// Executes the rest of the current wave's turn.
    fn wave_turn(
        &mut self,
        execution: &mut Execution,
        workgroup: &mut Workgroup,
        memory: &mut dyn Memory,
    ) -> Result<(), DeviceFault> {
        let index = execution.position.wave;
        let slowest = workgroup.slowest_beside(index);
        let Workgroup { waves, watched, short_turns, lds, barrier, statistics, .. } = workgroup;
        let mut common = Common { lds, barrier, statistics };
        let (wave, watched) = (&mut waves[index], &mut watched[index]);
        if wave.status == Status::AtGlobalSync && execution.sync.take_released(wave.id) {
            wave.status = Status::Ready;
            wave.set_progress(slowest.unwrap_or(0));
        }
        if wave.status != Status::Ready {
            return Ok(());
        }
        let mut end = match execution.position.end {
            Some(end) => end,
            None => {
                let end = execution.policy.turn_end(wave.executed, *short_turns);
                match slowest {
                    None => end,
                    Some(slowest) => {
                        let code = &self.programs[execution.home];
                        end.limited_by_slowest(code, wave, slowest, execution.policy.leads)
                    }
                }
            }
        };
        let left =
            self.pause.min(execution.limit).saturating_sub(execution.statistics.wave_instructions);
        let until = wave.executed.saturating_add(left);
        let is_over = end.is_over;
        let turn = CurrentTurn { until, end: &mut end };
        if *watched {
            execution.search.give_up();
            let watch = self.run_wave::<true>(execution, &mut common, wave, memory, turn)?;
            *watched = watch == Watch::On;
        } else if !is_over && execution.search.wants_wave(wave.id) {
            self.look_for_loop(execution, &mut common, wave, memory, turn)?;
        }
        // A wave whose observation has ended finishes its turn, so that observers do not change the
        // order of execution.
        if !*watched && wave.status == Status::Ready {
            let turn = CurrentTurn { until, end: &mut end };
            self.run_wave::<false>(execution, &mut common, wave, memory, turn)?;
        }
        execution.position.is_short |= end.is_over && wave.executed < end.leave_from;
        execution.position.end = Some(end);
        Ok(())
    }

    /// Executes a wave as [`Scheduler::run_wave`] does, until it is known whether it spins in a
    /// loop.
    #[cold]
    #[inline(never)]
    fn look_for_loop(
        &mut self,
        execution: &mut Execution,
        common: &mut Common<'_>,
        wave: &mut Wave,
        memory: &mut dyn Memory,
        turn: CurrentTurn<'_>,
    ) -> Result<(), DeviceFault> {
        let mut pages = execution.search.take_pages();
        let mut attempt = execution.search.attempt(wave, common.lds);
        let mut memory = Watching::new(memory, &mut pages);
        let mut scheduler = Scheduler {
            programs: self.programs,
            observer: &mut *attempt.finder,
            checker: &mut *self.checker,
            pause: self.pause,
            spare: Spare::default(),
            workspace: Workspace::default(),
        };
        scheduler.run_wave::<true>(execution, common, wave, &mut memory, turn)?;
        execution.search.record(wave, attempt, pages);
        Ok(())
    }

    /// Executes a wave until it waits, ends, its turn is over, or it has executed `until`
    /// instructions in all. Returns whether the observer continues to observe it. Adds to the
    /// statistics of the dispatch and of the workgroup.
    #[inline(never)]
    fn run_wave<const WATCHED: bool>(
        &mut self,
        execution: &mut Execution,
        common: &mut Common<'_>,
        wave: &mut Wave,
        memory: &mut dyn Memory,
        turn: CurrentTurn<'_>,
    ) -> Result<Watch, DeviceFault> {
        let CurrentTurn { until, end } = turn;
        let Common { lds, barrier, statistics } = common;
        let lds = &mut **lds;
        let programs = self.programs;
        let mut whole = &*programs[execution.home];
        let mut program = whole.of_banks(wave.banks());
        let before = wave.executed;
        let interest = WATCHED.then(|| self.observer.interest());
        let mut outcome = Outcome::default();
        let mut watch = Watch::On;
        // Declared outside the loop, so that it is dropped only if there is a replacement.
        let mut replacement = None;
        let compiling = execution.policy.compiling;
        let footprint = memory.notes_windows();
        let is_compiled = C::ALLOWS_COMPILED
            && compiling != Compiling::Never
            && (!WATCHED || self.observer.of_stretches().is_some());
        let mut tier = if is_compiled { program.tier() } else { None };
        // Compiled blocks begin at branch targets, and after instructions that end blocks.
        let mut has_arrived = true;
        while wave.executed < until && !end.is_over {
            let pc = wave.pc;
            if C::ALLOWS_COMPILED
                && has_arrived
                && let Some(tier) = tier
            {
                has_arrived = false;
                let before = wave.executed;
                let request = Request { code: program, compiling, footprint };
                let context =
                    WaveContext { wave: &mut *wave, memory: &mut *memory, lds: &mut *lds };
                let turn = CurrentTurn { until, end: &mut *end };
                let (workspace, checker) = (&mut self.workspace, &mut *self.checker);
                if !WATCHED {
                    tier.run(request, context, workspace, checker, turn, &mut outcome);
                } else if let Some(stretches) = self.observer.of_stretches() {
                    let checker = &mut Watched { checker, stretches };
                    tier.run(request, context, workspace, checker, turn, &mut outcome);
                }
                if outcome.fault.is_some() || wave.status != Status::Ready || end.is_over {
                    break;
                }
                if wave.executed != before {
                    continue;
                }
            }
            let op = match program.fetch(pc) {
                Ok(op) => op,
                Err(cause) => match programs.iter().find(|program| program.contains(pc)) {
                    Some(found) if !program.contains(pc) => {
                        whole = found;
                        program = whole.of_banks(wave.banks());
                        tier = tier.and_then(|_| program.tier());
                        has_arrived = true;
                        continue;
                    }
                    _ => {
                        outcome.fault = Some((pc, cause));
                        break;
                    }
                },
            };
            if op.begins_run {
                end.begin_run(op.held, wave.executed);
                if end.is_over {
                    break;
                }
            }
            self.checker.before(wave, op, memory);
            let is_called = match interest {
                None => false,
                Some(Interest::Every) => true,
                Some(Interest::Address(address)) => program.virtual_address(pc) == address,
                Some(Interest::Operation(operation)) => op.inst.operation == operation,
            };
            if is_called {
                let id = wave.id;
                let state = WaveState::new(wave, memory, lds, program);
                self.observer.before(&op.inst, id, &mut state.replaceable(&mut replacement));
                program = whole.of_banks(wave.banks());
                if wave.pc != pc {
                    replacement = None;
                    continue;
                }
                wave.written_lanes = None;
            }
            let op = match &replacement {
                None => op,
                Some(Ok(op)) => op,
                Some(Err(cause)) => {
                    outcome.fault = Some((pc, cause.clone()));
                    break;
                }
            };
            let exec = wave.exec();
            if C::SEES_RESULTS {
                wave.written_lanes = None;
            }
            wave.pc = pc.wrapping_add(op.size.into());
            wave.executed += 1;
            outcome.lane_operations += if op.per_lane { u64::from(wave.active_lanes()) } else { 1 };
            match step(wave, op, memory, lds) {
                Step::Next => {
                    if op.flow != Flow::Inside {
                        has_arrived = true;
                        match op.run {
                            Run::Control(Control::Branch(_)) => end.branch(wave.executed),
                            _ => end.leave(wave.executed),
                        }
                        if op.flow == Flow::Parts {
                            end.arrive(program, wave);
                        }
                    }
                }
                Step::Banks => {
                    program = whole.of_banks(wave.banks());
                    tier = tier.and_then(|_| program.tier());
                    has_arrived = true;
                }
                Step::Barrier => wave.wait(Status::AtBarrier, pc),
                Step::SplitBarrier(request) => {
                    has_arrived = true;
                    if !barrier.request(wave, request) {
                        wave.wait(Status::AtSplitBarrier, pc);
                    } else if request.operation == SplitBarrier::Wait {
                        // Waves that it has waited for, or that wait for it, continue with it.
                        end.is_over = true;
                    }
                }
                Step::Sync(request) => {
                    has_arrived = true;
                    if !execution.sync.request(wave.id, request) {
                        wave.wait(Status::AtGlobalSync, pc);
                    }
                }
                Step::Halted => wave.wait(Status::Halted, pc),
                Step::Ended => {
                    wave.status = Status::Ended;
                    barrier.leave();
                }
                Step::Fault(cause) => {
                    outcome.fault = Some((pc, cause));
                    break;
                }
            }
            let lanes = wave.written_lanes.unwrap_or(exec);
            if C::SEES_RESULTS {
                self.checker.after(wave, op, lanes);
            }
            if is_called {
                let event = Executed { inst: &op.inst, wave: wave.id, lanes };
                let mut state = WaveState::new(wave, memory, lds, program);
                watch = self.observer.after(&event, &mut state);
                program = whole.of_banks(wave.banks());
                if replacement.is_some() {
                    replacement = None;
                }
                if watch == Watch::Off {
                    break;
                }
            }
            if wave.status != Status::Ready {
                break;
            }
        }
        for statistics in [&mut execution.statistics, &mut **statistics] {
            statistics.wave_instructions += wave.executed - before;
            statistics.lane_operations += outcome.lane_operations;
        }
        let is_over = || {
            let executed = execution.statistics.wave_instructions;
            let is_over = executed >= execution.limit && wave.status == Status::Ready;
            is_over.then_some((wave.pc, FaultCause::Watchdog { executed }))
        };
        let Some((pc, cause)) = outcome.fault.or_else(is_over) else { return Ok(watch) };
        if execution.policy.fault_detail == FaultDetail::Context {
            let replacement = replacement.and_then(Result::ok);
            execution.stopped = Some(StoppedWave::new(wave, lds, pc, replacement));
        }
        Err(fault_at(program, pc, wave.id, cause))
    }
}

#[cold]
fn fault_at(program: &Program, pc: u64, wave: WaveId, cause: FaultCause) -> DeviceFault {
    let pc = if program.contains(pc) { program.virtual_address(pc) } else { flipwave_isa::Pc(pc) };
    DeviceFault::new(cause, WaveLocation { pc, wave })
}
