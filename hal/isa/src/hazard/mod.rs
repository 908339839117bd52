//! Manual hazards: pairs of instructions that the hardware does not keep apart, so that the
//! program must (MI200 ISA, "Manually inserted wait states"). One table per generation says
//! "triggered by / needs so many wait states before"; LLVM's `GCNHazardRecognizer` is the
//! authority of each row, and a test asks it.

mod group;
mod part;
mod table;

pub use group::Group;
pub use part::Part;
pub use table::hazards;

use crate::{Inst, RegisterRange};

/// One hazard: the second instruction must not follow the first too closely.
#[derive(Debug)]
pub struct Hazard {
    /// What happens, as reports say it.
    pub name: &'static str,
    /// The instruction that sets it up.
    pub trigger: Side,
    /// The instruction that must keep its distance.
    pub victim: Side,
    /// How the two must meet.
    pub meeting: Meeting,
    /// A third kind of instruction that must lie between them.
    pub across: Option<Group>,
    /// Wait states that must lie between them. Each instruction is one, `s_nop N` is N + 1.
    pub wait_states: u8,
}

/// One of the instructions of a hazard.
#[derive(Debug)]
pub struct Side {
    /// Which instructions.
    pub group: Group,
    /// Which of their registers.
    pub part: Part,
}

/// How trigger and victim must meet for a hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// They need not.
    Always,
    /// Their registers overlap.
    Overlap,
    /// Their registers overlap, and the operations differ.
    OverlapOfOthers,
    /// Their registers overlap, and the operations are the same.
    OverlapOfSame,
    /// They name the same registers.
    Same,
    /// They name overlapping registers that are not the same.
    Partial,
    /// They name the same hardware register (`hwreg`).
    HardwareRegister,
}

/// An instruction that was executed before another.
#[derive(Clone, Copy, Debug)]
pub struct Preceding<'a> {
    /// The instruction.
    pub inst: &'a Inst,
    /// Wait states between the two.
    pub distance: u8,
}

/// A hazard that was not kept.
#[derive(Debug)]
pub struct Breach {
    /// The hazard.
    pub hazard: &'static Hazard,
    /// Index of the instruction that set it up, in what was looked through.
    pub trigger: usize,
    /// Registers in which the two meet; none for hazards without registers.
    pub registers: Vec<RegisterRange>,
}

/// The hazards of a family whose victim is `inst`, given what was executed before it, the nearest
/// first. The nearest trigger on the same registers alone counts.
pub fn breaches(family: &'static [Hazard], before: &[Preceding<'_>], inst: &Inst) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let rows = || family.iter().filter(|hazard| hazard.victim.group.contains(inst));
    for hazard in rows().filter(|hazard| hazard.victim.part == Part::Nothing) {
        let trigger = before.iter().position(|trigger| hazard.is_met_by(trigger.inst, inst));
        if let Some(trigger) = trigger.filter(|at| before[*at].distance < hazard.wait_states) {
            breaches.push(Breach { hazard, trigger, registers: Vec::new() });
        }
    }
    let mut parts: Vec<Part> = rows().map(|hazard| hazard.victim.part).collect();
    parts.dedup();
    for part in parts.into_iter().filter(|part| *part != Part::Nothing) {
        let rows = || rows().filter(|hazard| hazard.victim.part == part);
        for range in part.registers(inst) {
            let touches = |hazard: &Hazard, trigger: &Inst| {
                hazard.trigger.group.contains(trigger)
                    && hazard.trigger.part.registers(trigger).iter().any(|own| own.overlaps(range))
            };
            let nearest = before
                .iter()
                .position(|trigger| rows().any(|hazard| touches(hazard, trigger.inst)));
            let Some(trigger) = nearest else { continue };
            let Preceding { inst: first, distance } = before[trigger];
            for hazard in rows().filter(|hazard| distance < hazard.wait_states) {
                let across = &before[..trigger];
                if touches(hazard, first)
                    && hazard.meets(first, inst, range)
                    && hazard.across.is_none_or(|group| {
                        across.iter().any(|between| group.contains(between.inst))
                    })
                {
                    breaches.push(Breach { hazard, trigger, registers: vec![range] });
                }
            }
        }
    }
    breaches
}

impl Hazard {
    /// Whether two instructions of a hazard without registers are its trigger and its victim.
    fn is_met_by(&self, trigger: &Inst, victim: &Inst) -> bool {
        let hardware_register = |inst: &Inst| inst.immediate.map(|immediate| immediate & 63);
        self.trigger.group.contains(trigger)
            && (self.meeting != Meeting::HardwareRegister
                || hardware_register(trigger) == hardware_register(victim))
    }

    /// Whether a trigger and a victim that touch `range` both meet as the hazard demands.
    fn meets(&self, trigger: &Inst, victim: &Inst, range: RegisterRange) -> bool {
        let named = || self.trigger.part.registers(trigger).contains(&range);
        match self.meeting {
            Meeting::OverlapOfOthers => trigger.opcode_name != victim.opcode_name,
            Meeting::OverlapOfSame => trigger.opcode_name == victim.opcode_name,
            Meeting::Same => named(),
            Meeting::Partial => !named(),
            Meeting::Always | Meeting::Overlap | Meeting::HardwareRegister => true,
        }
    }
}

/// Wait states that an instruction takes in the count of hazards.
pub fn wait_states(inst: &Inst) -> u8 {
    match inst.operation.name() {
        "s_nop" => (inst.immediate.unwrap_or_default() & 0xf) as u8 + 1,
        _ => 1,
    }
}
