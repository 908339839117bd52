//! Surveys of golden runs.

use super::isa::Inst;
use flipwave_arch::{Instruction, LaneMask};
use flipwave_device::WaveId;
use flipwave_machine::{Counts, FidelityCheck, Footprints, InstructionCount, Survey, WaveCounts};
use std::any::Any;
use std::collections::BTreeMap;
use std::mem;

/// Counts of a dispatch, if they were requested.
pub struct ToySurvey(pub Option<ToyCounts>);

/// Execution counts of a dispatch.
pub struct ToyCounts {
    lanes: LaneMask,
    instructions: Vec<Inst>,
    /// Counts of the wave at work, by instruction.
    current: BTreeMap<usize, InstructionCount>,
    ended: Vec<WaveCounts>,
}

impl ToyCounts {
    /// No counts; of executions by `lanes` from now on.
    pub fn new(lanes: LaneMask) -> ToyCounts {
        let (instructions, current, ended) = Default::default();
        ToyCounts { lanes, instructions, current, ended }
    }

    /// Counts an execution.
    pub fn count(&mut self, wave: WaveId, inst: &Inst, lanes: LaneMask) {
        let known = self.instructions.iter().position(|known| known == inst);
        let number = known.unwrap_or_else(|| {
            self.instructions.push(inst.clone());
            self.instructions.len() - 1
        });
        let lanes = LaneMask(lanes.0 & self.lanes.0).count();
        self.current.entry(number).or_default().add(1, lanes.into());
        if inst.ends_wave() {
            let instructions = mem::take(&mut self.current).into_iter().collect();
            self.ended.push(WaveCounts { wave, instructions });
        }
    }
}

impl Counts for ToyCounts {
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

impl Survey for ToySurvey {
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

/// Every operation is exact.
pub struct Exact;

impl FidelityCheck for Exact {
    fn only_count(&mut self) {}

    fn forget(&mut self) {}

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
