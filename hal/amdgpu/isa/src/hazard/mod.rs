//! Manual hazards: instructions that the hardware does not keep apart, so that the program must
//! (the ISA documents, "Manually inserted wait states"; from gfx10 on LLVM alone says them). One
//! table per generation says "triggered by / broken by / ended or mitigated by"; LLVM's
//! `GCNHazardRecognizer` is the authority of each row, and a test asks it.

mod gfx10;
mod gfx11;
mod gfx12;
mod gfx9;
mod gfx908;
mod gfx950;
mod group;
mod matrix;
mod mitigation;
mod mixed_reads;
mod part;
mod pattern;
mod roles;
mod scalar_reads;
mod shift;

pub use group::Group;
pub(crate) use matrix::MatrixShape;
pub use mitigation::{Mitigation, mitigations};
pub use mixed_reads::{Author, MixedReads};
pub use part::Part;
pub use roles::{OpenRows, Roles, Rows};
pub use scalar_reads::{ScalarReads, ScalarWait};
pub use shift::amount_in_last_register;

use crate::{Generation, Half, Inst, Opcode, Operand, RegisterRange, Target};

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
    /// Instructions between the two that end it.
    pub ends: &'static [End],
    /// What must lie between them otherwise.
    pub remedy: Remedy,
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
#[derive(Clone, Copy, Debug)]
pub enum Meeting {
    /// They need not.
    Always,
    /// Their registers overlap.
    Overlap,
    /// Their registers overlap, and so do the halves of them that they name: LLVM has `v1.l` and `v1.h`
    /// for registers of their own.
    OverlapOfHalves,
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
    /// They are the ends of a pattern of more than two instructions, which this finds.
    Pattern(Pattern),
}

/// Finds the trigger, by its index in what lies before the victim, and the registers in which the
/// two meet.
pub type Pattern = fn(&[Preceding<'_>], &Inst) -> Option<(usize, Vec<RegisterRange>)>;

/// A number of instructions of a kind, which end a hazard.
#[derive(Debug)]
pub struct End {
    /// The kind.
    pub group: Group,
    /// How many.
    pub count: u8,
}

/// What must lie between the instructions of a hazard.
#[derive(Clone, Copy, Debug)]
pub enum Remedy {
    /// This many wait states. Each instruction is one, `s_nop N` is N + 1.
    WaitStates(u8),
    /// As many wait states as the trigger, a matrix operation, makes necessary.
    OfTrigger(fn(&Inst) -> u8),
    /// An instruction, as the assembler writes it; the victim may have a say in its registers.
    Instruction(fn(&Inst) -> String),
}

impl Hazard {
    /// The wait states that must lie after a trigger; none where wait states are not what helps.
    pub fn wait_states(&self, trigger: &Inst) -> u8 {
        match self.remedy {
            Remedy::WaitStates(states) => states,
            Remedy::OfTrigger(states) => states(trigger),
            Remedy::Instruction(_) => 0,
        }
    }

    /// Whether what sets it up may lie further back than all of these instructions, which were executed
    /// before a victim: distance does not end it, and none of them does.
    pub fn may_begin_before(&self, seen: &[Preceding<'_>]) -> bool {
        self.reach().is_none() && !self.is_ended_by(seen)
    }

    /// Whether an instruction between its two ends it by itself.
    fn is_ended_by_one(&self, inst: &Inst) -> bool {
        self.ends.iter().any(|end| end.count == 1 && end.group.contains(inst))
    }

    /// Whether instructions between its two end it.
    fn is_ended_by(&self, between: &[Preceding<'_>]) -> bool {
        let of = |group: Group| between.iter().filter(move |own| group.contains(own.inst)).count();
        self.ends.iter().any(|end| of(end.group) >= usize::from(end.count))
    }

    /// The most wait states that it may need; none where wait states are not what helps, and what
    /// was executed any time before counts.
    pub fn reach(&self) -> Option<u8> {
        match self.remedy {
            Remedy::WaitStates(states) => Some(states),
            Remedy::OfTrigger(_) => Some(MOST_WAIT_STATES),
            Remedy::Instruction(_) => None,
        }
    }
}

/// Most wait states that any hazard needs. What lies further back matters only for hazards that
/// wait states do not end.
pub const MOST_WAIT_STATES: u8 = 20;

/// Wait states that are looked back over for hazards that wait states do not end. What may have begun
/// further back is taken to have.
pub const FAR_WAIT_STATES: u8 = 64;

/// The manual hazards of a target's waves, in families; `None` for generations that have no table.
pub(crate) fn hazards(target: &Target, wave_size: u8) -> Option<&'static [&'static [Hazard]]> {
    Some(match target.generation() {
        Generation::Gfx9 if target.processor() == "gfx908" => gfx908::GFX908,
        Generation::Gfx9 => gfx9::GFX9,
        Generation::Gfx90a => gfx9::GFX90A,
        Generation::Gfx940 if target.processor() == "gfx950" => gfx950::GFX950,
        Generation::Gfx940 => gfx9::GFX940,
        Generation::Gfx10 if target.is_gfx10_1() => gfx10::GFX10_1,
        Generation::Gfx10 => gfx10::GFX10_3,
        Generation::Gfx11 => match (target.processor().starts_with("gfx115"), wave_size) {
            (false, 32) => gfx11::WAVE32,
            (false, _) => gfx11::WAVE64,
            (true, 32) => gfx11::GFX11_5_WAVE32,
            (true, _) => gfx11::GFX11_5_WAVE64,
        },
        Generation::Gfx12 => gfx12::GFX12,
        Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 | Generation::Gfx125 => return None,
    })
}

/// An instruction that was executed before another.
#[derive(Clone, Copy, Debug)]
pub struct Preceding<'a> {
    /// The instruction.
    pub inst: &'a Inst,
    /// Wait states between the two.
    pub distance: u8,
}

/// Instructions executed before another, given from the nearest back, with their distances.
pub fn preceding<'a>(nearest_first: impl IntoIterator<Item = &'a Inst>) -> Vec<Preceding<'a>> {
    let mut distance = 0u8;
    let place = |inst| {
        let own = Preceding { inst, distance };
        distance = distance.saturating_add(wait_states(inst));
        own
    };
    nearest_first.into_iter().map(place).collect()
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
    /// What must lie between the two.
    pub needed: Mitigation,
}

/// The hazards of a family whose victim is `inst`, given what was executed before it, the nearest
/// first. The nearest trigger on the same registers alone counts.
pub fn breaches(family: &'static [Hazard], before: &[Preceding<'_>], inst: &Inst) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let own = |hazard: &&'static Hazard| hazard.victim.group.contains(inst);
    let rows: Vec<&'static Hazard> = family.iter().filter(own).collect();
    for hazard in &rows {
        let found = match hazard.meeting {
            Meeting::Pattern(pattern) => pattern(before, inst),
            _ if hazard.victim.part == Part::Nothing => before
                .iter()
                .position(|trigger| hazard.is_met_by(trigger.inst, inst))
                .map(|trigger| (trigger, Vec::new())),
            _ => None,
        };
        breaches
            .extend(found.and_then(|(at, registers)| hazard.breach(before, at, inst, registers)));
    }
    let mut parts: Vec<Part> = rows.iter().map(|hazard| hazard.victim.part).collect();
    parts.dedup();
    for part in parts.into_iter().filter(|part| *part != Part::Nothing) {
        let rows = || rows.iter().filter(|hazard| hazard.victim.part == part);
        for range in part.registers(inst) {
            let touches = |hazard: &Hazard, trigger: &Inst| {
                hazard.trigger.group.contains(trigger)
                    && hazard.trigger.part.registers(trigger).iter().any(|own| own.overlaps(range))
            };
            let nearest = before
                .iter()
                .position(|trigger| rows().any(|hazard| touches(hazard, trigger.inst)));
            let Some(trigger) = nearest else { continue };
            let first = before[trigger].inst;
            for hazard in rows().filter(|hazard| touches(hazard, first)) {
                if hazard.meets(first, inst, range) {
                    breaches.extend(hazard.breach(before, trigger, inst, vec![range]));
                }
            }
        }
    }
    breaches
}

/// Whether a breach of two instructions of a program is none of the program's own: another instruction
/// between them, which a rewriter has inserted, has made it one. `own` gives the program's instructions
/// before the victim, the nearest first.
pub fn is_completed<'a>(
    breach: &Breach,
    trigger: &Inst,
    victim: &Inst,
    own: impl Iterator<Item = &'a Inst>,
) -> bool {
    if breach.hazard.across.is_none() {
        return false;
    }
    let before = preceding(own);
    let breaches = breaches(std::slice::from_ref(breach.hazard), &before, victim);
    !breaches.iter().any(|found| std::ptr::eq(before[found.trigger].inst, trigger))
}

/// Whether of a register one instruction writes one half, and another reads nothing but the other half.
fn are_halves_apart(trigger: &Inst, victim: &Inst, range: RegisterRange) -> bool {
    let halves = |operand: &Operand| {
        let own = part::register(&operand.value).filter(|own| own.overlaps(range))?;
        Some((own == range).then_some(operand.half).flatten())
    };
    let written: Vec<Option<Half>> = trigger.destinations().filter_map(halves).collect();
    let read: Vec<Option<Half>> = victim.sources().filter_map(halves).collect();
    let [Some(written)] = written[..] else { return false };
    !victim.flags.tied
        && !read.is_empty()
        && read.iter().all(|read| read.is_some_and(|read| read != written))
}

impl Hazard {
    /// Whether two instructions of a hazard without registers are its trigger and its victim.
    fn is_met_by(&self, trigger: &Inst, victim: &Inst) -> bool {
        let hardware_register = |inst: &Inst| inst.immediate.map(|immediate| immediate & 63);
        self.trigger.group.contains(trigger)
            && (!matches!(self.meeting, Meeting::HardwareRegister)
                || hardware_register(trigger) == hardware_register(victim))
    }

    /// Whether a trigger and a victim that touch `range` both meet as the hazard demands.
    fn meets(&self, trigger: &Inst, victim: &Inst, range: RegisterRange) -> bool {
        let named = || self.trigger.part.registers(trigger).contains(&range);
        match self.meeting {
            Meeting::OverlapOfOthers => trigger.opcode_name != victim.opcode_name,
            Meeting::OverlapOfSame => trigger.opcode_name == victim.opcode_name,
            Meeting::OverlapOfHalves => !are_halves_apart(trigger, victim, range),
            Meeting::Same => named(),
            Meeting::Partial => !named(),
            Meeting::Always | Meeting::Overlap | Meeting::HardwareRegister => true,
            Meeting::Pattern(_) => false,
        }
    }

    /// The breach of a trigger and a victim that meet, unless what lies between them prevents it.
    fn breach(
        &'static self,
        before: &[Preceding<'_>],
        trigger: usize,
        victim: &Inst,
        registers: Vec<RegisterRange>,
    ) -> Option<Breach> {
        let first = before.get(trigger)?;
        let between = &before[..trigger];
        let is_across = |group: Group| between.iter().any(|own| group.contains(own.inst));
        if self.across.is_some_and(|group| !is_across(group)) || self.is_ended_by(between) {
            return None;
        }
        let needed = match self.remedy {
            Remedy::Instruction(text) => Mitigation::Instruction(text(victim)),
            _ => Mitigation::WaitStates(self.wait_states(first.inst)),
        };
        let is_far = matches!(needed, Mitigation::WaitStates(states) if states <= first.distance);
        (!is_far).then_some(Breach { hazard: self, trigger, registers, needed })
    }
}

/// Wait states that an instruction takes in the count of hazards.
pub fn wait_states(inst: &Inst) -> u8 {
    match inst.operation.opcode() {
        Opcode::SNop => (inst.immediate.unwrap_or_default() & 0xf) as u8 + 1,
        _ => 1,
    }
}

const fn side(group: Group, part: Part) -> Side {
    Side { group, part }
}

/// A hazard that wait states end.
const fn hazard(
    wait_states: u8,
    name: &'static str,
    trigger: Side,
    victim: Side,
    meeting: Meeting,
) -> Hazard {
    let remedy = Remedy::WaitStates(wait_states);
    Hazard { name, trigger, victim, meeting, across: None, ends: &[], remedy }
}

/// A hazard that an instruction ends.
const fn mitigated(
    remedy: fn(&Inst) -> String,
    ends: &'static [End],
    name: &'static str,
    trigger: Side,
    victim: Side,
    meeting: Meeting,
) -> Hazard {
    let remedy = Remedy::Instruction(remedy);
    Hazard { name, trigger, victim, meeting, across: None, ends, remedy }
}
