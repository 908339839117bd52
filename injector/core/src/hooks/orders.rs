//! Values that the host writes into the hooks' variables: the structures of `fault.c`, `event.c` and
//! `unit.c`.

use super::launch::LaunchShape;
use crate::fault::Action;
use crate::site::{Event, Lanes, Site, Unit, When};
use flipwave_arch::{LaneMask, SimdShape};

/// Words of a structure, the low half of 64-bit values first.
#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn word(mut self, value: u32) -> Words {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn wide(mut self, value: u64) -> Words {
        self.0.extend(value.to_le_bytes());
        self
    }
}

/// Error returned for a site whose lanes waves do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the waves have {lanes} lanes")]
pub struct MissingLanes {
    /// Number of lanes.
    pub lanes: u8,
}

/// Returns `true` if only active lanes of the instruction are struck.
pub fn is_active(site: &Site) -> bool {
    match &site.when {
        When::At(_) => site.lanes == Some(Lanes::Active),
        When::Always(unit) => unit.slot.is_some(),
    }
}

/// Values of the hooks' variables for a dispatch of this shape, by name. `place` is the address or
/// offset of the struck memory.
///
/// # Errors
/// [`MissingLanes`] if waves do not have the lanes.
pub fn orders(
    site: &Site,
    shape: &LaunchShape,
    simds: SimdShape,
    place: u64,
) -> Result<[(&'static str, Vec<u8>); 2], MissingLanes> {
    let lanes = shape.wave_lanes;
    let is_missing = match site.lanes {
        Some(Lanes::One(lane)) => lane.0 >= lanes,
        Some(Lanes::Mask(mask)) => mask.0 & !(u64::MAX >> (64 - lanes)) != 0,
        _ => false,
    };
    if is_missing {
        return Err(MissingLanes { lanes });
    }
    let when = match &site.when {
        When::At(timing) => ("event", event(timing)),
        When::Always(timing) => ("unit", unit(timing, shape, simds.count)),
    };
    Ok([("fault", fault(site, lanes, simds.width, place)), when])
}

/// Builds `struct fault`: the change of the value, the struck lanes for waves of this size on SIMDs of
/// this width, and the address or offset of the struck memory.
fn fault(site: &Site, wave_lanes: u8, simd_width: u8, place: u64) -> Vec<u8> {
    let all = u64::MAX >> (64 - wave_lanes);
    let lanes = match (&site.when, site.lanes) {
        (When::Always(unit), _) => unit.lanes(simd_width).0 & all,
        (_, Some(Lanes::One(lane))) => 1 << lane.0,
        (_, Some(Lanes::Mask(LaneMask(mask)))) => mask,
        (_, Some(Lanes::All | Lanes::Active) | None) => all,
    };
    let words = Words::default().wide(change(site.action));
    words.wide(lanes).wide(is_active(site).into()).wide(place).0
}

/// Encodes an action for `bits.c`, as the bits to keep and the bits to invert; for `number.c`, as a
/// factor; for functions of users, as their random number.
fn change(action: Action) -> u64 {
    let (keep, inverted) = match action {
        Action::Flip(mask) => (u32::MAX, mask),
        Action::StuckAtZero(mask) => (!mask, 0),
        Action::StuckAtOne(mask) => (!mask, mask),
        Action::Set(value) => (0, value),
        Action::Relative(_, error) => return (1.0 + error.value()).to_bits(),
        Action::Function { random, .. } => return random,
    };
    u64::from(keep) | u64::from(inverted) << 32
}

/// Builds `struct event`.
fn event(event: &Event) -> Vec<u8> {
    let (window, rate, key) = match event.intermittent {
        Some((intermittent, key)) => (intermittent.window.get(), intermittent.rate, key),
        None => (1, 0, 0),
    };
    let [x, y, z] = event.workgroup;
    let words = Words::default().word(x).word(y).word(z).word(event.wave.unwrap_or(u32::MAX));
    words.wide(event.occurrence).wide(window).word(rate).word(key).0
}

/// Builds `struct unit` for a dispatch of this shape, on a device with this many SIMDs per compute
/// unit.
fn unit(unit: &Unit, shape: &LaunchShape, simds: u8) -> Vec<u8> {
    let [x, y, _] = shape.workgroups();
    let words = Words::default().word(x).word(y).word(shape.workgroup_waves());
    let words = words.word(unit.units.get()).word(unit.unit);
    words.word(simds.into()).word(unit.simd.into()).word(0).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_arch::Lane;

    #[test]
    fn change_encodes_the_action() {
        for action in [
            Action::Flip(0x8000_0001),
            Action::Set(0xdead_beef),
            Action::StuckAtZero(0xff00),
            Action::StuckAtOne(0xff00),
        ] {
            let change = change(action);
            let (keep, inverted) = (change as u32, (change >> 32) as u32);
            for value in [0, 1, 0x1234_5678, u32::MAX] {
                let changed = action.apply(value.into(), 32, Lane(0));
                assert_eq!(changed, Ok(u64::from(value & keep ^ inverted)));
            }
        }
    }
}
