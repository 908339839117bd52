//! An observer that counts executions.

use crate::ToolScope;
use flipwave_device::WaveId;
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::{Inst, Pc};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::HashMap;

/// Counts the executions of each instruction by waves.
#[derive(Clone, Debug, Default)]
pub struct ObservedExecutions(HashMap<Pc, u64>);

impl ObservedExecutions {
    /// The number of executions of each instruction in a scope.
    pub(crate) fn counts(&self, scope: &ToolScope<'_>) -> Vec<(InstIndex, u64)> {
        let count = |at: InstIndex| {
            let pc = scope.program().instructions[at].pc;
            (at, self.0.get(&pc).copied().unwrap_or(0))
        };
        scope.all().into_iter().map(count).collect()
    }
}

impl Observer for ObservedExecutions {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &Inst, _: WaveId, _: &mut WaveState<'_>) {
        *self.0.entry(inst.pc).or_default() += 1;
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        Watch::On
    }
}
