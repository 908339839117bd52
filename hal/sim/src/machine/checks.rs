//! Surveys of the embedded GPU in the common terms.

use crate::counts::Counter;
use crate::device::SurveyCheck;
use crate::fidelity::FidelityCheck;
use crate::strict::{Rule, Violation};
use flipwave_arch::Instruction;
use flipwave_device::WaveLocation;
use flipwave_machine::{Counts, Footprints, OutsideSegment, Segment, Survey, WaveCounts};
use std::any::Any;

impl Counts for Counter {
    fn len(&self) -> usize {
        self.instructions().len()
    }

    fn instruction(&self, number: usize) -> &dyn Instruction {
        &self.instructions()[number]
    }

    fn take_ended(&mut self) -> Vec<WaveCounts> {
        Counter::take_ended(self)
    }
}

impl Survey for SurveyCheck {
    fn counts(&mut self) -> Option<&mut dyn Counts> {
        self.counter.as_mut().map(|counter| counter as &mut dyn Counts)
    }

    fn end_division(&mut self, footprints: &mut Footprints) -> bool {
        SurveyCheck::end_division(self, footprints)
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl flipwave_machine::FidelityCheck for FidelityCheck {
    fn only_count(&mut self) {
        FidelityCheck::only_count(self);
    }

    fn forget(&mut self) {
        FidelityCheck::forget(self);
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The violation of a segment's bounds in the common terms. `original` maps locations to the original
/// code.
pub(super) fn outside_segment(
    mut violation: Violation,
    original: impl FnOnce(WaveLocation) -> WaveLocation,
) -> OutsideSegment {
    let segment = match violation.rule() {
        Rule::PrivateBounds => Segment::Private,
        _ => Segment::Workgroup,
    };
    let location = original(WaveLocation { pc: violation.place.pc, wave: violation.wave });
    violation.place.pc = location.pc;
    let Violation { finding, place, line, wave, .. } = &violation;
    let line = line.as_ref().map_or_else(String::new, |line| format!(" ({line})"));
    let text = format!("{finding}, at {place}{line}, {wave}");
    OutsideSegment { segment, wave: violation.wave, pc: location.pc, text }
}
