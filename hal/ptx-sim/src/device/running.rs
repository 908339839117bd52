//! A running dispatch: workgroups one after another, whose waves take turns.

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
            launch,
        }
    }

    /// Starts the next workgroup; returns `false` if there is none.
    pub fn start_next(&mut self, program: &Program) -> bool {
        let Some(position) = self.waiting.pop_front() else { return false };
        let threads = self.launch.threads();
        let waves = (0..threads.div_ceil(32)).map(|wave| {
            let id = WaveId { workgroup: position, wave };
            Wave::new(id, program, self.kernel, threads - wave * 32)
        });
        let waves: Vec<Wave> = waves.collect();
        let count = waves.len() as u64;
        self.statistics.waves += count;
        self.current = Some(Workgroup {
            position,
            waves,
            shared: self.launch.shared_memory(),
            barriers: [Barrier::default(); BARRIERS],
            statistics: Statistics { waves: count, ..Statistics::default() },
            turn: Turn { wave: 0, left: TURN },
        });
        true
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
        })
    }
}

impl Workgroup {
    /// The wave whose turn it is; `None` if no wave can continue. Turns do not end inside blocks, so that all
    /// blocks can be executed as compiled code.
    pub fn wave(&mut self, program: &Program) -> Option<usize> {
        let is_running = |waves: &[Wave], wave: usize| waves[wave].status == Status::Running;
        let current = &self.waves[self.turn.wave];
        let has_more = self.turn.left > 0 || program.continues_turn(current.pc());
        if current.status == Status::Running && has_more {
            return Some(self.turn.wave);
        }
        let count = self.waves.len();
        let others = (1..=count).map(|step| (self.turn.wave + step) % count);
        let wave = others.into_iter().find(|wave| is_running(&self.waves, *wave))?;
        self.turn = Turn { wave, left: TURN };
        Some(wave)
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
        let current = self.current.as_ref()?;
        let waves = (current.position == wave.workgroup).then_some(&current.waves)?;
        waves.get(wave.wave as usize).map(|wave| wave.executed)
    }

    fn state_bytes(&self) -> u64 {
        let bytes = |wave: &Wave| {
            let frames = wave.frames.iter().map(|frame| frame.memory.len()).sum::<usize>();
            wave.registers.bytes() + frames * size_of::<Word>()
        };
        self.current.as_ref().map_or(0, |workgroup| {
            let waves = workgroup.waves.iter().map(bytes).sum::<usize>();
            (waves + workgroup.shared.len()) as u64
        })
    }

    fn alone(&self, workgroup: Dim3, _: usize) -> Option<Box<dyn DispatchState>> {
        if self.waiting.contains(&workgroup) {
            return Some(self.only([workgroup].into(), None));
        }
        let current = self.current.as_ref().filter(|current| current.position == workgroup)?;
        Some(self.only(VecDeque::new(), Some(current.clone())))
    }

    fn compacted(&self) -> Box<dyn DispatchState> {
        self.boxed()
    }

    fn continues_like(&self, other: &dyn DispatchState) -> bool {
        other.as_any().downcast_ref::<Running>().is_some_and(|other| {
            (&self.statistics, &self.waiting, &self.current)
                == (&other.statistics, &other.waiting, &other.current)
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
