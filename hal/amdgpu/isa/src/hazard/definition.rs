//! Definition of hazards: the rows of the tables.

use super::{Group, Preceding, Registers};
use crate::{Inst, RegisterRange};

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

/// The rule that gives the [`Mitigation`](super::Mitigation) of a hazard.
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
    pub(super) fn is_expired_by_one(&self, inst: &Inst) -> bool {
        self.expired_by.iter().any(|expiry| expiry.count == 1 && expiry.group.contains(inst))
    }

    /// Returns `true` if the instructions between trigger and victim resolve the hazard.
    pub(super) fn is_expired_by(&self, between: &[Preceding<'_>]) -> bool {
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

/// A trigger or victim.
pub(super) const fn side(group: Group, registers: Registers) -> Side {
    Side { group, registers }
}

/// A hazard that wait states resolve.
pub(super) const fn hazard(
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
pub(super) const fn mitigated(
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
