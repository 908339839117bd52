//! Surveys of golden runs.

use flipwave_arch::{Instruction, LaneMask};
use flipwave_device::WaveId;
use flipwave_machine::{Counts, Footprints, InstructionCount, Survey, WaveCounts};
use flipwave_ptx::Inst;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::BTreeMap;
use std::mem;

/// Counts of a dispatch, if they were requested.
pub(super) struct PtxSurvey(pub Option<PtxCounts>);

/// Execution counts of a dispatch.
pub(super) struct PtxCounts {
    lanes: LaneMask,
    instructions: Vec<Inst>,
    /// Numbers of instructions by address.
    numbers: FxHashMap<u64, usize>,
    /// Counts of the waves at work, by instruction.
    current: BTreeMap<u32, BTreeMap<usize, InstructionCount>>,
    ended: Vec<WaveCounts>,
}

impl PtxCounts {
    /// No counts; of executions by `lanes` from now on.
    pub fn new(lanes: LaneMask) -> PtxCounts {
        let (instructions, numbers, current, ended) = Default::default();
        PtxCounts { lanes, instructions, numbers, current, ended }
    }

    /// Counts an execution.
    pub fn count(&mut self, wave: WaveId, inst: &Inst, lanes: u32) {
        let instructions = &mut self.instructions;
        let number = *self.numbers.entry(inst.pc.0).or_insert_with(|| {
            instructions.push(inst.clone());
            instructions.len() - 1
        });
        let lanes = (self.lanes.0 & u64::from(lanes)).count_ones();
        let counts = self.current.entry(wave.wave).or_default();
        counts.entry(number).or_default().add(1, lanes.into());
    }

    /// Ends a wave.
    pub fn end(&mut self, wave: WaveId) {
        let counts = self.current.remove(&wave.wave).unwrap_or_default();
        self.ended.push(WaveCounts { wave, instructions: counts.into_iter().collect() });
    }
}

impl Counts for PtxCounts {
    fn len(&self) -> usize {
        self.instructions.len()
    }

    fn instruction(&self, number: usize) -> &dyn Instruction {
        &self.instructions[number]
    }

    fn take_ended(&mut self) -> Vec<WaveCounts> {
        mem::take(&mut self.ended)
    }
}

impl Survey for PtxSurvey {
    fn counts(&mut self) -> Option<&mut dyn Counts> {
        self.0.as_mut().map(|counts| counts as &mut dyn Counts)
    }

    fn end_division(&mut self, _: &mut Footprints) -> bool {
        true
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
