//! What results in doubt may decide, as far as the code shows. They are followed through the code in all
//! ways that waves may take, through registers; where they may be in memory, or in LDS, any load may load
//! them.
//!
//! Of results that are not settled it is enough to know whether they may decide anything: if not, there is
//! nothing to follow when the code is executed. Of results within an error all that they may decide is
//! found here, and what is executed only counts it.

use crate::execute::hardware_register::mode_bits;
use crate::instruction::control::Control;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{self, Transfer};
use crate::instruction::{Op, Run, Word, scalar_memory};
use crate::shadow::{Named, Purpose, SlotSet, decided_by, register};
use crate::translate::coverage::{is_within_error, unsettled_bits};
use crate::translate::program::Program;
use crate::wave::{Machine, ScalarIndex};
use flipwave_isa::{
    Control as Course, ExecChange, Family, Opcode, Pc, Register, RegisterRange, Value,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Why a result is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doubt {
    /// No document settles all of its bits.
    NotSettled,
    /// It is within an error.
    WithinError,
}

/// Results that are followed through code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sources {
    /// Those that are not settled.
    NotSettled,
    /// Those within an error, but for [`Sources::Quotients`].
    WithinError,
    /// Results of `v_rcp_iflag_f32`, which compilers use for quotients of integers alone.
    Quotients,
}

impl Sources {
    fn contain(self, op: &Op, machine: Machine) -> bool {
        let is_quotient = op.inst.operation.opcode() == Opcode::VRcpIflag;
        match self {
            Sources::NotSettled => unsettled_bits(op, machine) != 0,
            Sources::WithinError => !is_quotient && is_within_error(op, machine),
            Sources::Quotients => is_quotient && is_within_error(op, machine),
        }
    }
}

/// What results may decide: an instruction, and what about it; with the registers that hold them.
pub type Consequences = BTreeMap<(Pc, Purpose), Vec<RegisterRange>>;

/// What results within an error may decide in a kernel that starts at a device address. They are followed
/// through registers, from the instruction that computes them to integers: what these decide is not
/// followed. Nor is what is behind calls, or loaded from memory.
pub fn consequences(program: &Program, start: u64) -> Consequences {
    let mut found = Consequences::new();
    for sources in [Sources::WithinError, Sources::Quotients] {
        let mut walk = Walk { program, sources, marks: Marks::default(), found: Some(&mut found) };
        // It goes as far as the code is understood.
        _ = walk.walk(start, State::START);
    }
    found
}

/// Whether the course of all waves of a kernel that starts at a device address is the same whatever the
/// results are that are not settled: of its own operations, and in memory, if earlier dispatches may have
/// left some there. `pointers` are the scalar registers that hold addresses of what the host has written
/// for the kernel alone: its arguments and its packet.
pub fn is_settled(
    program: &Program,
    start: u64,
    pointers: impl IntoIterator<Item = ScalarIndex>,
    memory_may_be_marked: bool,
) -> bool {
    let mut begin = State::START;
    pointers.into_iter().for_each(|index| begin.pointers.insert_scalar(index));
    let marks = Marks { memory: memory_may_be_marked, lds: false };
    let mut walk = Walk { program, sources: Sources::NotSettled, marks, found: None };
    loop {
        let before = walk.marks;
        if walk.walk(start, begin).is_none() {
            return false;
        }
        if walk.marks == before {
            return true;
        }
    }
}

/// A walk through code.
struct Walk<'a> {
    program: &'a Program,
    sources: Sources,
    /// What may be marked beside registers.
    marks: Marks,
    /// What marks decide; where it is nobody's to know, the walk ends at the first decision.
    found: Option<&'a mut Consequences>,
}

/// What may be marked beside registers, wherever in the code waves are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    memory: bool,
    lds: bool,
}

/// What may be marked where waves are at an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// Registers; of vector registers, in active lanes.
    active: SlotSet,
    /// Vector registers in lanes that are not active.
    resting: SlotSet,
    /// Registers that for sure hold addresses of what is not marked, or parts of them.
    pointers: SlotSet,
}

impl State {
    /// Nothing is marked, and no address known.
    const START: State =
        State { active: SlotSet::EMPTY, resting: SlotSet::EMPTY, pointers: SlotSet::EMPTY };

    /// What holds where waves come from both.
    fn joined(self, other: State) -> State {
        State {
            active: self.active.union(other.active),
            resting: self.resting.union(other.resting),
            pointers: self.pointers.intersection(other.pointers),
        }
    }
}

impl Walk<'_> {
    /// Goes all ways that waves may take from `start` on; nothing if it is not sure that marks decide
    /// nothing there, and nobody collects what they decide.
    fn walk(&mut self, start: u64, begin: State) -> Option<()> {
        let generation = self.program.machine().generation;
        let mut known = FxHashMap::from_iter([(start, begin)]);
        let mut waiting = vec![start];
        while let Some(pc) = waiting.pop() {
            // Where nothing can be decoded execution ends.
            let Ok(op) = self.program.fetch(pc) else { continue };
            let Some(state) = self.after(op, known[&pc]) else {
                if self.found.is_some() {
                    continue;
                }
                return None;
            };
            let course = op.inst.control(generation);
            let target = op.inst.branch_target.map(|target| self.program.device_address(target));
            let next = course.may_fall_through().then_some(pc.wrapping_add(op.size.into()));
            for place in target.into_iter().chain(next) {
                let joined = match known.get(&place) {
                    None => state,
                    Some(own) => own.joined(state),
                };
                if known.insert(place, joined) != Some(joined) {
                    waiting.push(place);
                }
            }
        }
        Some(())
    }

    /// Notes a decision by marks; nothing if the walk ends there.
    fn decide(&mut self, op: &Op, purpose: Purpose, registers: Vec<RegisterRange>) -> Option<()> {
        let found = self.found.as_mut()?;
        found.entry((op.inst.pc, purpose)).or_insert(registers);
        Some(())
    }

    /// What may be marked after an instruction; nothing if it is not sure that marks decide nothing at it,
    /// or where waves are then.
    fn after(&mut self, op: &Op, mut state: State) -> Option<State> {
        let machine = self.program.machine();
        if !is_understood(op, machine) {
            return None;
        }
        if let Some((purpose, words)) = decided_by(op, machine) {
            let words = words.into_iter().filter(|word| state.active.has_word(*word));
            let words: Vec<Word> = words.collect();
            if !words.is_empty() {
                let registers = words.into_iter().filter_map(|word| register(word, machine));
                let mut registers: Vec<RegisterRange> =
                    registers.map(|register| RegisterRange::new(register, 1)).collect();
                registers.dedup();
                self.decide(op, purpose, registers)?;
            }
        }
        let named = Named::of(&op.inst, machine);
        let keeps_to_lanes = keeps_to_lanes(op);
        let read = match keeps_to_lanes {
            true => state.active,
            false => state.active.union(state.resting),
        };
        let marked = named.reads.iter().filter(|(_, slots)| read.has_any(slots));
        let marked: Vec<RegisterRange> = marked.map(|(range, _)| *range).collect();
        let reads_marks = !marked.is_empty();
        let is_loaded = match self.sources {
            Sources::NotSettled => loads(op, &state, &mut self.marks, reads_marks),
            Sources::WithinError | Sources::Quotients => false,
        };
        let mut is_marked = reads_marks || is_loaded || self.sources.contain(op, machine);
        if self.found.is_some() && reads_marks {
            is_marked &= self.passes_on(op, marked)?;
        }
        if is_marked && matches!(op.run, Run::Control(_)) && self.found.is_none() {
            return None;
        }
        let is_pointer = matches!(op.run, Run::Scalar(_))
            && !named.reads.is_empty()
            && named.reads.iter().all(|(_, slots)| state.pointers.has_all(slots));
        for (_, slots) in &named.writes {
            match is_pointer && !is_marked {
                true => state.pointers.insert(slots),
                false => state.pointers.remove(slots),
            }
            if is_marked {
                state.active.insert(slots);
                if !keeps_to_lanes {
                    state.resting.insert(slots);
                }
            } else if keeps_to_lanes && slots.are_whole() {
                state.active.remove(slots);
            }
        }
        state.resting = state.resting.vectors();
        if let Some(change) = op.inst.exec_change() {
            if is_marked {
                let exec = RegisterRange::new(Register::ExecLo, 2);
                self.decide(op, Purpose::Exec, vec![exec])?;
                // It is what it is from there on.
                let exec = named.writes.iter().filter(|(range, _)| {
                    range.contains(Register::ExecLo) || range.contains(Register::ExecHi)
                });
                exec.for_each(|(_, slots)| state.active.remove(slots));
            }
            state.resting = state.resting.union(state.active.vectors());
            if change != ExecChange::Narrows {
                state.active = state.active.union(state.resting);
            }
        }
        Some(state)
    }

    /// Whether the result of an instruction that reads results within an error, in these registers, is to
    /// be followed; notes what they decide in it.
    fn passes_on(&mut self, op: &Op, marked: Vec<RegisterRange>) -> Option<bool> {
        let operation = op.inst.operation;
        if operation.is(Family::ConvertToInteger) {
            let purpose = match self.sources {
                Sources::Quotients => Purpose::Quotient,
                _ => Purpose::Integer,
            };
            self.decide(op, purpose, marked)?;
            return Some(false);
        }
        if operation.is(Family::Compare) {
            self.decide(op, Purpose::Comparison, marked)?;
            return Some(true);
        }
        // The quotient that it is given is corrected to the last bit whatever reciprocal it began with.
        let is_quotient_alone = operation.opcode() == Opcode::VDivFixup
            && op.inst.sources().skip(1).all(|source| {
                !matches!(source.value, Value::Register(range)
                    if marked.iter().any(|own| own.overlaps(range)))
            });
        Some(!is_quotient_alone)
    }
}

/// The bits of MODE that say how numbers are rounded and the like: others say which registers
/// instructions name, and which instructions are skipped.
const ARITHMETIC: u32 = 0xfff;

/// Whether what an instruction does to the course of a wave, and to how those after it are understood, is
/// what [`after`] expects.
fn is_understood(op: &Op, machine: Machine) -> bool {
    let goes_on = !matches!(
        op.inst.control(machine.generation),
        Course::Jump | Course::Call | Course::Unknown(_)
    );
    let is_control_known = match op.run {
        Run::Control(Control::SetRegister) => {
            let bits = mode_bits(op.immediate as u32);
            bits & !ARITHMETIC == 0 && (bits == 0 || !machine.setreg_sets_banks)
        }
        Run::Control(own) => matches!(
            own,
            Control::Nothing
                | Control::EndProgram
                | Control::Barrier
                | Control::SplitBarrier(_)
                | Control::Trap
                | Control::Branch(_)
                | Control::GetPc
                | Control::Halt
                | Control::HaltAlways
                | Control::Kill
                | Control::Illegal { .. }
        ),
        Run::Tensor(_) => false,
        _ => true,
    };
    let names_registers = !op.inst.operation.is(Family::GprIndex) && !op.inst.indexes_registers();
    goes_on && is_control_known && names_registers
}

/// Whether what an instruction computes in a lane is of registers in that lane, and whether it writes the
/// registers that it names in all active lanes and no others. Scalar operations do, too.
fn keeps_to_lanes(op: &Op) -> bool {
    let stays = match op.run {
        Run::Scalar(_) | Run::ScalarMemory(_) | Run::Control(_) | Run::OnScalars => true,
        Run::Lds(access) => {
            let is_transposed =
                matches!(access, LdsAccess::ReadExchanged(_) | LdsAccess::ReadTransposed { .. });
            !is_transposed && !access.is_exchange()
        }
        Run::VectorMemory(access) => !matches!(
            (access.space, access.transfer),
            (vector_memory::Space::GlobalTransposed { .. }, _) | (_, Transfer::LoadBlock)
        ),
        Run::Vector(_) | Run::Dual => true,
        _ => false,
    };
    stays && op.parts().all(|part| part.lane_move().is_none())
}

/// Whether an instruction may load something that is marked; notes what it may mark where it stores.
fn loads(op: &Op, state: &State, marks: &mut Marks, reads_marks: bool) -> bool {
    match op.run {
        Run::ScalarMemory(access) => {
            let is_clock = access.transfer == scalar_memory::Transfer::Clock;
            let is_own = op.sources[0].words.iter().all(|word| state.pointers.has_word(*word));
            let stores = matches!(
                access.transfer,
                scalar_memory::Transfer::Store(_) | scalar_memory::Transfer::Atomic { .. }
            );
            marks.memory |= stores && reads_marks;
            marks.memory && !is_clock && !is_own
        }
        Run::VectorMemory(access) => {
            let of_lds = matches!(access.transfer, Transfer::StoreFromLds(_));
            let to_lds =
                matches!(access.transfer, Transfer::LoadToLds(_) | Transfer::LoadFormatToLds(_));
            let is_flat = access.space.is_flat();
            // What lanes store, and what is copied from one memory to the other.
            let stores = access.transfer.has_data() && reads_marks;
            marks.memory |= stores || of_lds && marks.lds;
            marks.lds |= is_flat && stores || to_lds && marks.memory;
            let base = op.sources[2].words;
            let is_own = matches!(access.space, vector_memory::Space::Global)
                && base.iter().all(|word| state.pointers.has_word(*word));
            !is_own && (marks.memory || is_flat && marks.lds)
        }
        Run::Lds(access) => {
            marks.lds |= reads_marks && !access.is_exchange();
            marks.lds && !access.is_exchange()
        }
        Run::LdsDirect => marks.lds,
        _ => false,
    }
}
