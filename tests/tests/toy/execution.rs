//! A running dispatch: workgroups one after another, and their waves one after another.

use super::wave::Wave;
use flipwave_device::{Dim3, Dispatch, Statistics, WaveId};
use flipwave_machine::DispatchState;
use std::any::Any;
use std::collections::VecDeque;

/// The state of a dispatch.
#[derive(Clone, PartialEq, Eq)]
pub struct Running {
    pub dispatch: Dispatch,
    /// Address of the kernel's first instruction.
    pub start: u64,
    pub limit: u64,
    pub statistics: Statistics,
    /// Workgroups that have not started.
    pub waiting: VecDeque<Dim3>,
    /// The workgroup at work.
    pub current: Option<Workgroup>,
}

/// A workgroup at work.
#[derive(Clone, PartialEq, Eq)]
pub struct Workgroup {
    pub position: Dim3,
    pub waves: Vec<Wave>,
    /// Index of the wave whose turn it is.
    pub turn: usize,
    pub statistics: Statistics,
}

impl Running {
    /// A dispatch before its first instruction.
    pub fn new(dispatch: &Dispatch, start: u64) -> Running {
        let [x, y, z] =
            [0, 1, 2].map(|axis| dispatch.grid[axis].div_ceil(dispatch.workgroup[axis].max(1)));
        let all = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
        Running {
            dispatch: dispatch.clone(),
            start,
            limit: dispatch.instruction_limit,
            statistics: Statistics::default(),
            waiting: all.collect(),
            current: None,
        }
    }

    /// Starts the next workgroup; returns `false` if there is none.
    pub fn start_next(&mut self, lanes: u32) -> bool {
        let Some(position) = self.waiting.pop_front() else { return false };
        let items = self.dispatch.workgroup[0];
        let waves = (0..items.div_ceil(lanes)).map(|wave| {
            let id = WaveId { workgroup: position, wave };
            let mut state = Wave::new(id, position[0] * items + wave * lanes);
            state.pc = self.start;
            state
        });
        let waves: Vec<Wave> = waves.collect();
        let count = waves.len() as u64;
        let statistics = Statistics { waves: count, ..Statistics::default() };
        self.statistics.waves += count;
        self.current = Some(Workgroup { position, waves, turn: 0, statistics });
        true
    }

    fn only(&self, waiting: VecDeque<Dim3>, current: Option<Workgroup>) -> Box<dyn DispatchState> {
        let statistics =
            current.as_ref().map_or_else(Statistics::default, |workgroup| workgroup.statistics);
        Box::new(Running { waiting, current, statistics, ..self.clone() })
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
        self.current
            .as_ref()
            .map_or(0, |workgroup| (workgroup.waves.len() * size_of::<Wave>()) as u64)
    }

    fn alone(&self, workgroup: Dim3, _: usize) -> Option<Box<dyn DispatchState>> {
        if self.waiting.contains(&workgroup) {
            return Some(self.only([workgroup].into(), None));
        }
        let current = self.current.clone().filter(|current| current.position == workgroup)?;
        Some(self.only(VecDeque::new(), Some(current)))
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
