//! Violations of hazards by sequences of instructions, and the mitigations that avoid them.

use super::{
    Condition, Group, Hazard, Mitigation, MitigationRule, Preceding, Registers, preceding,
    registers,
};
use crate::{Half, Inst, Operand, RegisterRange};

/// A violated hazard: trigger and victim are too close.
#[derive(Debug)]
pub struct HazardViolation {
    /// The hazard.
    pub hazard: &'static Hazard,
    /// Index of the trigger in the preceding instructions.
    pub trigger: usize,
    /// The overlapping registers; empty for hazards without registers.
    pub registers: Vec<RegisterRange>,
    /// The mitigation required between the two.
    pub needed: Mitigation,
}

/// The hazards of a family that `inst` violates as the victim, given the instructions executed before it,
/// nearest first. For each register, only the nearest trigger counts.
pub fn violations(
    family: &'static [Hazard],
    before: &[Preceding<'_>],
    inst: &Inst,
) -> Vec<HazardViolation> {
    let mut violations = Vec::new();
    let is_victim = |hazard: &&'static Hazard| hazard.victim.group.contains(inst);
    let rows: Vec<&'static Hazard> = family.iter().filter(is_victim).collect();
    for hazard in &rows {
        let found = match hazard.condition {
            Condition::Pattern(pattern) => pattern(before, inst),
            _ if hazard.victim.registers == Registers::None => before
                .iter()
                .position(|trigger| hazard.matches_without_registers(trigger.inst, inst))
                .map(|trigger| (trigger, Vec::new())),
            _ => None,
        };
        violations.extend(
            found.and_then(|(trigger, registers)| {
                hazard.violation(before, trigger, inst, registers)
            }),
        );
    }
    let mut selectors: Vec<Registers> = rows.iter().map(|hazard| hazard.victim.registers).collect();
    selectors.dedup();
    selectors.retain(|selector| *selector != Registers::None);
    for selector in selectors {
        let rows = || rows.iter().filter(|hazard| hazard.victim.registers == selector);
        for range in selector.select(inst) {
            let touches = |hazard: &Hazard, trigger: &Inst| {
                let selected = || hazard.trigger.registers.select(trigger);
                hazard.trigger.group.contains(trigger)
                    && selected().iter().any(|selected| selected.overlaps(range))
            };
            let nearest = before
                .iter()
                .position(|trigger| rows().any(|hazard| touches(hazard, trigger.inst)));
            let Some(nearest) = nearest else { continue };
            let trigger = before[nearest].inst;
            for hazard in rows().filter(|hazard| touches(hazard, trigger)) {
                if hazard.matches(trigger, inst, range) {
                    violations.extend(hazard.violation(before, nearest, inst, vec![range]));
                }
            }
        }
    }
    violations
}

/// Returns `true` if a violation between two original instructions exists only because of inserted code,
/// which supplies the intervening instruction. `original` iterates over the original instructions before the
/// victim, nearest first.
pub fn is_completed_by_insertion<'a>(
    violation: &HazardViolation,
    trigger: &Inst,
    victim: &Inst,
    original: impl Iterator<Item = &'a Inst>,
) -> bool {
    if violation.hazard.intervening.is_none() {
        return false;
    }
    let before = preceding(original);
    let found = violations(std::slice::from_ref(violation.hazard), &before, victim);
    !found.iter().any(|found| std::ptr::eq(before[found.trigger].inst, trigger))
}

/// Returns `true` if the trigger writes one half of a register and the victim reads only the other half.
fn are_halves_disjoint(trigger: &Inst, victim: &Inst, range: RegisterRange) -> bool {
    let half = |operand: &Operand| {
        let named = registers::register(&operand.value).filter(|named| named.overlaps(range))?;
        Some((named == range).then_some(operand.half).flatten())
    };
    let written: Vec<Option<Half>> = trigger.destinations().filter_map(half).collect();
    let read: Vec<Option<Half>> = victim.sources().filter_map(half).collect();
    let [Some(written)] = written[..] else { return false };
    !victim.flags.tied
        && !read.is_empty()
        && read.iter().all(|read| read.is_some_and(|read| read != written))
}

impl Hazard {
    /// Returns `true` if two instructions are trigger and victim of this hazard, which involves no registers.
    fn matches_without_registers(&self, trigger: &Inst, victim: &Inst) -> bool {
        let hardware_register = |inst: &Inst| inst.immediate.map(|immediate| immediate & 63);
        self.trigger.group.contains(trigger)
            && (!matches!(self.condition, Condition::HardwareRegister)
                || hardware_register(trigger) == hardware_register(victim))
    }

    /// Returns `true` if a trigger and a victim that both access `range` satisfy the condition.
    fn matches(&self, trigger: &Inst, victim: &Inst, range: RegisterRange) -> bool {
        let is_equal = || self.trigger.registers.select(trigger).contains(&range);
        match self.condition {
            Condition::OverlapOtherOpcode => trigger.opcode_name != victim.opcode_name,
            Condition::OverlapSameOpcode => trigger.opcode_name == victim.opcode_name,
            Condition::OverlapOfHalves => !are_halves_disjoint(trigger, victim, range),
            Condition::Equal => is_equal(),
            Condition::Partial => !is_equal(),
            Condition::Always | Condition::Overlap | Condition::HardwareRegister => true,
            Condition::Pattern(_) => false,
        }
    }

    /// The violation by a trigger and a victim that satisfy the condition; `None` if the instructions between
    /// them prevent it.
    fn violation(
        &'static self,
        before: &[Preceding<'_>],
        trigger: usize,
        victim: &Inst,
        registers: Vec<RegisterRange>,
    ) -> Option<HazardViolation> {
        let first = before.get(trigger)?;
        let between = &before[..trigger];
        let intervenes =
            |group: Group| between.iter().any(|preceding| group.contains(preceding.inst));
        if self.intervening.is_some_and(|group| !intervenes(group)) || self.is_expired_by(between) {
            return None;
        }
        let needed = match self.mitigation {
            MitigationRule::Instruction(text) => Mitigation::Instruction(text(victim)),
            _ => Mitigation::WaitStates(self.wait_states(first.inst)),
        };
        let is_far = matches!(needed, Mitigation::WaitStates(states) if states <= first.distance);
        (!is_far).then_some(HazardViolation { hazard: self, trigger, registers, needed })
    }
}

/// The mitigations to insert directly before `inst` so that it violates no hazard of these families
/// ([`Rules::hazards`](crate::Rules::hazards)), given the instructions executed before it, nearest first
/// ([`preceding`]). Wait states that exist already are subtracted. Instructions
/// come in a fixed order, wait states last. If several paths lead to `inst`, call this for each of
/// them.
pub fn mitigations(
    families: &[&'static [Hazard]],
    before: &[Preceding<'_>],
    inst: &Inst,
) -> Vec<Mitigation> {
    let mut mitigations = Vec::new();
    let mut missing = 0;
    for violation in families.iter().flat_map(|family| violations(family, before, inst)) {
        match violation.needed {
            Mitigation::WaitStates(states) => {
                let distance = before.get(violation.trigger).map_or(0, |trigger| trigger.distance);
                missing = missing.max(states.saturating_sub(distance));
            }
            instruction if mitigations.contains(&instruction) => {}
            instruction => mitigations.push(instruction),
        }
    }
    if missing > 0 {
        mitigations.push(Mitigation::WaitStates(missing));
    }
    mitigations
}
