//! Surveys of golden runs.

use crate::program::Program;
use flipwave_arch::{Instruction, LaneMask};
use flipwave_device::{Dim3, WaveId};
use flipwave_machine::{Counts, Footprints, InstructionCount, Survey, WaveCounts};
use flipwave_ptx::Inst;
use std::any::Any;
use std::collections::HashMap;
use std::mem;

/// Counts of a dispatch, if they were requested.
pub(super) struct PtxSurvey(pub Option<PtxCounts>);

/// Execution counts of a dispatch.
pub(super) struct PtxCounts {
    lanes: LaneMask,
    instructions: Vec<Inst>,
    /// By number of the instruction in the code: its number here.
    numbers: Vec<Option<usize>>,
    /// By wave of the workgroup at work: counts by instruction.
    current: Vec<Vec<InstructionCount>>,
    /// Position of the workgroup at work.
    workgroup: Dim3,
    /// Counts of the other workgroups that have started and not ended.
    resting: HashMap<Dim3, Vec<Vec<InstructionCount>>>,
    ended: Vec<WaveCounts>,
}

impl PtxCounts {
    /// No counts; of executions by `lanes` from now on.
    pub fn new(lanes: LaneMask) -> PtxCounts {
        PtxCounts {
            lanes,
            instructions: Vec::new(),
            numbers: Vec::new(),
            current: Vec::new(),
            workgroup: Dim3::default(),
            resting: HashMap::new(),
            ended: Vec::new(),
        }
    }

    /// Continues with a workgroup.
    fn enter(&mut self, workgroup: Dim3) {
        if self.workgroup == workgroup {
            return;
        }
        let next = self.resting.remove(&workgroup).unwrap_or_default();
        let current = mem::replace(&mut self.current, next);
        let previous = mem::replace(&mut self.workgroup, workgroup);
        if current.iter().any(|counts| !counts.is_empty()) {
            self.resting.insert(previous, current);
        }
    }

    /// Counts an execution of the instruction with a number in the code.
    pub fn count(&mut self, program: &Program, wave: WaveId, number: usize, lanes: u32) {
        self.numbers.resize(program.steps.len(), None);
        let instructions = &mut self.instructions;
        let number = *self.numbers[number].get_or_insert_with(|| {
            instructions.push(program.seen(number).clone());
            instructions.len() - 1
        });
        self.enter(wave.workgroup);
        let wave = wave.wave as usize;
        if self.current.len() <= wave {
            self.current.resize(wave + 1, Vec::new());
        }
        let counts = &mut self.current[wave];
        if counts.len() <= number {
            counts.resize(number + 1, InstructionCount::default());
        }
        let lanes = (self.lanes.0 & u64::from(lanes)).count_ones();
        counts[number].add(1, lanes.into());
    }

    /// Ends a wave.
    pub fn end(&mut self, wave: WaveId) {
        self.enter(wave.workgroup);
        let counts = self.current.get_mut(wave.wave as usize).map(mem::take).unwrap_or_default();
        let executed = counts.into_iter().enumerate().filter(|(_, count)| count.executions > 0);
        self.ended.push(WaveCounts { wave, instructions: executed.collect() });
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
