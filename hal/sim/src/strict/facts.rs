//! What the rules need of an instruction, worked out once.

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

/// What the rules need of an instruction.
#[derive(Debug)]
pub struct Facts {
    /// The instruction.
    pub inst: Inst,
    /// The code object it belongs to.
    pub module: ModuleId,
    /// The registers that it names.
    pub named: Named,
    /// The counters it counts in.
    pub counted: &'static [(Counter, Queue)],
    /// What it waits for.
    pub waits: Option<WaitCounts>,
    /// What it proves to have come back besides.
    pub settles: Option<Queue>,
    /// Wait states it takes.
    pub wait_states: u8,
    /// The hazards, by number, that it may set up.
    pub triggers: u64,
    /// The hazards that it may run into.
    pub runs_into: u64,
    /// The register of a shift's amount that needs the next one allocated.
    pub amount_in_last_register: Option<Vgpr>,
    /// Sources that a dual instruction cannot read at once.
    pub bank_conflict: Option<[RegisterRange; 2]>,
    /// What it is to clauses.
    pub clause: InClause,
    /// Whether it gives the wave's vector registers back.
    pub deallocates: bool,
    /// A vector load that may follow another one into the same registers.
    pub loads_in_order: bool,
    /// Whether it waits for both halves of a register of which it names one.
    pub waits_for_whole_registers: bool,
    /// What expert scheduling mode counts it with.
    pub pipe: Option<Pipe>,
    /// What it waits for in expert scheduling mode.
    pub alu_wait: Option<AluWait>,
    /// The hardware bug that it triggers whatever its registers hold.
    pub chip_bug: Option<ChipBug>,
}

/// What an instruction is to clauses.
#[derive(Debug)]
pub struct InClause {
    /// The kind of clause that it may belong to.
    pub kind: Option<clause::Kind>,
    /// Whether it may stand in any.
    pub is_internal: bool,
    /// Instructions of the clause that it begins.
    pub length: Option<u8>,
}

impl Facts {
    /// The facts of an instruction on a target with these rules.
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
            settles: rules.counters.completed_queue(inst),
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

    /// The instruction as reports name it.
    pub fn instruction(&self) -> Instruction {
        Instruction { module: self.module, pc: self.inst.pc, text: self.inst.text.clone() }
    }
}
