//! Vector instructions with which inserted code moves values.

use super::content::Content;
use super::scalar;
use super::state::{Indexing, LaneContents, Location, ScratchSlot, SymbolicState, WrittenLanes};
use crate::checker::facts::Facts;
use flipwave_isa::{
    Class, Encoding, Family, Inst, MemoryKind, MemoryOperand, MemorySpace, Opcode, Operand,
    OutputScale, Register, RegisterRange, RegisterSet, Sgpr, Value,
};

/// Executes an instruction. Returns `None` if only the registers that it writes are known.
pub fn execute(facts: &Facts, state: &mut SymbolicState) -> Option<()> {
    let inst = &facts.inst;
    match facts.opcode() {
        Opcode::VMov
        | Opcode::VMov64
        | Opcode::VAccvgprRead
        | Opcode::VAccvgprWrite
        | Opcode::VAccvgprMov
            if is_plain(inst) && state.indexing() == Indexing::Off =>
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
            let (a, b) = (registers.next()?.first, registers.next()?.first);
            let (contents_a, contents_b) = (state.vector(a), state.vector(b));
            state.write_vector(a, contents_b);
            state.write_vector(b, contents_a);
            Some(())
        }
        Opcode::VAnd if is_plain(inst) && state.indexing() == Indexing::Off => {
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

/// Returns `true` if the instruction has no modifiers that change its sources or result.
fn is_plain(inst: &Inst) -> bool {
    let modifiers = &inst.modifiers;
    let is_plain_operand = |operand: &Operand| !operand.negate && !operand.absolute;
    !modifiers.clamp
        && modifiers.output_scale == OutputScale::None
        && modifiers.op_sel.unwrap_or_default() == 0
        && !matches!(inst.encoding, Encoding::Dpp | Encoding::Sdwa)
        && modifiers.dpp.is_none()
        && modifiers.sdwa.is_none()
        && inst.operands.iter().all(is_plain_operand)
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

/// A word of the first source.
fn source(inst: &Inst, word: u8, state: &SymbolicState) -> LaneContents {
    match inst.sources().next().and_then(|operand| range(&operand.value)) {
        Some(from) if from.first.is_per_lane() => match from.first.offset(word) {
            Some(register) => state.vector(register),
            None => LaneContents::UNKNOWN,
        },
        _ => LaneContents::uniform(scalar::source(inst, 0, word, state)),
    }
}

/// A comparison, whose result has zeros for all lanes that EXEC does not select.
fn compare(facts: &Facts, state: &mut SymbolicState) {
    let narrows = matches!(state.written_lanes(), WrittenLanes::Active | WrittenLanes::SomeActive);
    for range in &facts.inst.writes {
        for (word, register) in range.iter().enumerate() {
            let half = if word == 0 { Register::ExecLo } else { Register::ExecHi };
            let content = if narrows { Content::ExecSubset(half) } else { Content::Unknown };
            state.set_scalar(register, content);
        }
    }
}

/// An access to scratch at an offset that is the same in all lanes.
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
                let contents = state.lane_contents(|lanes| Location::Slot(lanes, slot));
                state.write_vector(register, contents);
            }
        }
        MemoryKind::Store => {
            let (Some(slot), [data]) = (slot, &operand.stored[..]) else {
                // A store to an unknown address.
                state.retain_slots(|_| false);
                return Some(());
            };
            for (word, register) in (0..).zip(data.iter()) {
                let slot = slot.at(word);
                state.retain_slots(|known| *known == slot || known.is_disjoint(&slot));
                let contents = state.vector(register);
                state.write_lanes(|lanes| Location::Slot(lanes, slot), contents);
            }
        }
        MemoryKind::Atomic => state.retain_slots(|_| false),
    }
    Some(())
}

/// The registers that hold the scratch resource by the calling convention.
const SCRATCH_RESOURCE: RegisterRange = RegisterRange { first: Register::Sgpr(Sgpr(0)), words: 4 };

/// The slot that an instruction accesses, if its address uses no vector register.
fn slot(operand: &MemoryOperand, state: &SymbolicState) -> Option<ScratchSlot> {
    let resource = operand.resource.map(|range| range.first);
    let mut words = operand.resource.into_iter().flat_map(|range| range.iter());
    if operand.vaddr.is_some()
        || operand.offen
        || operand.idxen
        || words.any(|word| state.scalar(word) != Content::Initial(word))
    {
        return None;
    }
    let base = operand.saddr.or(operand.soffset);
    let base = base.map_or(Content::Constant(0), |range| state.scalar(range.first));
    let [offset] = operand.offsets[..] else { return None };
    ScratchSlot { resource, base, offset }.normalized()
}

impl ScratchSlot {
    /// Moves a constant base to the offset. Returns `None` if the base is unknown.
    fn normalized(self) -> Option<ScratchSlot> {
        match self.base {
            Content::Unknown => None,
            Content::Constant(base) => Some(ScratchSlot {
                base: Content::Constant(0),
                offset: self.offset + i64::from(base),
                ..self
            }),
            _ => Some(self),
        }
    }

    /// The slot `words` words behind this one.
    fn at(self, words: i64) -> ScratchSlot {
        ScratchSlot { offset: self.offset + 4 * words, ..self }
    }

    /// Returns `true` if the slots have no byte in common.
    fn is_disjoint(&self, other: &ScratchSlot) -> bool {
        self.resource == other.resource
            && self.base == other.base
            && self.offset.abs_diff(other.offset) >= 4
    }
}

/// Forgets the registers that an instruction may write through an index in M0.
pub fn indexed_writes(facts: &Facts, state: &mut SymbolicState) {
    let operation = facts.inst.operation;
    let writes_vectors = operation.is(Family::VectorMovrel)
        || (state.indexing() == Indexing::Inserted && facts.inst.class() == Class::Valu);
    let written = if writes_vectors {
        RegisterSet::VGPRS
    } else if operation.is(Family::ScalarMovrelDestination) {
        (0..106).map(|n| Register::Sgpr(Sgpr(n))).collect()
    } else {
        return;
    };
    for register in written.iter() {
        if register.is_per_lane() {
            state.write_vector(register, LaneContents::UNKNOWN);
        } else {
            state.set_scalar(register, Content::Unknown);
        }
    }
}
