//! Checks of a machine that accompany golden runs.

use crate::{Counts, Footprints};
use flipwave_arch::Pc;
use flipwave_device::WaveId;
use std::any::Any;
use std::fmt;

/// Survey of a dispatch of the golden run, see [`Machine::begin_survey`](crate::Machine::begin_survey).
pub trait Survey: Any + Send {
    /// Execution counts, if they were requested.
    fn counts(&mut self) -> Option<&mut dyn Counts>;

    /// Returns `true` if the result is that of a single thread. If several threads have executed the
    /// dispatch and its workgroups depend on each other, it may differ; then the dispatch must be
    /// executed again.
    fn end_division(&mut self, footprints: &mut Footprints) -> bool;

    /// The value itself, for its machine.
    fn as_any_mut(&mut self) -> &mut dyn Any;

    /// The value itself, for its machine.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// Fidelity check of a run over all its dispatches, see
/// [`Machine::fidelity_check`](crate::Machine::fidelity_check).
pub trait FidelityCheck: Any + Send {
    /// Only counts operations from the next dispatch on: for dispatches that all have a
    /// [settled course](crate::Machine::has_settled_course).
    fn only_count(&mut self);

    /// Discards the counts of the current dispatch, because it is repeated.
    fn forget(&mut self);

    /// The value itself, for its machine.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// A memory segment of limited size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The LDS of a workgroup. Hardware reads zero beyond it, and drops writes.
    Workgroup,
    /// The private memory of a work-item. Other work-items have theirs beyond it.
    Private,
}

/// An access beyond a segment. Its text names the rule, the instruction, and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideSegment {
    /// The segment.
    pub segment: Segment,
    /// The wave.
    pub wave: WaveId,
    /// Address of the instruction.
    pub pc: Pc,
    /// Description of the access.
    pub text: String,
}

impl fmt::Display for OutsideSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
