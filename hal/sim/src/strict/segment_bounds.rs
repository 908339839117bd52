//! Rules that golden runs are checked against on every target at low cost: no access beyond a
//! workgroup's LDS or a work-item's private memory.

use super::bounds;
use super::violation::{Instruction, Report, Violation};
use crate::execute::step::is_vector;
use crate::instruction::{Op, Run};
use crate::translate::program::Program;
use crate::wave::Wave;
use flipwave_device::ModuleId;
use std::sync::Arc;

/// Checker for accesses beyond LDS and private memory, for one dispatch.
pub struct SegmentBounds {
    programs: Vec<Arc<Program>>,
    report: Report,
}

impl SegmentBounds {
    /// Creates a checker for the code of these programs.
    pub(crate) fn new(programs: Vec<Arc<Program>>) -> SegmentBounds {
        SegmentBounds { programs, report: Report::default() }
    }

    /// Returns `true` if nothing was found.
    pub(crate) fn is_clean(&self) -> bool {
        self.report.is_empty()
    }

    /// Returns the violations.
    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.report.into_violations()
    }

    /// Checks the next instruction of a wave.
    #[inline(always)]
    pub(crate) fn check(&mut self, wave: &Wave, op: &Op) {
        let is_near = matches!(op.run, Run::Lds(_) | Run::VectorMemory(_));
        if !is_near || (wave.mode.skips_vectors() && is_vector(op.run)) {
            return;
        }
        let Some((finding, lanes)) = bounds::outside_segments(wave, op) else { return };
        let program =
            self.programs.iter().enumerate().find(|(_, program)| program.contains(wave.pc));
        let Some((module, _)) = program else { return };
        let place = Instruction {
            module: ModuleId(module as u32),
            pc: op.inst.pc,
            text: op.inst.text.clone(),
        };
        self.report.add(place, wave.id, lanes, finding);
    }
}
