//! The order in which waves execute. One thread runs a dispatch, always in the same order:
//! workgroups by position, the waves of a workgroup in turns. A workgroup that does not end
//! for long shares the device with the ones after it, so that workgroups may wait for each
//! other as far as hardware would have them under way at once.
//!
//! Where a dispatch stands between two instructions is an [`Execution`]; a [`Scheduler`] carries
//! it on.

use crate::Policy;
use crate::checker::Checker;
use crate::control::Step;
use crate::global_sync::GlobalSync;
use crate::launch::{Launch, RESIDENT_WORKGROUPS};
use crate::memory::Memory;
use crate::observer::{Executed, Observer, Watch};
use crate::program::Program;
use crate::step::step;
use crate::wave::{Status, Wave};
use crate::wave_state::WaveState;
use flipwave_device::{Completion, DeviceFault, FaultCause, Place, Statistics, WaveId};
use std::collections::VecDeque;
use std::sync::Arc;

/// A dispatch under way: the state of all its waves, their LDS, and whose turn it is. Device
/// memory is the device's, so that clones of both, taken together, are the whole state.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The module that the kernel belongs to.
    pub(crate) home: usize,
    pub(crate) launch: Arc<Launch>,
    /// Wave instructions after which the watchdog ends the dispatch.
    limit: u64,
    policy: Policy,
    statistics: Statistics,
    /// Workgroups started so far.
    started: u64,
    /// Workgroups under way, the one whose turn it is first.
    resident: VecDeque<Workgroup>,
    /// Places of workgroups that are free.
    free: Vec<usize>,
    position: Position,
    sync: GlobalSync,
    /// Wave instructions when all resident workgroups last had had their turns.
    last_round: Option<u64>,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// Workgroups that have their turn before the next one is started beside them.
    workgroups: usize,
    /// Rounds that the first workgroup has had in its turn.
    round: u32,
    /// Its wave.
    wave: usize,
    /// Instructions that the wave will have executed when its turn ends, if that has begun.
    until: Option<u64>,
}

/// A workgroup under way.
#[derive(Clone, Debug)]
struct Workgroup {
    slot: usize,
    waves: Vec<Wave>,
    /// Which waves the observer watches.
    watched: Vec<bool>,
    lds: Vec<u8>,
}

impl Execution {
    /// A dispatch none of whose waves has started.
    pub(crate) fn new(home: usize, launch: Launch, policy: Policy, limit: u64) -> Execution {
        Execution {
            home,
            launch: Arc::new(launch),
            limit,
            policy,
            statistics: Statistics::default(),
            started: 0,
            resident: VecDeque::new(),
            free: (0..RESIDENT_WORKGROUPS).rev().collect(),
            position: Position::default(),
            sync: GlobalSync::default(),
            last_round: None,
        }
    }

    /// What has been executed so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }
}

/// How far a dispatch has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It can be carried on.
    Paused,
    /// It has ended.
    Ended(Completion),
}

/// Carries a dispatch on.
pub struct Scheduler<'a, O, C> {
    programs: &'a [Arc<Program>],
    memory: &'a mut dyn Memory,
    observer: &'a mut O,
    checker: &'a mut C,
    /// Wave instructions of the dispatch at which it pauses.
    pause: u64,
    /// Waves of workgroups that have ended, to be used again.
    spare: Vec<Wave>,
}

/// How a workgroup's turn ended.
enum Turn {
    /// The dispatch pauses.
    Paused,
    /// It is the next workgroup's turn.
    Over,
    /// All its waves have ended.
    Ended,
}

impl<'a, O: Observer, C: Checker> Scheduler<'a, O, C> {
    /// A scheduler that pauses when the dispatch has executed `pause` wave instructions in all.
    pub fn new(
        programs: &'a [Arc<Program>],
        memory: &'a mut dyn Memory,
        observer: &'a mut O,
        checker: &'a mut C,
        pause: u64,
    ) -> Scheduler<'a, O, C> {
        Scheduler { programs, memory, observer, checker, pause, spare: Vec::new() }
    }

    /// Carries a dispatch on until it pauses or ends.
    pub fn run(mut self, execution: &mut Execution) -> Progress {
        for workgroup in &mut execution.resident {
            for (wave, watched) in workgroup.waves.iter().zip(&mut workgroup.watched) {
                *watched = self.observer.watches(wave.id);
            }
        }
        loop {
            if execution.position.workgroups == 0 {
                self.start_next(execution);
                execution.position.workgroups = execution.resident.len();
                if let Some(fault) = self.hang(execution) {
                    for workgroup in &execution.resident {
                        self.checker.faults(&fault.cause, &workgroup.waves);
                    }
                    return Progress::Ended(Completion::Faulted(fault));
                }
            }
            let Some(mut workgroup) = execution.resident.pop_front() else {
                return Progress::Ended(Completion::Completed(execution.statistics));
            };
            match self.turn(execution, &mut workgroup) {
                Err(fault) => {
                    self.checker.faults(&fault.cause, &workgroup.waves);
                    return Progress::Ended(Completion::Faulted(fault));
                }
                Ok(Turn::Paused) => {
                    execution.resident.push_front(workgroup);
                    return Progress::Paused;
                }
                Ok(Turn::Over) => execution.resident.push_back(workgroup),
                Ok(Turn::Ended) => {
                    execution.free.push(workgroup.slot);
                    self.spare.append(&mut workgroup.waves);
                }
            }
            let workgroups = execution.position.workgroups - 1;
            execution.position = Position { workgroups, ..Position::default() };
        }
    }

    /// The watchdog's fault if nothing can change any more: in a whole round no wave executed
    /// anything, because all wait for one another or have halted. That much is certain before the
    /// limit is reached.
    fn hang(&self, execution: &mut Execution) -> Option<DeviceFault> {
        let executed = execution.statistics.wave_instructions;
        if execution.last_round.replace(executed) != Some(executed) {
            return None;
        }
        let waves = execution.resident.iter().flat_map(|workgroup| &workgroup.waves);
        let wave = waves.into_iter().find(|wave| wave.status != Status::Ended)?;
        let home = &self.programs[execution.home];
        let program = self.programs.iter().find(|program| program.contains(wave.pc));
        let cause = FaultCause::Watchdog { executed };
        Some(fault_at(program.unwrap_or(home), wave.pc, wave.id, cause))
    }

    /// Starts the next workgroup, if there is one and a place for it.
    fn start_next(&mut self, execution: &mut Execution) {
        if execution.started == execution.launch.workgroup_count() {
            return;
        }
        let Some(slot) = execution.free.pop() else { return };
        let launch = &execution.launch;
        let position = launch.position(execution.started);
        let level = self.programs[execution.home].level();
        let mut workgroup = Workgroup {
            slot,
            waves: Vec::new(),
            watched: Vec::new(),
            lds: vec![0; launch.lds_bytes as usize],
        };
        for index in 0..launch.waves(position) {
            let mut wave = self.spare.pop().unwrap_or_else(|| Wave::new(level));
            launch.start(&mut wave, position, index, slot);
            self.checker.starts(&wave, launch);
            workgroup.watched.push(self.observer.watches(wave.id));
            workgroup.waves.push(wave);
            execution.statistics.waves += 1;
        }
        execution.resident.push_back(workgroup);
        execution.started += 1;
    }

    /// Gives each wave of a workgroup its turns.
    fn turn(
        &mut self,
        execution: &mut Execution,
        workgroup: &mut Workgroup,
    ) -> Result<Turn, DeviceFault> {
        while execution.position.round < execution.policy.workgroup_turn {
            while execution.position.wave < workgroup.waves.len() {
                self.wave_turn(execution, workgroup)?;
                if execution.statistics.wave_instructions >= self.pause {
                    return Ok(Turn::Paused);
                }
                execution.position.wave += 1;
                execution.position.until = None;
            }
            if workgroup.waves.iter().all(|wave| wave.status == Status::Ended) {
                return Ok(Turn::Ended);
            }
            workgroup.pass_barrier(self.checker);
            execution.position.wave = 0;
            execution.position.round += 1;
        }
        Ok(Turn::Over)
    }

    /// Executes what is left of the turn of the wave whose turn it is.
    fn wave_turn(
        &mut self,
        execution: &mut Execution,
        workgroup: &mut Workgroup,
    ) -> Result<(), DeviceFault> {
        let index = execution.position.wave;
        let (wave, watched) = (&mut workgroup.waves[index], &mut workgroup.watched[index]);
        if wave.status == Status::AtGlobalSync && execution.sync.take_released(wave.id) {
            wave.status = Status::Ready;
        }
        if wave.status != Status::Ready {
            return Ok(());
        }
        let turn = wave.executed.saturating_add(execution.policy.wave_turn);
        let until = *execution.position.until.get_or_insert(turn);
        let left =
            self.pause.min(execution.limit).saturating_sub(execution.statistics.wave_instructions);
        let until = until.min(wave.executed.saturating_add(left));
        let lds = &mut workgroup.lds;
        if *watched {
            *watched = self.run_wave::<true>(execution, wave, lds, until)? == Watch::On;
        }
        // A wave that is not watched any more has the rest of its turn, so that watching does not
        // change the order of execution.
        if !*watched && wave.status == Status::Ready {
            self.run_wave::<false>(execution, wave, lds, until)?;
        }
        Ok(())
    }

    /// Executes a wave until it waits, ends, or has executed `until` instructions in all; whether
    /// the observer wants to see more of it.
    #[inline(never)]
    fn run_wave<const WATCHED: bool>(
        &mut self,
        execution: &mut Execution,
        wave: &mut Wave,
        lds: &mut [u8],
        until: u64,
    ) -> Result<Watch, DeviceFault> {
        let programs = self.programs;
        let mut program = &*programs[execution.home];
        let before = wave.executed;
        let mut lane_operations = 0;
        let mut watch = Watch::On;
        let mut fault = None;
        while wave.executed < until {
            let pc = wave.pc;
            let op = match program.fetch(pc) {
                Ok(op) => op,
                Err(cause) => match programs.iter().find(|other| other.contains(pc)) {
                    Some(other) if !program.contains(pc) => {
                        program = other;
                        continue;
                    }
                    _ => {
                        fault = Some((pc, cause));
                        break;
                    }
                },
            };
            self.checker.before(wave, op, self.memory);
            let mut replacement = None;
            if WATCHED {
                let id = wave.id;
                let mut state = WaveState::new(wave, self.memory, lds, program);
                self.observer.before(&op.inst, id, &mut state);
                replacement = state.into_replacement();
                if wave.pc != pc {
                    continue;
                }
                wave.written_lanes = None;
            }
            let op = match &replacement {
                None => op,
                Some(Ok(other)) => other,
                Some(Err(cause)) => {
                    fault = Some((pc, cause.clone()));
                    break;
                }
            };
            let exec = wave.exec();
            wave.pc = pc.wrapping_add(op.size.into());
            wave.executed += 1;
            lane_operations += if op.per_lane { u64::from(wave.active_lanes()) } else { 1 };
            match step(wave, op, self.memory, lds) {
                Step::Next => {}
                Step::Barrier => wave.status = Status::AtBarrier,
                Step::Sync(request) => {
                    if !execution.sync.request(wave.id, request) {
                        wave.status = Status::AtGlobalSync;
                    }
                }
                Step::Halted => wave.status = Status::Halted,
                Step::Ended => wave.status = Status::Ended,
                Step::Fault(cause) => {
                    fault = Some((pc, cause));
                    break;
                }
            }
            if WATCHED {
                let lanes = wave.written_lanes.unwrap_or(exec);
                let event = Executed { inst: &op.inst, wave: wave.id, lanes };
                let mut state = WaveState::new(wave, self.memory, lds, program);
                watch = self.observer.after(&event, &mut state);
                if watch == Watch::Off {
                    break;
                }
            }
            if wave.status != Status::Ready {
                break;
            }
        }
        execution.statistics.wave_instructions += wave.executed - before;
        execution.statistics.lane_operations += lane_operations;
        if let Some((pc, cause)) = fault {
            return Err(fault_at(program, pc, wave.id, cause));
        }
        if execution.statistics.wave_instructions >= execution.limit && wave.status == Status::Ready
        {
            let executed = execution.statistics.wave_instructions;
            return Err(fault_at(program, wave.pc, wave.id, FaultCause::Watchdog { executed }));
        }
        Ok(watch)
    }
}

impl Workgroup {
    /// Lets the waves go on that wait at a barrier, once no other wave can still reach it. Waves
    /// that have ended do not count (ISA manual, "S_BARRIER").
    fn pass_barrier(&mut self, checker: &mut impl Checker) {
        if self.waves.iter().any(|wave| !matches!(wave.status, Status::AtBarrier | Status::Ended)) {
            return;
        }
        checker.passes_barrier(&self.waves);
        for wave in &mut self.waves {
            if wave.status == Status::AtBarrier {
                wave.status = Status::Ready;
            }
        }
    }
}

fn fault_at(program: &Program, pc: u64, wave: WaveId, cause: FaultCause) -> DeviceFault {
    let pc = if program.contains(pc) { program.virtual_address(pc) } else { flipwave_isa::Pc(pc) };
    DeviceFault { cause, place: Place { pc, wave } }
}
