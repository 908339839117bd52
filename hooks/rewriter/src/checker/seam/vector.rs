//! Vector instructions, as far as inserted code moves values with them.

use super::content::Content;
use super::scalar;
use super::state::{Indexing, Location, Plane, Reach, Slot, SymbolicState};
use crate::checker::facts::Facts;
use flipwave_isa::{
    Class, Encoding, Family, Inst, MemoryKind, MemoryOperand, MemorySpace, Opcode, Operand,
    OutputScale, Register, RegisterRange, RegisterSet, Sgpr, Value,
};

/// Executes an instruction, if it is one that is followed more closely than by what it writes.
pub fn execute(facts: &Facts, state: &mut SymbolicState) -> Option<()> {
    let inst = &facts.inst;
    match facts.opcode() {
        Opcode::VMov
        | Opcode::VMov64
        | Opcode::VAccvgprRead
        | Opcode::VAccvgprWrite
        | Opcode::VAccvgprMov
            if moves(inst) && state.indexing() == Indexing::Off =>
        {
            let to = destination(inst)?;
            let contents: Vec<_> = (0..to.words).map(|word| source(inst, word, state)).collect();
            for (register, contents) in to.iter().zip(contents) {
                state.write_vector(register, contents);
            }
            Some(())
        }
        Opcode::VSwap if state.indexing() == Indexing::Off => {
            let mut registers = inst.destinations().filter_map(|operand| range(&operand.value));
            let (one, two) = (registers.next()?.first, registers.next()?.first);
            let (first, second) = (state.vector(one), state.vector(two));
            state.write_vector(one, second);
            state.write_vector(two, first);
            Some(())
        }
        Opcode::VAnd if moves(inst) && state.indexing() == Indexing::Off => {
            let mask = scalar::source(inst, 0, 0, state);
            let from = range(&inst.sources().nth(1)?.value)?.first;
            let contents = state.vector(from).map(|content| content.masked(mask));
            state.write_vector(destination(inst)?.first, contents);
            Some(())
        }
        Opcode::VWritelane => {
            let (value, lane) =
                (scalar::source(inst, 0, 0, state), scalar::source(inst, 1, 0, state));
            state.write_lane(destination(inst)?.first, lane, value);
            Some(())
        }
        Opcode::VReadlane => {
            let from = range(&inst.sources().next()?.value)?.first;
            let value = match state.lane(from, scalar::source(inst, 1, 0, state)) {
                Content::Unknown => state.uniform(from),
                value => value,
            };
            state.set_scalar(destination(inst)?.first, value);
            Some(())
        }
        Opcode::VReadfirstlane => {
            let from = range(&inst.sources().next()?.value)?.first;
            let value = state.uniform(from);
            state.set_scalar(destination(inst)?.first, value);
            Some(())
        }
        _ if inst.operation.is(Family::Compare) => {
            compare(facts, state);
            Some(())
        }
        _ if inst.class() == Class::Vmem => scratch(inst, state),
        _ => None,
    }
}

/// Whether the instruction copies its source as it is.
fn moves(inst: &Inst) -> bool {
    let modifiers = &inst.modifiers;
    let is_plain = |operand: &Operand| !operand.negate && !operand.absolute;
    !modifiers.clamp
        && modifiers.output_scale == OutputScale::None
        && modifiers.op_sel.unwrap_or_default() == 0
        && !matches!(inst.encoding, Encoding::Dpp | Encoding::Sdwa)
        && modifiers.dpp.is_none()
        && modifiers.sdwa.is_none()
        && inst.operands.iter().all(is_plain)
}

fn range(value: &Value) -> Option<RegisterRange> {
    match value {
        Value::Register(range) => Some(*range),
        _ => None,
    }
}

fn destination(inst: &Inst) -> Option<RegisterRange> {
    range(&inst.destinations().next()?.value)
}

/// A word of the first source, in the active and in the masked lanes.
fn source(inst: &Inst, word: u8, state: &SymbolicState) -> [Content; 2] {
    match inst.sources().next().and_then(|operand| range(&operand.value)) {
        Some(from) if from.first.is_per_lane() => match from.first.offset(word) {
            Some(register) => state.vector(register),
            None => [Content::Unknown; 2],
        },
        _ => [scalar::source(inst, 0, word, state); 2],
    }
}

/// A comparison has a bit for each lane that EXEC selects, and zeros for the others.
fn compare(facts: &Facts, state: &mut SymbolicState) {
    let narrows = matches!(state.reach(), Reach::Active | Reach::Some);
    for range in &facts.inst.writes {
        for (word, register) in range.iter().enumerate() {
            let half = if word == 0 { Register::ExecLo } else { Register::ExecHi };
            let content = if narrows { Content::Within(half) } else { Content::Unknown };
            state.set_scalar(register, content);
        }
    }
}

/// Scratch that every lane addresses the same way.
fn scratch(inst: &Inst, state: &mut SymbolicState) -> Option<()> {
    let operand = inst.memory_operand()?;
    let is_scratch = match operand.access.space {
        MemorySpace::Scratch => true,
        MemorySpace::Buffer => operand.resource == Some(SCRATCH_RESOURCE),
        _ => false,
    };
    if !is_scratch {
        return None;
    }
    let is_whole = operand.access.bytes.is_multiple_of(4) && !operand.to_lds;
    let slot = slot(&operand, state).filter(|_| is_whole);
    match operand.access.kind {
        MemoryKind::Load => {
            let slot = slot?;
            for (word, register) in (0..).zip(operand.loaded?.iter()) {
                let slot = slot.at(word);
                let contents = Plane::ALL.map(|plane| state.get(Location::Slot(plane, slot)));
                state.write_vector(register, contents);
            }
        }
        MemoryKind::Store => {
            let (Some(slot), [data]) = (slot, &operand.stored[..]) else {
                // Its address is not known.
                state.retain_slots(|_| false);
                return Some(());
            };
            for (word, register) in (0..).zip(data.iter()) {
                let slot = slot.at(word);
                state.retain_slots(|other| *other == slot || other.is_apart(&slot));
                let contents = state.vector(register);
                state.write_lanes(|plane| Location::Slot(plane, slot), contents);
            }
        }
        MemoryKind::Atomic => state.retain_slots(|_| false),
    }
    Some(())
}

/// Where the resource of scratch is, by the calling convention.
const SCRATCH_RESOURCE: RegisterRange = RegisterRange { first: Register::Sgpr(Sgpr(0)), words: 4 };

/// The slot that an access goes to, if no vector register is in its address.
fn slot(operand: &MemoryOperand, state: &SymbolicState) -> Option<Slot> {
    let resource = operand.resource.map(|range| range.first);
    let mut words = operand.resource.into_iter().flat_map(|range| range.iter());
    if operand.vaddr.is_some()
        || operand.offen
        || operand.idxen
        || words.any(|word| state.scalar(word) != Content::Own(word))
    {
        return None;
    }
    let base = operand.saddr.or(operand.soffset);
    let base = base.map_or(Content::Constant(0), |range| state.scalar(range.first));
    let [offset] = operand.offsets[..] else { return None };
    Slot { resource, base, offset }.known()
}

impl Slot {
    /// With what is known of the base moved to the offset; nothing where the base is unknown.
    fn known(self) -> Option<Slot> {
        match self.base {
            Content::Unknown => None,
            Content::Constant(base) => Some(Slot {
                base: Content::Constant(0),
                offset: self.offset + i64::from(base),
                ..self
            }),
            _ => Some(self),
        }
    }

    /// The dword at a distance, in words.
    fn at(self, words: i64) -> Slot {
        Slot { offset: self.offset + 4 * words, ..self }
    }

    /// Whether the two have no byte in common.
    fn is_apart(&self, other: &Slot) -> bool {
        self.resource == other.resource
            && self.base == other.base
            && self.offset.abs_diff(other.offset) >= 4
    }
}

/// What an instruction changes besides the registers it names: through an index in M0.
pub fn indexed_writes(facts: &Facts, state: &mut SymbolicState) {
    let operation = facts.inst.operation;
    let moves_vectors = operation.is(Family::VectorMovrel)
        || (state.indexing() == Indexing::On && facts.inst.class() == Class::Valu);
    let written = if moves_vectors {
        RegisterSet::VGPRS
    } else if operation.is(Family::ScalarMovrelDestination) {
        (0..106).map(|n| Register::Sgpr(Sgpr(n))).collect()
    } else {
        return;
    };
    for register in written.iter() {
        if register.is_per_lane() {
            state.write_vector(register, [Content::Unknown; 2]);
        } else {
            state.set_scalar(register, Content::Unknown);
        }
    }
}
