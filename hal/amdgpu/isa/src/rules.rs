//! Rules of a target that the program must follow because hardware does not enforce them: wait counters and
//! manual hazards.

use crate::Target;
use crate::counter::Counters;
use crate::hazard::{Hazard, SgprHazardState, hazards};

/// All rules that code for a target must follow. A target either has a complete set of rules or none,
/// because code must not be generated, and cannot be verified, without them.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The wait counters.
    pub counters: Counters,
    /// The manual hazards, in families: within a family, a trigger replaces earlier triggers on the same
    /// registers.
    pub hazards: &'static [&'static [Hazard]],
    /// The table has all hazards that arbitrary code can have. It is `false` for gfx1010 to gfx1013, whose
    /// hazards of misaligned LDS accesses are missing: the rules suffice for inserted code but not to verify
    /// whole programs.
    pub are_complete: bool,
    /// The initial SGPR hazard state of a wave, on targets where instructions may read stale scalar
    /// registers.
    pub sgpr_hazards: Option<SgprHazardState>,
}

impl Rules {
    /// The rules of a target for waves of `wave_size` lanes; `None` for generations whose tables are missing
    /// or incomplete: gfx6 to gfx8.
    pub fn of(target: &Target, wave_size: u8) -> Option<Rules> {
        let counters = Counters::of(target.generation());
        let hazards = hazards(target, wave_size)?;
        let sgpr_hazards = SgprHazardState::new(target.generation(), wave_size);
        let are_complete = !target.is_gfx10_1();
        Some(Rules { counters, hazards, are_complete, sgpr_hazards })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_all_rules_or_none() {
        for (target, has_rules) in [
            ("gfx803", false),
            ("gfx906", true),
            ("gfx90a", true),
            ("gfx942", true),
            ("gfx1030", true),
            ("gfx1100", true),
            ("gfx1200", true),
            ("gfx1250", true),
        ] {
            let target: Target = target.parse().unwrap();
            for wave_size in [32, 64] {
                let rules = Rules::of(&target, wave_size);
                assert_eq!(rules.is_some(), has_rules, "{target}");
                // An empty table would mean that it has not been written.
                assert!(rules.is_none_or(|rules| !rules.hazards.is_empty()), "{target}");
            }
        }
    }
}
