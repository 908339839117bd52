//! What an instruction can be in hazards, as a quick look before the exact one.

use super::{End, Hazard, MOST_WAIT_STATES, Meeting, Part};
use crate::{Inst, RegisterSet, Rules};

/// The hazards of a target's waves, numbered through as rows. Rows beyond the last number share
/// it.
#[derive(Debug)]
pub struct Rows {
    families: &'static [&'static [Hazard]],
    /// Rows whose two instructions need not meet in registers.
    anywhere: u128,
    /// Rows whose two instructions meet in vector registers.
    vectors: u128,
    /// Rows whose trigger may be any distance away.
    far: u128,
    /// Rows that demand a third instruction between the two.
    across: u128,
    /// Kinds of instructions of which it takes several to end a row, with the row.
    counted: Vec<(u128, &'static End)>,
    /// By wait states between the two: rows that may need more.
    reaching: [u128; MOST_WAIT_STATES as usize + 1],
}

/// Rows in which an instruction is the trigger, those in which it is the victim, and the registers
/// of either; and rows whose third instruction it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    triggers: u128,
    victims: u128,
    across: u128,
    /// Rows that it alone ends.
    ends: u128,
    /// The counted kinds of instructions that it is one of.
    counted: u8,
    trigger_registers: RegisterSet,
    victim_registers: RegisterSet,
}

/// Hazards of a victim that may have begun further back than was looked, as nothing that was seen has
/// ended them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenRows {
    rows: u128,
    /// Instructions seen of each kind of which it takes several.
    seen: [u8; MOST_COUNTED],
}

impl OpenRows {
    /// Whether none is left.
    pub fn is_empty(self) -> bool {
        self.rows == 0
    }
}

/// Kinds of instructions that end a hazard only together and are counted. Not to count one makes a
/// search longer, nothing else.
const MOST_COUNTED: usize = 4;

impl Rows {
    /// Those of a set of rules.
    pub fn new(rules: &Rules) -> Rows {
        let families = rules.hazards;
        let reaching = [0; MOST_WAIT_STATES as usize + 1];
        let counted = Vec::new();
        let mut rows =
            Rows { families, anywhere: 0, vectors: 0, far: 0, across: 0, counted, reaching };
        for (bit, hazard) in numbered(families) {
            if hazard.victim.part == Part::Nothing || matches!(hazard.meeting, Meeting::Pattern(_))
            {
                rows.anywhere |= bit;
            }
            if hazard.victim.part.is_of_vectors() {
                rows.vectors |= bit;
            }
            if hazard.across.is_some() && bit != LAST {
                rows.across |= bit;
            }
            let reach = hazard.reach();
            if reach.is_none() {
                rows.far |= bit;
                let several = hazard.ends.iter().filter(|end| end.count > 1 && bit != LAST);
                rows.counted.extend(several.map(|end| (bit, end)));
            }
            for (states, rows) in (0..).zip(&mut rows.reaching) {
                if reach.is_none_or(|reach| reach > states) {
                    *rows |= bit;
                }
            }
        }
        rows.counted.truncate(MOST_COUNTED);
        rows
    }

    /// The hazards.
    pub fn families(&self) -> &'static [&'static [Hazard]] {
        self.families
    }

    /// The roles of `inst`.
    pub fn roles(&self, inst: &Inst) -> Roles {
        let mut roles = Roles::default();
        for (kind, (_, end)) in self.counted.iter().enumerate() {
            roles.counted |= u8::from(end.group.contains(inst)) << kind;
        }
        for (bit, hazard) in numbered(self.families) {
            if hazard.trigger.group.contains(inst) {
                roles.triggers |= bit;
                roles.trigger_registers = with(roles.trigger_registers, hazard.trigger.part, inst);
            }
            if hazard.victim.group.contains(inst) {
                roles.victims |= bit;
                roles.victim_registers = with(roles.victim_registers, hazard.victim.part, inst);
            }
            if hazard.across.is_some_and(|group| group.contains(inst)) {
                roles.across |= bit;
            }
            if bit != LAST && hazard.is_ended_by_one(inst) {
                roles.ends |= bit;
            }
        }
        roles
    }

    /// Leaves rows aside that demand a third instruction which none of `all` is.
    pub fn narrow<'r>(&mut self, all: impl IntoIterator<Item = &'r Roles>) {
        let there = all.into_iter().fold(0, |there, own| there | own.across);
        let missing = self.across & !there;
        self.far &= !missing;
        self.reaching.iter_mut().for_each(|rows| *rows &= !missing);
    }

    /// Whether an instruction may be the victim of a hazard that another one set up this many wait
    /// states before it.
    pub fn may_meet(&self, victim: &Roles, trigger: &Roles, wait_states: u32) -> bool {
        let most = self.reaching.len() - 1;
        self.meeting(victim, trigger, self.reaching[most.min(wait_states as usize)]) != 0
    }

    /// Whether the third instruction of a hazard that an instruction may be the victim of is among
    /// others, which have these roles together.
    pub fn may_lie_across(&self, victim: &Roles, others: &Roles) -> bool {
        victim.victims & others.across & self.across != 0
    }

    /// The hazards of a victim that others may have set up however far before it; these have `triggers`
    /// together.
    pub fn open(&self, victim: &Roles, triggers: &Roles) -> OpenRows {
        let rows = self.meeting(victim, triggers, self.far);
        OpenRows { rows, seen: [0; MOST_COUNTED] }
    }

    /// The same where the victim is an instruction of a program, and `inserted` are the roles of inserted
    /// code, of all others `all`: those that inserted code may have set up, or completed between two of the
    /// program's.
    pub fn open_to_inserted(&self, victim: &Roles, all: &Roles, inserted: &Roles) -> OpenRows {
        let across = self.far & self.across & inserted.across;
        let rows = self.meeting(victim, inserted, self.far) | self.meeting(victim, all, across);
        OpenRows { rows, seen: [0; MOST_COUNTED] }
    }

    /// Looks further back, over an instruction.
    pub fn pass(&self, open: &mut OpenRows, inst: &Roles) {
        open.rows &= !inst.ends;
        if inst.counted == 0 {
            return;
        }
        for (kind, (bit, end)) in self.counted.iter().enumerate() {
            if inst.counted >> kind & 1 != 0 {
                open.seen[kind] = open.seen[kind].saturating_add(1);
                if open.seen[kind] >= end.count {
                    open.rows &= !bit;
                }
            }
        }
    }

    /// The hazards of some rows.
    pub fn hazards(&self, open: OpenRows) -> impl Iterator<Item = &'static Hazard> {
        let rows = numbered(self.families).filter(move |(bit, _)| open.rows & bit != 0);
        rows.map(|(_, hazard)| hazard)
    }

    /// The rows among some in which two instructions may meet.
    fn meeting(&self, victim: &Roles, trigger: &Roles, rows: u128) -> u128 {
        let common = victim.victims & trigger.triggers & rows;
        if common & !self.anywhere == 0 {
            return common;
        }
        let registers = victim.victim_registers.intersection(trigger.trigger_registers);
        let vectors = RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS);
        let mut possible = self.anywhere;
        if !registers.intersection(vectors).is_empty() {
            possible |= self.vectors;
        }
        if !registers.difference(vectors).is_empty() {
            possible |= !self.vectors;
        }
        common & possible
    }
}

impl Roles {
    /// Whether it is the victim of any hazard.
    pub fn is_victim(&self) -> bool {
        self.victims != 0
    }

    /// These roles, and the other's as a trigger.
    #[must_use]
    pub fn with_triggers(self, other: &Roles) -> Roles {
        Roles {
            triggers: self.triggers | other.triggers,
            trigger_registers: self.trigger_registers.union(other.trigger_registers),
            ..self
        }
    }

    /// These roles, and the other's as a third instruction.
    #[must_use]
    pub fn with_across(self, other: &Roles) -> Roles {
        Roles { across: self.across | other.across, ..self }
    }
}

/// The bit that rows beyond it share.
const LAST: u128 = 1 << 127;

/// Hazards with the bits of their rows.
fn numbered(
    families: &'static [&'static [Hazard]],
) -> impl Iterator<Item = (u128, &'static Hazard)> {
    let rows = families.iter().copied().flatten().enumerate();
    rows.map(|(row, hazard)| (LAST.min(1u128.checked_shl(row as u32).unwrap_or(LAST)), hazard))
}

fn with(registers: RegisterSet, part: Part, inst: &Inst) -> RegisterSet {
    registers.union(part.registers(inst).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    #[test]
    fn the_quick_look_rules_out_other_registers_and_what_is_far_apart() {
        let target = "gfx90a".parse().expect("a target");
        let isa = Isa::new(&target).expect("LLVM has it");
        let rows = Rows::new(&Rules::of(&target, 64).unwrap());
        let roles = |text| {
            let bytes = isa.assemble(text).expect(text);
            rows.roles(&isa.decode(&bytes, Pc(0)).expect(text))
        };
        let trigger = roles("v_readlane_b32 s4, v0, 0");
        let victim = roles("global_load_dword v1, v0, s[4:5]");
        assert!(rows.may_meet(&victim, &trigger, 0) && rows.may_meet(&victim, &trigger, 4));
        assert!(!rows.may_meet(&victim, &trigger, 5) && rows.open(&victim, &trigger).is_empty());
        assert!(!rows.may_meet(&roles("global_load_dword v4, v0, s[6:7]"), &trigger, 0));
        assert!(!rows.may_meet(&victim, &roles("s_mov_b32 s4, 0"), 0));
    }

    #[test]
    fn a_hazard_across_an_instruction_that_is_nowhere_is_ruled_out() {
        let target = "gfx90a".parse().expect("a target");
        let isa = Isa::new(&target).expect("LLVM has it");
        let mut rows = Rows::new(&Rules::of(&target, 64).unwrap());
        let all = [
            "v_mov_b32 v2, 0",
            "v_mfma_f64_16x16x4f64 a[0:7], v[4:5], v[6:7], a[0:7]",
            "global_load_dword v4, v2, s[4:5]",
        ];
        let all = all.map(|text| {
            let bytes = isa.assemble(text).expect(text);
            rows.roles(&isa.decode(&bytes, Pc(0)).expect(text))
        });
        rows.narrow(&all);
        assert!(rows.may_meet(&all[2], &all[0], 0));
        assert!(rows.may_lie_across(&all[2], &Roles::default().with_across(&all[1])));
        assert!(!rows.may_lie_across(&all[2], &all[0]));
        rows.narrow([&all[0], &all[2]]);
        assert!(!rows.may_meet(&all[2], &all[0], 0));
    }
}
