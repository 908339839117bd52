//! The order in which waves execute. One thread runs a dispatch, always in the same order:
//! workgroups by position, the waves of a workgroup in turns. A workgroup that does not end
//! for long shares the device with the ones after it, so that workgroups may wait for each
//! other as far as hardware would have them under way at once.

use crate::launch::{Launch, RESIDENT_WORKGROUPS};
use crate::memory::Memory;
use crate::observer::{Executed, Observer, Registers, Watch};
use crate::op::{Op, Run, Word};
use crate::program::Program;
use crate::vector::Level;
use crate::wave::{RowIndex, ScalarIndex, Status, Wave};
use crate::{control, lds, scalar_memory, vector_memory};
use control::Step;
use flipwave_device::{Completion, DeviceFault, FaultCause, Place, Statistics, WaveId};
use flipwave_isa::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// Instructions a wave executes before the next wave of its workgroup has its turn.
const WAVE_TURN: u64 = 1024;
/// Rounds of turns a workgroup has before the next workgroup is started beside it.
const WORKGROUP_TURN: u32 = 64;

/// Runs a dispatch.
pub struct Scheduler<'a, O> {
    programs: &'a [Arc<Program>],
    /// The program that the kernel belongs to.
    home: usize,
    launch: &'a Launch,
    memory: &'a mut dyn Memory,
    observer: &'a mut O,
    limit: u64,
    level: Level,
    statistics: Statistics,
    /// Waves of workgroups that have ended, to be used again.
    spare: Vec<Wave>,
}

/// A workgroup under way.
struct Workgroup {
    slot: usize,
    waves: Vec<Wave>,
    /// Which waves the observer watches.
    watched: Vec<bool>,
    lds: Vec<u8>,
}

impl<'a, O: Observer> Scheduler<'a, O> {
    /// A scheduler for one dispatch.
    pub fn new(
        programs: &'a [Arc<Program>],
        home: usize,
        launch: &'a Launch,
        memory: &'a mut dyn Memory,
        observer: &'a mut O,
        limit: u64,
    ) -> Scheduler<'a, O> {
        Scheduler {
            programs,
            home,
            launch,
            memory,
            observer,
            limit,
            level: programs[home].level(),
            statistics: Statistics::default(),
            spare: Vec::new(),
        }
    }

    /// Runs all workgroups.
    pub fn run(mut self) -> Completion {
        let total = self.launch.workgroup_count();
        let mut started = 0;
        let mut resident: VecDeque<Workgroup> = VecDeque::new();
        let mut free: Vec<usize> = (0..RESIDENT_WORKGROUPS).rev().collect();
        while started < total || !resident.is_empty() {
            if started < total
                && let Some(slot) = free.pop()
            {
                let workgroup = self.start(started, slot);
                resident.push_back(workgroup);
                started += 1;
            }
            for _ in 0..resident.len() {
                let Some(mut workgroup) = resident.pop_front() else { break };
                match self.turn(&mut workgroup) {
                    Err(fault) => return Completion::Faulted(fault),
                    Ok(false) => resident.push_back(workgroup),
                    Ok(true) => {
                        free.push(workgroup.slot);
                        self.spare.append(&mut workgroup.waves);
                    }
                }
            }
        }
        Completion::Completed(self.statistics)
    }

    fn start(&mut self, index: u64, slot: usize) -> Workgroup {
        let position = self.launch.position(index);
        let mut workgroup = Workgroup {
            slot,
            waves: Vec::new(),
            watched: Vec::new(),
            lds: vec![0; self.launch.lds_bytes as usize],
        };
        for index in 0..self.launch.waves(position) {
            let mut wave = self.spare.pop().unwrap_or_else(|| Wave::new(self.level));
            self.launch.start(&mut wave, position, index, slot);
            workgroup.watched.push(self.observer.watches(wave.id));
            workgroup.waves.push(wave);
            self.statistics.waves += 1;
        }
        workgroup
    }

    /// Gives each wave of a workgroup its turns; whether all have ended.
    fn turn(&mut self, workgroup: &mut Workgroup) -> Result<bool, DeviceFault> {
        for _ in 0..WORKGROUP_TURN {
            for (wave, watched) in workgroup.waves.iter_mut().zip(&mut workgroup.watched) {
                if wave.status != Status::Ready {
                    continue;
                }
                let turn = WAVE_TURN.min(self.limit - self.statistics.wave_instructions);
                let until = wave.executed + turn;
                if *watched {
                    *watched = self.run_wave::<true>(wave, &mut workgroup.lds, until)? == Watch::On;
                }
                // A wave that is not watched any more has the rest of its turn, so that watching
                // does not change the order of execution.
                if !*watched && wave.status == Status::Ready {
                    self.run_wave::<false>(wave, &mut workgroup.lds, until)?;
                }
            }
            if workgroup.waves.iter().all(|wave| wave.status == Status::Ended) {
                return Ok(true);
            }
            // Waves that have ended do not count at a barrier (ISA manual, "S_BARRIER").
            if workgroup.waves.iter().all(|wave| wave.status != Status::Ready) {
                for wave in &mut workgroup.waves {
                    if wave.status == Status::AtBarrier {
                        wave.status = Status::Ready;
                    }
                }
            }
        }
        Ok(false)
    }

    /// Executes a wave until it waits, ends, or has executed `until` instructions in all; whether
    /// the observer wants to see more of it.
    #[inline(never)]
    fn run_wave<const WATCHED: bool>(
        &mut self,
        wave: &mut Wave,
        lds: &mut [u8],
        until: u64,
    ) -> Result<Watch, DeviceFault> {
        let programs = self.programs;
        let mut program = &*programs[self.home];
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
            let exec = wave.exec();
            if WATCHED {
                wave.written_lanes = None;
            }
            wave.pc = pc.wrapping_add(op.size.into());
            wave.executed += 1;
            lane_operations += match op.run {
                Run::Vector(_) | Run::VectorMemory(_) | Run::Lds(_) => u64::from(exec.count()),
                _ => 1,
            };
            match step(wave, op, self.memory, lds) {
                Step::Next => {}
                Step::Barrier => wave.status = Status::AtBarrier,
                Step::Ended => wave.status = Status::Ended,
                Step::Fault(cause) => {
                    fault = Some((pc, cause));
                    break;
                }
            }
            if WATCHED {
                let lanes = wave.written_lanes.unwrap_or(exec);
                let event = Executed { inst: &op.inst, wave: wave.id, lanes };
                watch = self.observer.after(&event, &mut Registers::new(wave));
                if watch == Watch::Off {
                    break;
                }
            }
            if wave.status != Status::Ready {
                break;
            }
        }
        self.statistics.wave_instructions += wave.executed - before;
        self.statistics.lane_operations += lane_operations;
        if let Some((pc, cause)) = fault {
            return Err(self.fault(program, pc, wave.id, cause));
        }
        if self.statistics.wave_instructions >= self.limit && wave.status == Status::Ready {
            let executed = self.statistics.wave_instructions;
            return Err(self.fault(program, wave.pc, wave.id, FaultCause::Watchdog { executed }));
        }
        Ok(watch)
    }

    fn fault(&self, program: &Program, pc: u64, wave: WaveId, cause: FaultCause) -> DeviceFault {
        let pc =
            if program.contains(pc) { program.virtual_address(pc) } else { flipwave_isa::Pc(pc) };
        DeviceFault { cause, place: Place { pc, wave } }
    }
}

/// Executes one instruction. The wave's PC already points behind it.
#[inline(always)]
fn step(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    if op.vgprs_named > wave.vgpr_count
        || op.acc_vgprs_named > wave.acc_vgpr_count
        || wave.mode.indexes_vgprs()
    {
        return step_with_care(wave, op, memory, lds);
    }
    step_in_range(wave, op, memory, lds)
}

#[inline(always)]
fn step_in_range(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    let done = match op.run {
        Run::Vector(function) => {
            // SAFETY: the function was chosen for the features this host has.
            unsafe { function(wave, op) };
            Ok(())
        }
        Run::Scalar(function) | Run::Whole(function) => {
            function(wave, op);
            Ok(())
        }
        Run::Control(control) => return control::execute(wave, op, control),
        Run::ScalarMemory(access) => scalar_memory::execute(wave, op, access, memory),
        Run::VectorMemory(access) => vector_memory::execute(wave, op, access, memory, lds),
        Run::Lds(access) => lds::execute(wave, op, access, lds),
        Run::Gap(reason) => Err(FaultCause::Unimplemented {
            instruction: op.inst.text.clone(),
            reason: reason.into(),
        }),
    };
    match done {
        Ok(()) => Step::Next,
        Err(cause) => Step::Fault(cause),
    }
}

/// An instruction whose vector registers are not simply those it names: M0 moves them in
/// GPR-index mode, or they lie outside the wave's allocation.
#[cold]
#[inline(never)]
fn step_with_care(wave: &mut Wave, op: &Op, memory: &mut dyn Memory, lds: &mut [u8]) -> Step {
    let mut op = op.clone();
    if wave.mode.indexes_vgprs() && matches!(op.run, Run::Vector(_) | Run::Whole(_)) {
        index_registers(&mut op, wave.scalar(ScalarIndex::M0));
    }
    if confine_registers(&mut op, wave) {
        step_in_range(wave, &op, memory, lds)
    } else {
        Step::Next
    }
}

/// Moves the vector registers of an operation by M0[7:0]: source i if M0[12 + i] is set, the
/// destination if M0[15] is (ISA manual, "VGPR indexing").
fn index_registers(op: &mut Op, m0: u32) {
    let by = (m0 & 0xff) as u16;
    for (index, source) in op.sources.iter_mut().enumerate().take(3) {
        if m0 >> (12 + index) & 1 == 0 {
            continue;
        }
        for word in &mut source.words {
            if let Word::Row(row) = word {
                *row = row.plus(by);
            }
        }
    }
    if m0 >> 15 & 1 != 0 {
        op.destination = op.destination.plus(by);
    }
}

/// Makes a source outside the wave's allocation `v0`; gives `false` if the destination lies
/// outside, which makes the instruction void (ISA manual, "Out-of-range VGPRs").
fn confine_registers(op: &mut Op, wave: &Wave) -> bool {
    let outside = |row: RowIndex, words: u8| {
        let (start, count) = if row.0 < RowIndex::FIRST_ACCUMULATION {
            (0, wave.vgpr_count)
        } else {
            (RowIndex::FIRST_ACCUMULATION, wave.acc_vgpr_count)
        };
        row.0 - start + u16::from(words) > count
    };
    let words = |value: &Value| match value {
        Value::Register(range) => range.words,
        _ => 1,
    };
    let per_lane_destination = op.inst.destinations().find_map(|operand| match operand.value {
        Value::Register(range) if range.first.is_per_lane() => Some(range.words),
        _ => None,
    });
    if per_lane_destination.is_some_and(|words| outside(op.destination, words)) {
        return false;
    }
    for (slot, operand) in op.sources.iter_mut().zip(op.inst.sources()) {
        if slot.row().is_some_and(|row| outside(row, words(&operand.value))) {
            slot.words = [Word::Row(RowIndex(0)); 2];
        }
    }
    true
}
