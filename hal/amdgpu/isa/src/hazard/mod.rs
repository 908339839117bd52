//! Manual hazards: pairs of instructions that need wait states or another instruction in between because
//! hardware does not resolve their dependence (the ISA documents, "Manually inserted wait states"; from gfx10
//! on only LLVM documents them). Each generation has a table of hazards with trigger, victim and mitigation.
//! LLVM's `GCNHazardRecognizer` is the authority for each row, and tests compare the tables with it.

mod gfx10;
mod gfx11;
mod gfx12;
mod gfx9;
mod gfx908;
mod gfx950;
mod group;
mod index;
mod instrumented_sgprs;
mod matrix;
mod mitigation;
mod pattern;
mod registers;
mod sgpr_hazards;
mod shift64;

pub use group::Group;
pub use index::{HazardIndex, HazardRoles, OpenHazards};
pub use instrumented_sgprs::{InstrumentedSgprState, Origin};
pub(crate) use matrix::MatrixShape;
pub use mitigation::{Mitigation, mitigations};
pub use registers::Registers;
pub use sgpr_hazards::{SgprHazardState, SgprWait};
pub use shift64::shift64_high_reg_bug;

use crate::{Generation, Half, Inst, Opcode, Operand, RegisterRange, Target};

/// A hazard: a victim instruction must not follow a trigger instruction too closely.
#[derive(Debug)]
pub struct Hazard {
    /// Description for reports.
    pub name: &'static str,
    /// The instruction that sets up the hazard.
    pub trigger: Side,
    /// The instruction that must keep its distance.
    pub victim: Side,
    /// The condition on trigger and victim.
    pub condition: Condition,
    /// An instruction that must be between the two for the hazard to exist.
    pub intervening: Option<Group>,
    /// Instructions between the two that resolve the hazard.
    pub expired_by: &'static [Expiry],
    /// The mitigation that is required if nothing resolves the hazard.
    pub mitigation: MitigationRule,
}

/// The trigger or the victim of a hazard.
#[derive(Debug)]
pub struct Side {
    /// The instructions.
    pub group: Group,
    /// The registers of the instruction that are involved.
    pub registers: Registers,
}

/// The condition on trigger and victim for a hazard. "Overlap" refers to the registers selected by the two
/// [`Side`]s.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// No condition: the pair is always a hazard.
    Always,
    /// The registers overlap.
    Overlap,
    /// The registers overlap, including their halves: LLVM treats `v1.l` and `v1.h` as separate
    /// registers.
    OverlapOfHalves,
    /// The registers overlap and the opcodes differ.
    OverlapOtherOpcode,
    /// The registers overlap and the opcodes are equal.
    OverlapSameOpcode,
    /// The registers are equal.
    Equal,
    /// The registers overlap but are not equal.
    Partial,
    /// Both access the same hardware register (`hwreg`).
    HardwareRegister,
    /// The two are the ends of a pattern of more than two instructions, found by the function.
    Pattern(Pattern),
}

/// Finds the trigger of a pattern that ends in the victim, given the instructions before the victim. Returns
/// the index of the trigger and the registers involved.
pub type Pattern = fn(&[Preceding<'_>], &Inst) -> Option<(usize, Vec<RegisterRange>)>;

/// A number of instructions of a group that resolve a hazard.
#[derive(Debug)]
pub struct Expiry {
    /// The instructions.
    pub group: Group,
    /// The required number of them.
    pub count: u8,
}

/// The rule that gives the [`Mitigation`] of a hazard.
#[derive(Clone, Copy, Debug)]
pub enum MitigationRule {
    /// A number of wait states. Each instruction is one wait state, `s_nop N` is N + 1.
    WaitStates(u8),
    /// A number of wait states that depends on the trigger, a matrix operation.
    TriggerWaitStates(fn(&Inst) -> u8),
    /// An instruction, as assembler text. The function gets the victim, whose registers it may use.
    Instruction(fn(&Inst) -> String),
}

impl Hazard {
    /// The number of wait states needed after a trigger; 0 if wait states do not resolve the hazard.
    pub fn wait_states(&self, trigger: &Inst) -> u8 {
        match self.mitigation {
            MitigationRule::WaitStates(states) => states,
            MitigationRule::TriggerWaitStates(states) => states(trigger),
            MitigationRule::Instruction(_) => 0,
        }
    }

    /// Returns `true` if a trigger may precede all instructions in `seen`, which were executed before a
    /// victim: distance does not resolve the hazard, and none of the instructions does.
    pub fn may_predate(&self, seen: &[Preceding<'_>]) -> bool {
        self.max_wait_states().is_none() && !self.is_expired_by(seen)
    }

    /// Returns `true` if a single instruction between trigger and victim resolves the hazard.
    fn is_expired_by_one(&self, inst: &Inst) -> bool {
        self.expired_by.iter().any(|expiry| expiry.count == 1 && expiry.group.contains(inst))
    }

    /// Returns `true` if the instructions between trigger and victim resolve the hazard.
    fn is_expired_by(&self, between: &[Preceding<'_>]) -> bool {
        let count = |group: Group| {
            between.iter().filter(move |preceding| group.contains(preceding.inst)).count()
        };
        self.expired_by.iter().any(|expiry| count(expiry.group) >= usize::from(expiry.count))
    }

    /// The maximum number of wait states that the hazard needs; `None` if wait states do not resolve it, so
    /// that a trigger at any distance counts.
    pub fn max_wait_states(&self) -> Option<u8> {
        match self.mitigation {
            MitigationRule::WaitStates(states) => Some(states),
            MitigationRule::TriggerWaitStates(_) => Some(MAX_WAIT_STATES),
            MitigationRule::Instruction(_) => None,
        }
    }
}

/// The maximum number of wait states of any hazard. Triggers further back matter only for hazards that wait
/// states do not resolve.
pub const MAX_WAIT_STATES: u8 = 20;

/// The number of wait states that are searched backwards for triggers of hazards that wait states do not
/// resolve. A trigger further back is assumed to exist.
pub const LOOKBACK_WAIT_STATES: u8 = 64;

/// The manual hazards of a target for a wave size, in families; `None` for generations without a table.
pub(crate) fn hazards(target: &Target, wave_size: u8) -> Option<&'static [&'static [Hazard]]> {
    Some(match target.generation() {
        Generation::Gfx9 if target.processor() == "gfx908" => gfx908::GFX908,
        Generation::Gfx9 => gfx9::GFX9,
        Generation::Gfx90a => gfx9::GFX90A,
        Generation::Gfx940 if target.processor() == "gfx950" => gfx950::GFX950,
        Generation::Gfx940 => gfx9::GFX940,
        Generation::Gfx10 if target.is_gfx10_1() => gfx10::GFX10_1,
        Generation::Gfx10 => gfx10::GFX10_3,
        Generation::Gfx11 => {
            let is_gfx11_5 = target.processor().starts_with("gfx115");
            match wave_size {
                32 if is_gfx11_5 => gfx11::GFX11_5_WAVE32,
                32 => gfx11::WAVE32,
                _ if is_gfx11_5 => gfx11::GFX11_5_WAVE64,
                _ => gfx11::WAVE64,
            }
        }
        Generation::Gfx12 => gfx12::GFX12,
        Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 | Generation::Gfx125 => return None,
    })
}

/// An instruction executed before another one.
#[derive(Clone, Copy, Debug)]
pub struct Preceding<'a> {
    /// The preceding instruction.
    pub inst: &'a Inst,
    /// Wait states between the two.
    pub distance: u8,
}

/// The instructions executed before another one, nearest first, with their distances.
pub fn preceding<'a>(nearest_first: impl IntoIterator<Item = &'a Inst>) -> Vec<Preceding<'a>> {
    let mut distance = 0u8;
    let with_distance = |inst| {
        let preceding = Preceding { inst, distance };
        distance = distance.saturating_add(wait_states(inst));
        preceding
    };
    nearest_first.into_iter().map(with_distance).collect()
}

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

/// The number of wait states of an instruction.
pub fn wait_states(inst: &Inst) -> u8 {
    match inst.operation.opcode() {
        Opcode::SNop => (inst.immediate.unwrap_or_default() & 0xf) as u8 + 1,
        _ => 1,
    }
}

const fn side(group: Group, registers: Registers) -> Side {
    Side { group, registers }
}

/// A hazard that wait states resolve.
const fn hazard(
    wait_states: u8,
    name: &'static str,
    trigger: Side,
    victim: Side,
    condition: Condition,
) -> Hazard {
    let mitigation = MitigationRule::WaitStates(wait_states);
    Hazard { name, trigger, victim, condition, intervening: None, expired_by: &[], mitigation }
}

/// A hazard that an instruction mitigates.
const fn mitigated(
    instruction: fn(&Inst) -> String,
    expired_by: &'static [Expiry],
    name: &'static str,
    trigger: Side,
    victim: Side,
    condition: Condition,
) -> Hazard {
    let mitigation = MitigationRule::Instruction(instruction);
    Hazard { name, trigger, victim, condition, intervening: None, expired_by, mitigation }
}
