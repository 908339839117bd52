//! Running dispatches of the embedded GPU.

use super::original::OriginalView;
use crate::dispatch::execution::Execution;
use flipwave_device::{Dim3, Statistics, WaveId};
use flipwave_machine::{DispatchState, Limited};
use std::any::Any;

/// A running dispatch, and the view of its original code if that was rewritten and is observed.
pub(super) struct Running {
    pub execution: Execution,
    pub view: Option<Box<dyn OriginalView>>,
}

impl Running {
    /// Wraps an execution whose observer has not seen anything.
    pub fn new(execution: Execution) -> Running {
        Running { execution, view: None }
    }

    fn boxed_new(execution: Execution) -> Box<dyn DispatchState> {
        Box::new(Running::new(execution))
    }
}

impl Limited for Execution {
    fn wave_instructions(&self) -> u64 {
        self.statistics().wave_instructions
    }

    fn set_limit(&mut self, wave_instructions: u64) {
        Execution::set_limit(self, wave_instructions);
    }
}

impl DispatchState for Running {
    fn statistics(&self) -> Statistics {
        self.execution.statistics()
    }

    fn set_limit(&mut self, wave_instructions: u64) {
        self.execution.set_limit(wave_instructions);
    }

    fn workgroup(&self) -> Option<Dim3> {
        self.execution.workgroup()
    }

    fn executed(&self, wave: WaveId) -> Option<u64> {
        self.execution.executed(wave)
    }

    fn state_bytes(&self) -> u64 {
        self.execution.state_bytes()
    }

    fn alone(&self, workgroup: Dim3, slot: usize) -> Option<Box<dyn DispatchState>> {
        self.execution.alone(workgroup, slot).map(Running::boxed_new)
    }

    fn compacted(&self) -> Box<dyn DispatchState> {
        Running::boxed_new(self.execution.compacted())
    }

    fn continues_like(&self, other: &dyn DispatchState) -> bool {
        let other = other.as_any().downcast_ref::<Running>();
        other.is_some_and(|other| self.execution.continues_like(&other.execution))
    }

    fn boxed(&self) -> Box<dyn DispatchState> {
        Running::boxed_new(self.execution.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
