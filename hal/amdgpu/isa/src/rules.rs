//! The rules of a target that hardware leaves to the program: wait counters and manual hazards.

use crate::Target;
use crate::counter::Counters;
use crate::hazard::{Hazard, ScalarReads, hazards};

/// All rules that waves of a target must keep by themselves. There is a set of them or there is none:
/// code that is not known to keep them must not be written, and nothing is proven by rules that are
/// missing.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The wait counters.
    pub counters: Counters,
    /// The manual hazards, in families: a trigger of a family replaces those before it on the same
    /// registers.
    pub hazards: &'static [&'static [Hazard]],
    /// Whether all hazards are in the table that code from anywhere may meet. They are not for gfx1010
    /// to gfx1013, where accesses to LDS that are not aligned need more: the rest holds for what is
    /// inserted, but proves nothing of a whole program.
    pub are_whole: bool,
    /// Where instructions may see old values of scalar registers, what is known of a wave that begins.
    pub scalar_reads: Option<ScalarReads>,
}

impl Rules {
    /// The rules of a target's waves of this many lanes; `None` for generations whose tables are
    /// missing or not whole, gfx6 to gfx8 and gfx12.5.
    pub fn of(target: &Target, wave_size: u8) -> Option<Rules> {
        let counters = Counters::of(target.generation())?;
        let hazards = hazards(target, wave_size)?;
        let scalar_reads = ScalarReads::of_wave(target.generation(), wave_size);
        let are_whole = !target.is_gfx10_1();
        Some(Rules { counters, hazards, are_whole, scalar_reads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_all_rules_or_none() {
        for (target, has_rules) in [
            ("gfx803", false),
            ("gfx906", true),
            ("gfx90a", true),
            ("gfx942", true),
            ("gfx1030", true),
            ("gfx1100", true),
            ("gfx1200", true),
            ("gfx1250", false),
        ] {
            let target: Target = target.parse().unwrap();
            for wave_size in [32, 64] {
                let rules = Rules::of(&target, wave_size);
                assert_eq!(rules.is_some(), has_rules, "{target}");
                // An empty table is one that nobody has written.
                assert!(rules.is_none_or(|rules| !rules.hazards.is_empty()), "{target}");
            }
        }
    }
}
