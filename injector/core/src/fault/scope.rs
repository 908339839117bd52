//! How much one fault strikes.

use flipwave_isa::LaneMask;
use std::fmt;
use std::num::NonZeroU8;

/// How much one fault strikes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One lane's value; of what the lanes of a wave share, that.
    Lane,
    /// The value of every lane that the instruction runs on.
    ActiveLanes,
    /// Of these lanes, the values of those that are a multiple of this period apart: what one lane
    /// slot computes, where a wave takes its lanes to so many slots one after the other.
    LanesEvery(NonZeroU8),
    /// The value of every lane of the wave, whether it runs or not.
    Wave,
    /// The values of the active lanes of all waves of a workgroup, each when it comes to the
    /// instruction for the same time.
    Workgroup,
}

/// Lane slots of a SIMD up to gfx9.
const SLOTS: NonZeroU8 = NonZeroU8::MIN.saturating_add(15);

impl Scope {
    /// Every scope, in the order documentation lists them; periods are that of the slots of a SIMD.
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

    /// What a fault strikes the values of, in words.
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

    /// Whether a fault strikes some of the lanes of one execution: which, is drawn.
    pub(crate) fn is_part_of_lanes(self) -> bool {
        matches!(self, Scope::Lane | Scope::LanesEvery(_))
    }

    /// How many parts a fault can strike of an execution on `lanes`, where it strikes a part.
    pub(crate) fn parts(self, lanes: LaneMask) -> u32 {
        match self {
            Scope::LanesEvery(period) => offsets(lanes, period).count_ones(),
            _ => lanes.count(),
        }
    }
}

/// The offsets modulo a period that lanes have, a bit for each.
fn offsets(lanes: LaneMask, period: NonZeroU8) -> u64 {
    lanes.lanes().fold(0, |offsets, lane| offsets | 1 << (lane.0 % period))
}

/// Those of `lanes` that have the offset number `number` modulo a period, of the offsets that there are,
/// from the lowest.
pub(crate) fn lanes_at_offset(lanes: LaneMask, period: NonZeroU8, number: u32) -> Option<LaneMask> {
    let offset = LaneMask(offsets(lanes, period)).nth(number)?.0;
    let own = lanes.lanes().filter(|lane| lane.0 % period == offset);
    Some(LaneMask(own.fold(0, |mask, lane| mask | 1 << lane.0)))
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::LanesEvery(period) => write!(f, "lanes_every {period}"),
            other => f.pad(other.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_lanes_of_each_offset_that_runs() {
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
