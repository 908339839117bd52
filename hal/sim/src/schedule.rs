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
use crate::footprint::Footprints;
use crate::global_sync::GlobalSync;
use crate::launch::{Launch, RESIDENT_WORKGROUPS};
use crate::memory::{AddressSpace, Memory};
use crate::observer::{Executed, Observer, Watch};
use crate::program::Program;
use crate::recording::Recording;
use crate::step::step;
use crate::vector::Level;
use crate::wave::{Status, Wave};
use crate::wave_state::WaveState;
use crate::workgroup::{Workgroup, WorkgroupCopy};
use flipwave_device::{
    Completion, DeviceError, DeviceFault, Dim3, FaultCause, Place, Statistics, WaveId,
};
use std::collections::VecDeque;
use std::ops::Range;
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
    /// Workgroups that are left to start, by their order in the grid.
    waiting: Range<u64>,
    /// Workgroups under way, the one whose turn it is first.
    resident: VecDeque<Workgroup>,
    /// The only workgroup under way, until the execution is carried on.
    put_away: Option<WorkgroupCopy>,
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

impl Execution {
    /// A dispatch none of whose waves has started.
    pub(crate) fn new(home: usize, launch: Launch, policy: Policy, limit: u64) -> Execution {
        Execution {
            home,
            waiting: 0..launch.workgroup_count(),
            launch: Arc::new(launch),
            limit,
            policy,
            statistics: Statistics::default(),
            resident: VecDeque::new(),
            put_away: None,
            free: (0..RESIDENT_WORKGROUPS).rev().collect(),
            position: Position::default(),
            sync: GlobalSync::default(),
            last_round: None,
        }
    }

    /// The same dispatch with these workgroups to start, in these places, and none under way.
    fn part(&self, waiting: Range<u64>, free: Vec<usize>) -> Execution {
        Execution {
            home: self.home,
            waiting,
            launch: Arc::clone(&self.launch),
            limit: self.limit,
            policy: self.policy,
            statistics: Statistics::default(),
            resident: VecDeque::new(),
            put_away: None,
            free,
            position: Position::default(),
            sync: self.sync.clone(),
            last_round: None,
        }
    }

    /// What has been executed so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The workgroup whose turn it is.
    pub fn workgroup(&self) -> Option<Dim3> {
        let next = self.resident.front().map(|own| own.position);
        next.or(self.put_away.as_ref().map(|own| own.position))
    }

    /// Instructions that a wave under way has executed; nothing for waves that have not started,
    /// and of workgroups that have ended.
    pub fn executed(&self, wave: WaveId) -> Option<u64> {
        let resident = self.resident.iter().find(|own| own.position == wave.workgroup);
        if let Some(workgroup) = resident {
            return workgroup.waves.get(wave.wave as usize).map(|own| own.executed);
        }
        let put_away = self.put_away.as_ref().filter(|own| own.position == wave.workgroup)?;
        put_away.executed(wave.wave)
    }

    /// Changes after how many wave instructions in all the watchdog ends the execution.
    pub fn set_limit(&mut self, wave_instructions: u64) {
        self.limit = wave_instructions;
    }

    /// The execution of one workgroup alone: what this execution does of it from now on, as long as
    /// it is independent of the others (see [`Footprints::dependent`](crate::Footprints::dependent)).
    /// Its statistics begin with what the workgroup has executed already; so does what the limit
    /// counts, which is this execution's until it is set. `slot` is the workgroup's place among
    /// those under way, and matters only if it has not started (see
    /// [`Footprint::slot`](crate::Footprint::slot)).
    ///
    /// It goes on on a clone of the device, taken at the same time, of its own: where it ends, the
    /// memory of the launch is given back there.
    ///
    /// `None` if the workgroup has ended, or if the dispatch has no such workgroup or place.
    pub fn alone(&self, workgroup: Dim3, slot: usize) -> Option<Execution> {
        let index = self.launch.index(workgroup)?;
        let mut alone = self.part(index..index + 1, vec![slot]);
        if self.waiting.contains(&index) {
            return (slot < RESIDENT_WORKGROUPS).then_some(alone);
        }
        let place = self.resident.iter().position(|own| own.position == workgroup);
        let (state, turn) = match (place, &self.put_away) {
            (Some(0), _) => (WorkgroupCopy::of(&self.resident[0]), self.position),
            (Some(place), _) => (WorkgroupCopy::of(&self.resident[place]), Position::default()),
            (None, Some(state)) if state.position == workgroup => (state.clone(), self.position),
            _ => return None,
        };
        alone.waiting = index..index;
        alone.position = Position { workgroups: 1, ..turn };
        alone.statistics = state.statistics;
        alone.put_away = Some(state);
        Some(alone)
    }

    /// What has not started of it, in at most so many parts that can be executed at the same time:
    /// each has workgroups of its own, in order, and places of its own for them.
    pub(crate) fn split(&self, parts: usize) -> Vec<Execution> {
        let count = self.waiting.end - self.waiting.start;
        let parts = (parts as u64).min(RESIDENT_WORKGROUPS as u64).min(count).max(1);
        let first = |part: u64| self.waiting.start + count * part / parts;
        let part = |part: u64| {
            let slots = (0..RESIDENT_WORKGROUPS).rev();
            let free = slots.filter(|slot| *slot as u64 % parts == part).collect();
            self.part(first(part)..first(part + 1), free)
        };
        (0..parts).map(part).collect()
    }

    /// Gives the memory of the launch back.
    pub(crate) fn release(&self, space: &mut AddressSpace) -> Result<(), DeviceError> {
        self.launch.release(space)
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
        observer: &'a mut O,
        checker: &'a mut C,
        pause: u64,
        spare: Vec<Wave>,
    ) -> Scheduler<'a, O, C> {
        Scheduler { programs, observer, checker, pause, spare }
    }

    /// A wave to be set up.
    fn wave(spare: &mut Vec<Wave>, level: Level) -> Wave {
        spare.pop().unwrap_or_else(|| Wave::new(level))
    }

    /// The waves of a workgroup can be used again.
    fn put_back(&mut self, mut workgroup: Workgroup) {
        for program in self.programs {
            let used = program.rows_used();
            for wave in &mut workgroup.waves {
                wave.rows_used = [0, 1].map(|file| wave.rows_used[file].max(used[file]));
            }
        }
        self.spare.append(&mut workgroup.waves);
    }

    /// Carries a dispatch on until it pauses or ends; notes what its workgroups touch if there are
    /// footprints to add to. Gives back the waves that are not used any more.
    pub fn run(
        mut self,
        execution: &mut Execution,
        memory: &mut dyn Memory,
        footprints: Option<&mut Footprints>,
    ) -> (Progress, Vec<Wave>) {
        let progress = self.carry_on(execution, memory, footprints);
        if matches!(progress, Progress::Ended(_)) {
            std::mem::take(&mut execution.resident).into_iter().for_each(|own| self.put_back(own));
        }
        (progress, self.spare)
    }

    fn carry_on(
        &mut self,
        execution: &mut Execution,
        memory: &mut dyn Memory,
        mut footprints: Option<&mut Footprints>,
    ) -> Progress {
        if let Some(state) = execution.put_away.take() {
            let level = self.programs[execution.home].level();
            let spare = &mut self.spare;
            let workgroup = state.restore(|| Scheduler::<O, C>::wave(spare, level));
            execution.resident.push_front(workgroup);
        }
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
                Ok(Turn::Paused) => {
                    execution.resident.push_front(workgroup);
                    return Progress::Paused;
                }
                Ok(Turn::Over) => execution.resident.push_back(workgroup),
                Ok(Turn::Ended) => {
                    execution.free.push(workgroup.slot);
                    self.put_back(workgroup);
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
        if execution.waiting.is_empty() {
            return;
        }
        let Some(slot) = execution.free.pop() else { return };
        let Some(index) = execution.waiting.next() else { return };
        let launch = &execution.launch;
        let position = launch.position(index);
        let level = self.programs[execution.home].level();
        let mut workgroup = Workgroup {
            position,
            slot,
            waves: Vec::new(),
            watched: Vec::new(),
            lds: vec![0; launch.lds_bytes as usize],
            statistics: Statistics::default(),
        };
        for index in 0..launch.waves(position) {
            let mut wave = Scheduler::<O, C>::wave(&mut self.spare, level);
            launch.start(&mut wave, position, index, slot);
            self.checker.starts(&wave, launch);
            workgroup.watched.push(self.observer.watches(wave.id));
            workgroup.waves.push(wave);
            workgroup.statistics.waves += 1;
            execution.statistics.waves += 1;
        }
        execution.resident.push_back(workgroup);
    }

    /// The same as [`Scheduler::turn`], and what the workgroup does goes to its footprint.
    fn recorded_turn(
        &mut self,
        execution: &mut Execution,
        workgroup: &mut Workgroup,
        memory: &mut dyn Memory,
        footprints: &mut Footprints,
    ) -> Result<Turn, DeviceFault> {
        let footprint = footprints.entry(workgroup.position, workgroup.slot);
        let private = execution.launch.private_memory(workgroup.slot);
        let turn = self.turn(execution, workgroup, &mut Recording::new(memory, footprint, private));
        footprint.statistics = workgroup.statistics;
        footprint.uses_global_sync = execution.sync.is_used_by(workgroup.position);
        turn
    }

    /// Gives each wave of a workgroup its turns.
    fn turn(
        &mut self,
        execution: &mut Execution,
        workgroup: &mut Workgroup,
        memory: &mut dyn Memory,
    ) -> Result<Turn, DeviceFault> {
        while execution.position.round < execution.policy.workgroup_turn {
            while execution.position.wave < workgroup.waves.len() {
                self.wave_turn(execution, workgroup, memory)?;
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
        memory: &mut dyn Memory,
    ) -> Result<(), DeviceFault> {
        let index = execution.position.wave;
        let Workgroup { waves, watched, lds, statistics, .. } = workgroup;
        let (wave, watched) = (&mut waves[index], &mut watched[index]);
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
        if *watched {
            let watch = self.run_wave::<true>(execution, statistics, wave, lds, memory, until)?;
            *watched = watch == Watch::On;
        }
        // A wave that is not watched any more has the rest of its turn, so that watching does not
        // change the order of execution.
        if !*watched && wave.status == Status::Ready {
            self.run_wave::<false>(execution, statistics, wave, lds, memory, until)?;
        }
        Ok(())
    }

    /// Executes a wave until it waits, ends, or has executed `until` instructions in all; whether
    /// the observer wants to see more of it. What is executed is counted for the dispatch, and for
    /// the workgroup whose `statistics` these are.
    #[inline(never)]
    fn run_wave<const WATCHED: bool>(
        &mut self,
        execution: &mut Execution,
        statistics: &mut Statistics,
        wave: &mut Wave,
        lds: &mut [u8],
        memory: &mut dyn Memory,
        until: u64,
    ) -> Result<Watch, DeviceFault> {
        let programs = self.programs;
        let mut program = &*programs[execution.home];
        let before = wave.executed;
        let mut lane_operations = 0;
        let mut watch = Watch::On;
        let mut fault = None;
        // Outlives the turns of the loop, so that it is dropped only where there is one.
        let mut replacement = None;
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
            self.checker.before(wave, op, memory);
            if WATCHED {
                let id = wave.id;
                let state = WaveState::new(wave, memory, lds, program);
                self.observer.before(&op.inst, id, &mut state.replaceable(&mut replacement));
                if wave.pc != pc {
                    replacement = None;
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
            match step(wave, op, memory, lds) {
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
                let mut state = WaveState::new(wave, memory, lds, program);
                watch = self.observer.after(&event, &mut state);
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
        for statistics in [&mut execution.statistics, statistics] {
            statistics.wave_instructions += wave.executed - before;
            statistics.lane_operations += lane_operations;
        }
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

fn fault_at(program: &Program, pc: u64, wave: WaveId, cause: FaultCause) -> DeviceFault {
    let pc = if program.contains(pc) { program.virtual_address(pc) } else { flipwave_isa::Pc(pc) };
    DeviceFault { cause, place: Place { pc, wave } }
}
