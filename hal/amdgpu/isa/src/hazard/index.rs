//! Index of a target's hazards that quickly rules out pairs of instructions before the exact check.

use super::{Condition, Expiry, Hazard, MAX_WAIT_STATES, Registers};
use crate::{Inst, RegisterSet, Rules};

/// An index of a target's hazards. Each hazard is a row with a bit in `u128` masks; rows beyond the last bit
/// share it.
#[derive(Debug)]
pub struct HazardIndex {
    families: &'static [&'static [Hazard]],
    /// Rows whose trigger and victim need no common registers.
    without_registers: u128,
    /// Rows that involve vector registers.
    vectors: u128,
    /// Rows whose trigger may be at any distance.
    unbounded: u128,
    /// Rows that require an intervening instruction.
    intervening: u128,
    /// Expiries that require several instructions, with the bit of their row.
    counted: Vec<(u128, &'static Expiry)>,
    /// Rows that may need more than the given number of wait states.
    by_distance: [u128; MAX_WAIT_STATES as usize + 1],
}

/// The roles of one or more instructions in the hazards of a [`HazardIndex`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HazardRoles {
    /// Rows whose trigger the instruction is.
    triggers: u128,
    /// Rows whose victim the instruction is.
    victims: u128,
    /// Rows whose intervening instruction it is.
    intervening: u128,
    /// Rows that the instruction resolves alone.
    expires: u128,
    /// Bit mask of the entries of [`HazardIndex::counted`] that the instruction belongs to.
    counted: u8,
    trigger_registers: RegisterSet,
    victim_registers: RegisterSet,
}

/// Hazards of a victim whose trigger may be further back than the instructions seen so far, because none of
/// these resolves them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenHazards {
    rows: u128,
    /// Number of instructions seen for each entry of [`HazardIndex::counted`].
    seen: [u8; MAX_COUNTED],
}

impl OpenHazards {
    /// Returns `true` if no hazard is open.
    pub fn is_empty(self) -> bool {
        self.rows == 0
    }
}

/// Maximum number of expiries with several instructions that are counted. Ignoring one only makes a search
/// longer.
const MAX_COUNTED: usize = 4;

impl HazardIndex {
    /// The index of the hazards in `rules`.
    pub fn new(rules: &Rules) -> HazardIndex {
        let mut index = HazardIndex {
            families: rules.hazards,
            without_registers: 0,
            vectors: 0,
            unbounded: 0,
            intervening: 0,
            counted: Vec::new(),
            by_distance: [0; MAX_WAIT_STATES as usize + 1],
        };
        for (bit, hazard) in numbered(rules.hazards) {
            if hazard.victim.registers == Registers::None
                || matches!(hazard.condition, Condition::Pattern(_))
            {
                index.without_registers |= bit;
            }
            if hazard.victim.registers.are_vectors() {
                index.vectors |= bit;
            }
            if hazard.intervening.is_some() && bit != LAST {
                index.intervening |= bit;
            }
            let max_wait_states = hazard.max_wait_states();
            if max_wait_states.is_none() {
                index.unbounded |= bit;
                let counted =
                    hazard.expired_by.iter().filter(|expiry| expiry.count > 1 && bit != LAST);
                index.counted.extend(counted.map(|expiry| (bit, expiry)));
            }
            for (states, rows) in (0..).zip(&mut index.by_distance) {
                if max_wait_states.is_none_or(|max| max > states) {
                    *rows |= bit;
                }
            }
        }
        index.counted.truncate(MAX_COUNTED);
        index
    }

    /// The hazards, in families.
    pub fn families(&self) -> &'static [&'static [Hazard]] {
        self.families
    }

    /// The roles of `inst`.
    pub fn roles(&self, inst: &Inst) -> HazardRoles {
        let mut roles = HazardRoles::default();
        for (entry, (_, expiry)) in self.counted.iter().enumerate() {
            roles.counted |= u8::from(expiry.group.contains(inst)) << entry;
        }
        for (bit, hazard) in numbered(self.families) {
            if hazard.trigger.group.contains(inst) {
                roles.triggers |= bit;
                roles.trigger_registers =
                    with_selected(roles.trigger_registers, hazard.trigger.registers, inst);
            }
            if hazard.victim.group.contains(inst) {
                roles.victims |= bit;
                roles.victim_registers =
                    with_selected(roles.victim_registers, hazard.victim.registers, inst);
            }
            if hazard.intervening.is_some_and(|group| group.contains(inst)) {
                roles.intervening |= bit;
            }
            if bit != LAST && hazard.is_expired_by_one(inst) {
                roles.expires |= bit;
            }
        }
        roles
    }

    /// Excludes rows that require an intervening instruction which does not occur in `all`.
    pub fn narrow<'r>(&mut self, all: impl IntoIterator<Item = &'r HazardRoles>) {
        let present = all.into_iter().fold(0, |present, roles| present | roles.intervening);
        let missing = self.intervening & !present;
        self.unbounded &= !missing;
        self.by_distance.iter_mut().for_each(|rows| *rows &= !missing);
    }

    /// Returns `true` if an instruction may be the victim of a hazard whose trigger is `wait_states` before
    /// it.
    pub fn may_conflict(
        &self,
        victim: &HazardRoles,
        trigger: &HazardRoles,
        wait_states: u32,
    ) -> bool {
        let last = self.by_distance.len() - 1;
        let rows = self.by_distance[last.min(wait_states as usize)];
        self.conflicting(victim, trigger, rows) != 0
    }

    /// Returns `true` if instructions with the combined roles `between` may supply the intervening
    /// instruction of a hazard of the victim.
    pub fn may_intervene(&self, victim: &HazardRoles, between: &HazardRoles) -> bool {
        victim.victims & between.intervening & self.intervening != 0
    }

    /// The hazards of a victim that instructions with the combined roles `triggers` may set up at any distance.
    pub fn open_hazards(&self, victim: &HazardRoles, triggers: &HazardRoles) -> OpenHazards {
        let rows = self.conflicting(victim, triggers, self.unbounded);
        OpenHazards { rows, seen: [0; MAX_COUNTED] }
    }

    /// The open hazards of a victim that is an original instruction, given the combined roles of all
    /// instructions and of the inserted ones: hazards that inserted code may set up, or complete by
    /// intervening between two original instructions.
    pub fn open_hazards_from_inserted(
        &self,
        victim: &HazardRoles,
        all: &HazardRoles,
        inserted: &HazardRoles,
    ) -> OpenHazards {
        let completed = self.unbounded & self.intervening & inserted.intervening;
        let rows = self.conflicting(victim, inserted, self.unbounded)
            | self.conflicting(victim, all, completed);
        OpenHazards { rows, seen: [0; MAX_COUNTED] }
    }

    /// Updates open hazards for a step backwards over an instruction.
    pub fn step_back(&self, open: &mut OpenHazards, inst: &HazardRoles) {
        open.rows &= !inst.expires;
        if inst.counted == 0 {
            return;
        }
        for (entry, (bit, expiry)) in self.counted.iter().enumerate() {
            if inst.counted >> entry & 1 != 0 {
                open.seen[entry] = open.seen[entry].saturating_add(1);
                if open.seen[entry] >= expiry.count {
                    open.rows &= !bit;
                }
            }
        }
    }

    /// The open hazards.
    pub fn hazards(&self, open: OpenHazards) -> impl Iterator<Item = &'static Hazard> {
        let rows = numbered(self.families).filter(move |(bit, _)| open.rows & bit != 0);
        rows.map(|(_, hazard)| hazard)
    }

    /// The rows among `rows` that two instructions may violate.
    fn conflicting(&self, victim: &HazardRoles, trigger: &HazardRoles, rows: u128) -> u128 {
        let common = victim.victims & trigger.triggers & rows;
        if common & !self.without_registers == 0 {
            return common;
        }
        let registers = victim.victim_registers.intersection(trigger.trigger_registers);
        let vectors = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        let mut possible = self.without_registers;
        if !registers.intersection(vectors).is_empty() {
            possible |= self.vectors;
        }
        if !registers.difference(vectors).is_empty() {
            possible |= !self.vectors;
        }
        common & possible
    }
}

impl HazardRoles {
    /// Returns `true` if the instruction is the victim of any hazard.
    pub fn is_victim(&self) -> bool {
        self.victims != 0
    }

    /// These roles and the trigger roles of `other`.
    #[must_use]
    pub fn with_triggers(self, other: &HazardRoles) -> HazardRoles {
        HazardRoles {
            triggers: self.triggers | other.triggers,
            trigger_registers: self.trigger_registers.union(other.trigger_registers),
            ..self
        }
    }

    /// These roles and the intervening roles of `other`.
    #[must_use]
    pub fn with_intervening(self, other: &HazardRoles) -> HazardRoles {
        HazardRoles { intervening: self.intervening | other.intervening, ..self }
    }
}

/// The bit shared by all rows beyond it.
const LAST: u128 = 1 << 127;

/// The hazards with their row bits.
fn numbered(
    families: &'static [&'static [Hazard]],
) -> impl Iterator<Item = (u128, &'static Hazard)> {
    let rows = families.iter().copied().flatten().enumerate();
    rows.map(|(row, hazard)| (LAST.min(1u128.checked_shl(row as u32).unwrap_or(LAST)), hazard))
}

fn with_selected(registers: RegisterSet, selector: Registers, inst: &Inst) -> RegisterSet {
    registers.union(selector.select(inst).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    #[test]
    fn index_excludes_other_registers_and_large_distances() {
        let target = "gfx90a".parse().expect("a target");
        let isa = Isa::new(&target).expect("LLVM has it");
        let index = HazardIndex::new(&Rules::of(&target, 64).unwrap());
        let roles = |text| {
            let bytes = isa.assemble(text).expect(text);
            index.roles(&isa.decode(&bytes, Pc(0)).expect(text))
        };
        let trigger = roles("v_readlane_b32 s4, v0, 0");
        let victim = roles("global_load_dword v1, v0, s[4:5]");
        assert!(
            index.may_conflict(&victim, &trigger, 0) && index.may_conflict(&victim, &trigger, 4)
        );
        assert!(
            !index.may_conflict(&victim, &trigger, 5)
                && index.open_hazards(&victim, &trigger).is_empty()
        );
        assert!(!index.may_conflict(&roles("global_load_dword v4, v0, s[6:7]"), &trigger, 0));
        assert!(!index.may_conflict(&victim, &roles("s_mov_b32 s4, 0"), 0));
    }

    #[test]
    fn narrow_excludes_hazards_without_their_intervening_instruction() {
        let target = "gfx90a".parse().expect("a target");
        let isa = Isa::new(&target).expect("LLVM has it");
        let mut index = HazardIndex::new(&Rules::of(&target, 64).unwrap());
        let all = [
            "v_mov_b32 v2, 0",
            "v_mfma_f64_16x16x4f64 a[0:7], v[4:5], v[6:7], a[0:7]",
            "global_load_dword v4, v2, s[4:5]",
        ];
        let all = all.map(|text| {
            let bytes = isa.assemble(text).expect(text);
            index.roles(&isa.decode(&bytes, Pc(0)).expect(text))
        });
        index.narrow(&all);
        assert!(index.may_conflict(&all[2], &all[0], 0));
        assert!(index.may_intervene(&all[2], &HazardRoles::default().with_intervening(&all[1])));
        assert!(!index.may_intervene(&all[2], &all[0]));
        index.narrow([&all[0], &all[2]]);
        assert!(!index.may_conflict(&all[2], &all[0], 0));
    }
}
