//! Execution counts of a dispatch's instructions, per wave.

use flipwave_arch::Instruction;
use flipwave_device::WaveId;

/// Executions of an instruction by a wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstructionCount {
    /// Number of executions.
    pub executions: u64,
    /// Sum over all executions of the number of counted lanes among
    /// [`Executed::lanes`](crate::Executed::lanes).
    pub lanes: u64,
    /// Number of executions without any counted lane.
    pub without_lanes: u64,
}

impl InstructionCount {
    /// Adds this number of executions, each with `lanes` counted lanes.
    pub fn add(&mut self, executions: u64, lanes: u64) {
        let without_lanes = if lanes == 0 { executions } else { 0 };
        self.unite(InstructionCount { executions, lanes: executions * lanes, without_lanes });
    }

    /// Adds other executions.
    pub fn unite(&mut self, other: InstructionCount) {
        self.executions += other.executions;
        self.lanes += other.lanes;
        self.without_lanes += other.without_lanes;
    }
}

/// Counts of a wave that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveCounts {
    /// The wave.
    pub wave: WaveId,
    /// The executed instructions, by their numbers in [`Counts`], with their counts.
    pub instructions: Vec<(usize, InstructionCount)>,
}

/// Execution counts of one dispatch.
pub trait Counts {
    /// Number of different instructions executed so far. They are numbered from 0 in the order of their
    /// first execution.
    fn len(&self) -> usize;

    /// Returns `true` if no instruction was executed.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The instruction with this number, which must be below [`Counts::len`].
    fn instruction(&self, number: usize) -> &dyn Instruction;

    /// Returns the counts of the waves that have ended since the last call, in recording order.
    fn take_ended(&mut self) -> Vec<WaveCounts>;
}
