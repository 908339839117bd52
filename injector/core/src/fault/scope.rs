//! Scope of a fault: the lanes struck at once.

use flipwave_arch::LaneMask;
use std::fmt;
use std::num::NonZeroU8;

/// Lanes that one fault strikes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One lane's value, or a scalar value.
    Lane,
    /// The values of all lanes that the instruction runs on.
    ActiveLanes,
    /// The values of those active lanes that are a multiple of this period apart: the lanes that one
    /// lane slot computes if a SIMD has this many slots.
    LanesEvery(NonZeroU8),
    /// The values of all lanes of the wave, active or not.
    Wave,
    /// The values of the active lanes of all waves of a workgroup, each at its execution of the
    /// instruction with the same occurrence.
    Workgroup,
}

/// Lane slots of a SIMD up to gfx9.
const SLOTS: NonZeroU8 = NonZeroU8::MIN.saturating_add(15);

impl Scope {
    /// Every scope, in the order documentation lists them; the period is the number of slots of a SIMD.
    pub const ALL: [Scope; 5] =
        [Scope::Lane, Scope::ActiveLanes, Scope::LanesEvery(SLOTS), Scope::Wave, Scope::Workgroup];

    /// The scope's name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Lane => "lane",
            Scope::ActiveLanes => "active_lanes",
            Scope::LanesEvery(_) => "lanes_every",
            Scope::Wave => "wave",
            Scope::Workgroup => "workgroup",
        }
    }

    /// Description of the struck values.
    pub(crate) fn struck(self) -> String {
        match self {
            Scope::Lane => "one lane".to_owned(),
            Scope::ActiveLanes => "the active lanes of one wave".to_owned(),
            Scope::LanesEvery(period) => {
                format!("active lanes of one wave that are {period} apart")
            }
            Scope::Wave => "all lanes of one wave".to_owned(),
            Scope::Workgroup => "the active lanes of one workgroup".to_owned(),
        }
    }

    /// Returns `true` if a fault strikes some lanes of an execution, which are drawn.
    pub(crate) fn is_part_of_lanes(self) -> bool {
        matches!(self, Scope::Lane | Scope::LanesEvery(_))
    }

    /// Number of parts of an execution on `lanes` that a fault can strike, for scopes that strike a
    /// part.
    pub(crate) fn parts(self, lanes: LaneMask) -> u32 {
        match self {
            Scope::LanesEvery(period) => offsets(lanes, period).count_ones(),
            _ => lanes.count(),
        }
    }
}

/// Offsets of lanes modulo a period, one bit each.
fn offsets(lanes: LaneMask, period: NonZeroU8) -> u64 {
    lanes.lanes().fold(0, |offsets, lane| offsets | 1 << (lane.0 % period))
}

/// The lanes of `lanes` with the offset that comes `number`-th among the existing offsets modulo a
/// period, from the lowest.
pub(crate) fn lanes_at_offset(lanes: LaneMask, period: NonZeroU8, number: u32) -> Option<LaneMask> {
    let offset = LaneMask(offsets(lanes, period)).nth(number)?.0;
    let lanes_of_offset = lanes.lanes().filter(|lane| lane.0 % period == offset);
    Some(LaneMask(lanes_of_offset.fold(0, |mask, lane| mask | 1 << lane.0)))
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::LanesEvery(period) => write!(f, "lanes_every {period}"),
            scope => f.pad(scope.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_active_lanes_of_each_offset() {
        let period = NonZeroU8::new(16).unwrap();
        let scope = Scope::LanesEvery(period);
        assert_eq!(scope.parts(LaneMask::FULL), 16);
        let fifth = lanes_at_offset(LaneMask::FULL, period, 5);
        assert_eq!(fifth, Some(LaneMask(0x0020_0020_0020_0020)));
        let some = LaneMask(0x8001_0000_0000_8010);
        assert_eq!(scope.parts(some), 3);
        let parts = [0, 1, 2, 3].map(|number| lanes_at_offset(some, period, number));
        let mask = |mask| Some(LaneMask(mask));
        assert_eq!(parts, [mask(1 << 48), mask(0x10), mask(0x8000_0000_0000_8000), None]);
        assert_eq!(scope.parts(LaneMask::EMPTY), 0);
    }
}
