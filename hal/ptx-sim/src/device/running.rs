//! A running dispatch: workgroups one after another, whose waves take turns. Workgroups of a cooperative launch take
//! turns, too: after the turn of a wave, the next workgroup continues with one of its waves.

use super::barrier::{BARRIERS, Barrier};
use crate::execute::Launch;
use crate::program::Program;
use crate::wave::{Status, Wave, Word};
use flipwave_device::{Dim3, Dispatch, ModuleId, Statistics, WaveId};
use flipwave_machine::DispatchState;
use std::any::Any;
use std::collections::VecDeque;

/// Number of instructions after which a wave's turn ends at the end of its block.
const TURN: u64 = 1024;

/// The state of a dispatch.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub module: ModuleId,
    /// Number of the kernel in the code.
    pub kernel: usize,
    pub launch: Launch,
    pub limit: u64,
    pub statistics: Statistics,
    /// Inserted instructions since the last original one.
    pub inserted: u64,
    /// Workgroups that have not started.
    waiting: VecDeque<Dim3>,
    /// The workgroup at work.
    pub current: Option<Workgroup>,
    is_cooperative: bool,
    /// Workgroups of a cooperative launch that have started and whose turn it is not, in the order of their turns.
    resting: VecDeque<Workgroup>,
}

/// A workgroup at work.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Workgroup {
    pub position: Dim3,
    pub waves: Vec<Wave>,
    pub shared: Vec<u8>,
    pub barriers: [Barrier; BARRIERS],
    pub statistics: Statistics,
    /// The wave whose turn it is, and the instructions that it may still execute.
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Turn {
    wave: usize,
    left: u64,
}

impl Running {
    /// A dispatch before its first instruction.
    pub fn new(dispatch: &Dispatch, kernel: usize, launch: Launch) -> Running {
        let [x, y, z] = launch.workgroups;
        let all = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
        Running {
            module: dispatch.module,
            kernel,
            limit: dispatch.instruction_limit,
            statistics: Statistics::default(),
            inserted: 0,
            waiting: all.collect(),
            current: None,
            is_cooperative: dispatch.is_cooperative,
            resting: VecDeque::new(),
            launch,
        }
    }

    /// Continues with the next workgroup; returns `false` if there is none.
    pub fn start_next(&mut self, program: &Program) -> bool {
        if self.is_cooperative {
            while let Some(workgroup) = self.start(program) {
                self.resting.push_back(workgroup);
            }
        }
        self.current = self.resting.pop_front().or_else(|| self.start(program));
        self.current.is_some()
    }

    /// Continues with the next workgroup of a cooperative launch if the turn of a wave has ended.
    pub fn pass_turn(&mut self, program: &Program) {
        if self.resting.is_empty() {
            return;
        }
        // The workgroup keeps the turn if none of its waves can continue, which is a fault.
        let ends_turn = |workgroup: &mut Workgroup| {
            !workgroup.has_turn(program) && workgroup.wave(program).is_some()
        };
        if let Some(workgroup) = self.current.take_if(ends_turn) {
            self.resting.push_back(workgroup);
            self.current = self.resting.pop_front();
        }
    }

    fn start(&mut self, program: &Program) -> Option<Workgroup> {
        let position = self.waiting.pop_front()?;
        let threads = self.launch.threads();
        let waves = (0..threads.div_ceil(32)).map(|wave| {
            let id = WaveId { workgroup: position, wave };
            Wave::new(id, program, self.kernel, threads - wave * 32)
        });
        let waves: Vec<Wave> = waves.collect();
        let count = waves.len() as u64;
        self.statistics.waves += count;
        Some(Workgroup {
            position,
            waves,
            shared: self.launch.shared_memory(),
            barriers: [Barrier::default(); BARRIERS],
            statistics: Statistics { waves: count, ..Statistics::default() },
            turn: Turn { wave: 0, left: TURN },
        })
    }

    /// The workgroups that have started and not ended.
    fn resident(&self) -> impl Iterator<Item = &Workgroup> {
        self.current.iter().chain(&self.resting)
    }

    /// The workgroup at a position, if it has started and not ended.
    fn resident_at(&self, position: Dim3) -> Option<&Workgroup> {
        self.resident().find(|workgroup| workgroup.position == position)
    }

    fn only(&self, waiting: VecDeque<Dim3>, current: Option<Workgroup>) -> Box<dyn DispatchState> {
        let statistics =
            current.as_ref().map_or_else(Statistics::default, |workgroup| workgroup.statistics);
        Box::new(Running {
            module: self.module,
            kernel: self.kernel,
            launch: self.launch.clone(),
            limit: self.limit,
            statistics,
            inserted: 0,
            waiting,
            current,
            is_cooperative: self.is_cooperative,
            resting: VecDeque::new(),
        })
    }
}

impl Workgroup {
    /// The wave whose turn it is; `None` if no wave can continue. Turns do not end inside blocks, so that all
    /// blocks can be executed as compiled code.
    pub fn wave(&mut self, program: &Program) -> Option<usize> {
        let is_running = |waves: &[Wave], wave: usize| waves[wave].status == Status::Running;
        if self.has_turn(program) {
            return Some(self.turn.wave);
        }
        let count = self.waves.len();
        let others = (1..=count).map(|step| (self.turn.wave + step) % count);
        let wave = others.into_iter().find(|wave| is_running(&self.waves, *wave))?;
        self.turn = Turn { wave, left: TURN };
        Some(wave)
    }

    /// Returns `true` if the turn of a wave has not ended.
    fn has_turn(&self, program: &Program) -> bool {
        let current = &self.waves[self.turn.wave];
        let has_more = self.turn.left > 0 || program.continues_turn(current.pc());
        current.status == Status::Running && has_more
    }

    /// Counts instructions of the wave whose turn it is.
    pub fn count(&mut self, instructions: u64) {
        self.turn.left = self.turn.left.saturating_sub(instructions);
    }

    /// Number of instructions that the wave whose turn it is may execute before its turn ends.
    pub fn left(&self) -> u64 {
        self.turn.left
    }

    /// Returns `true` if all waves have ended.
    pub fn has_ended(&self) -> bool {
        self.waves.iter().all(|wave| wave.status == Status::Ended)
    }
}

impl DispatchState for Running {
    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn set_limit(&mut self, wave_instructions: u64) {
        self.limit = wave_instructions;
    }

    fn workgroup(&self) -> Option<Dim3> {
        self.current.as_ref().map(|workgroup| workgroup.position)
    }

    fn executed(&self, wave: WaveId) -> Option<u64> {
        let waves = &self.resident_at(wave.workgroup)?.waves;
        waves.get(wave.wave as usize).map(|wave| wave.executed)
    }

    fn state_bytes(&self) -> u64 {
        let bytes = |wave: &Wave| {
            let frames = wave.frames.iter().map(|frame| frame.memory.len()).sum::<usize>();
            wave.registers.bytes() + frames * size_of::<Word>()
        };
        let workgroups = self.resident().map(|workgroup| {
            let waves = workgroup.waves.iter().map(bytes).sum::<usize>();
            (waves + workgroup.shared.len()) as u64
        });
        workgroups.sum()
    }

    fn alone(&self, workgroup: Dim3, _: usize) -> Option<Box<dyn DispatchState>> {
        if self.waiting.contains(&workgroup) {
            return Some(self.only([workgroup].into(), None));
        }
        let resident = self.resident_at(workgroup)?;
        Some(self.only(VecDeque::new(), Some(resident.clone())))
    }

    fn compacted(&self) -> Box<dyn DispatchState> {
        self.boxed()
    }

    fn continues_like(&self, other: &dyn DispatchState) -> bool {
        other.as_any().downcast_ref::<Running>().is_some_and(|other| {
            (&self.statistics, &self.waiting, &self.current, &self.resting)
                == (&other.statistics, &other.waiting, &other.current, &other.resting)
        })
    }

    fn boxed(&self) -> Box<dyn DispatchState> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
