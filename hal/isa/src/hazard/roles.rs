//! What an instruction can be in hazards, as a quick look before the exact one.

use super::{Hazard, MOST_WAIT_STATES};
use crate::Inst;

/// The rows of some tables, numbered through, in which an instruction is the trigger, and those in
/// which it is the victim. Patterns of more than two instructions have no trigger of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    triggers: u128,
    victims: u128,
    /// Of the victims' rows, those whose trigger may be any distance away.
    far: u128,
}

impl Roles {
    /// The roles of `inst` in `families`.
    pub fn of(families: &[&'static [Hazard]], inst: &Inst) -> Roles {
        let mut roles = Roles::default();
        for (row, hazard) in families.iter().copied().flatten().enumerate() {
            // Rows beyond the last bit share it.
            let bit = 1u128 << row.min(127);
            if hazard.trigger.group.contains(inst) {
                roles.triggers |= bit;
            }
            if hazard.victim.group.contains(inst) {
                roles.victims |= bit;
                if hazard.reach().is_none_or(|reach| reach > MOST_WAIT_STATES) {
                    roles.far |= bit;
                }
            }
        }
        roles
    }

    /// Whether it is the victim of any hazard.
    pub fn is_victim(self) -> bool {
        self.victims != 0
    }

    /// Whether it is the victim of any hazard whose trigger may be any distance away.
    pub fn has_far(self) -> bool {
        self.far != 0
    }

    /// Whether it is the victim of a hazard that the other sets up.
    pub fn may_follow(self, other: Roles) -> bool {
        self.victims & other.triggers != 0
    }

    /// Whether it is the victim of a hazard that the other sets up however far away it is.
    pub fn may_follow_far(self, other: Roles) -> bool {
        self.far & other.triggers != 0
    }

    /// These roles, and the other's as a trigger.
    #[must_use]
    pub fn with_triggers(self, other: Roles) -> Roles {
        Roles { triggers: self.triggers | other.triggers, ..self }
    }
}
