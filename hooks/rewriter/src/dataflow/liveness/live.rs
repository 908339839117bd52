//! Sets of live registers.

use flipwave_isa::RegisterSet;

/// Registers that are live at a point between two instructions.
///
/// A vector register may be live in the lanes that EXEC selects at the point, in the other lanes, or in both.
/// A vector write under EXEC only ends the live range in the selected lanes. Scalar registers are in `active`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Scalar registers, and VGPRs and AccVGPRs in lanes that EXEC selects.
    pub active: RegisterSet,
    /// VGPRs and AccVGPRs in lanes that EXEC does not select.
    pub masked: RegisterSet,
}

impl Live {
    /// Registers that are live in any lane.
    pub fn any(&self) -> RegisterSet {
        self.active.union(self.masked)
    }

    /// Registers that are live in either set.
    #[must_use]
    pub fn union(self, other: Live) -> Live {
        Live { active: self.active.union(other.active), masked: self.masked.union(other.masked) }
    }
}
