//! Properties of an instruction for the rules, computed once.

use super::violation::Instruction;
use crate::shadow::Named;
use crate::wave::Machine;
use flipwave_device::ModuleId;
use flipwave_isa::clause;
use flipwave_isa::counter::expert::{AluWait, Pipe};
use flipwave_isa::counter::{Counter, Queue, WaitCounts};
use flipwave_isa::hazard::{shift64_high_reg_bug, wait_states};
use flipwave_isa::message::deallocates_vgprs;
use flipwave_isa::vopd::bank_conflict;
use flipwave_isa::{ChipBug, Inst, RegisterRange, Rules, Target, Vgpr};

/// Properties of an instruction that the rules need.
#[derive(Debug)]
pub struct Facts {
    /// The instruction.
    pub inst: Inst,
    /// Code object that contains it.
    pub module: ModuleId,
    /// Registers that it names.
    pub named: Named,
    /// Counters that count it.
    pub counted: &'static [(Counter, Queue)],
    /// Counts that it waits for.
    pub waits: Option<WaitCounts>,
    /// Queues that it additionally proves to be complete.
    pub settles: &'static [Queue],
    /// Wait states that it takes.
    pub wait_states: u8,
    /// Hazards that it may trigger, as a bit set of their numbers.
    pub triggers: u64,
    /// Hazards that may affect it, as a bit set.
    pub runs_into: u64,
    /// Register of a shift amount that requires the next register to be allocated.
    pub amount_in_last_register: Option<Vgpr>,
    /// Sources of a dual instruction that are in the same bank.
    pub bank_conflict: Option<[RegisterRange; 2]>,
    /// Role in clauses.
    pub clause: InClause,
    /// `true` if it deallocates the wave's vector registers.
    pub deallocates: bool,
    /// `true` if it is a vector load that may follow another one into the same registers.
    pub loads_in_order: bool,
    /// `true` if it waits for both halves of a register although it names one.
    pub waits_for_whole_registers: bool,
    /// Pipe in expert scheduling mode.
    pub pipe: Option<Pipe>,
    /// Wait of expert scheduling mode.
    pub alu_wait: Option<AluWait>,
    /// Hardware bug that it triggers regardless of register values.
    pub chip_bug: Option<ChipBug>,
}

/// Role of an instruction in clauses.
#[derive(Debug)]
pub struct InClause {
    /// Kind of clause that it may belong to.
    pub kind: Option<clause::Kind>,
    /// `true` if it is allowed in any clause.
    pub is_internal: bool,
    /// Length of the clause that it starts.
    pub length: Option<u8>,
}

impl Facts {
    /// Computes the properties of an instruction on a target with these rules.
    pub fn of(
        target: &Target,
        rules: &Rules,
        inst: &Inst,
        module: ModuleId,
        machine: Machine,
    ) -> Facts {
        let mut facts = Facts {
            inst: inst.clone(),
            module,
            named: Named::of(inst, machine),
            counted: rules.counters.incremented_by(inst),
            waits: rules.counters.wait_counts(inst),
            settles: rules.counters.completed_queues(inst),
            wait_states: wait_states(inst),
            triggers: 0,
            runs_into: 0,
            amount_in_last_register: shift64_high_reg_bug(target, inst),
            bank_conflict: bank_conflict(target, inst),
            clause: InClause {
                kind: clause::kind(target, inst),
                is_internal: clause::is_internal(inst),
                length: clause::length(inst),
            },
            deallocates: deallocates_vgprs(target, inst),
            loads_in_order: rules.counters.is_in_order_load(inst),
            waits_for_whole_registers: rules.counters.waits_for_whole_registers(inst),
            pipe: Pipe::of(inst),
            alu_wait: AluWait::of(inst),
            chip_bug: ChipBug::of(target, inst),
        };
        for (number, hazard) in rules.hazards.iter().copied().flatten().enumerate() {
            facts.triggers |= u64::from(hazard.trigger.group.contains(inst)) << number;
            facts.runs_into |= u64::from(hazard.victim.group.contains(inst)) << number;
        }
        facts
    }

    /// The instruction for reports.
    pub fn instruction(&self) -> Instruction {
        Instruction { module: self.module, pc: self.inst.pc, text: self.inst.text.clone() }
    }
}
