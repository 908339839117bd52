//! Static analysis of the decisions that doubtful results may affect. It tracks results through
//! registers along all paths of the code; if they may be in memory or LDS, any load may return
//! them.
//!
//! For unsettled results only the existence of such decisions matters: without any, nothing needs
//! to be tracked at run time. For results within an error, the analysis finds all decisions that
//! they may affect, and execution only counts them.

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

/// Results that are tracked through code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sources {
    /// Unsettled results.
    NotSettled,
    /// Results within an error, except [`Sources::Quotients`].
    WithinError,
    /// Results of `v_rcp_iflag_f32`, which compilers use only for integer quotients.
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

/// Decisions that results may affect: instruction and purpose, with the registers that hold the
/// results.
pub type Consequences = BTreeMap<(Pc, Purpose), Vec<RegisterRange>>;

/// Decisions that results within an error may affect in a kernel that starts at a device address.
/// Results are tracked through registers from the computing instruction until they become integers;
/// decisions by those integers are not tracked, nor is code behind calls or data loaded from
/// memory.
pub fn consequences(program: &Program, start: u64) -> Consequences {
    let mut found = Consequences::new();
    for sources in [Sources::WithinError, Sources::Quotients] {
        let mut walk = Walk { program, sources, marks: Marks::default(), found: Some(&mut found) };
        // The walk stops where the code cannot be analysed.
        _ = walk.walk(start, State::START);
    }
    found
}

/// Returns `true` if unsettled results cannot change the control flow of any wave of a kernel that
/// starts at a device address: results of its operations, and results in memory, if earlier
/// dispatches may have left some there. `pointers` are the scalar registers with addresses of data
/// that only the host writes: the kernel's arguments and its packet.
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

/// An analysis of code.
struct Walk<'a> {
    program: &'a Program,
    sources: Sources,
    /// Possible marks outside registers.
    marks: Marks,
    /// Collected decisions; if `None`, the walk ends at the first decision.
    found: Option<&'a mut Consequences>,
}

/// Possible marks outside registers, at any point of the code.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Marks {
    memory: bool,
    lds: bool,
}

/// Possible marks at an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// Registers; for vector registers, in active lanes.
    active: SlotSet,
    /// Vector registers in inactive lanes.
    resting: SlotSet,
    /// Registers that certainly hold unmarked addresses, or parts of them.
    pointers: SlotSet,
}

impl State {
    /// A state without marks and known addresses.
    const START: State =
        State { active: SlotSet::EMPTY, resting: SlotSet::EMPTY, pointers: SlotSet::EMPTY };

    /// Combines the states of two paths that join.
    fn joined(self, other: State) -> State {
        State {
            active: self.active.union(other.active),
            resting: self.resting.union(other.resting),
            pointers: self.pointers.intersection(other.pointers),
        }
    }
}

impl Walk<'_> {
    /// Walks all paths from `start`; `None` if marks may decide something and decisions are not
    /// collected.
    fn walk(&mut self, start: u64, begin: State) -> Option<()> {
        let generation = self.program.machine().generation;
        let mut known = FxHashMap::from_iter([(start, begin)]);
        let mut waiting = vec![start];
        while let Some(pc) = waiting.pop() {
            // Execution ends at undecodable code.
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
                    Some(known) => known.joined(state),
                };
                if known.insert(place, joined) != Some(joined) {
                    waiting.push(place);
                }
            }
        }
        Some(())
    }

    /// Records a decision by marks; `None` if the walk ends there.
    fn decide(&mut self, op: &Op, purpose: Purpose, registers: Vec<RegisterRange>) -> Option<()> {
        let found = self.found.as_mut()?;
        found.entry((op.inst.pc, purpose)).or_insert(registers);
        Some(())
    }

    /// State after an instruction; `None` if marks may decide something in it, or if the next
    /// instruction is unknown.
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
        let read = if keeps_to_lanes { state.active } else { state.active.union(state.resting) };
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
            if is_pointer && !is_marked {
                state.pointers.insert(slots)
            } else {
                state.pointers.remove(slots)
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
                // EXEC counts as decided from here on.
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

    /// Returns `true` if the result of an instruction that reads results within an error from these
    /// registers is to be tracked; records the decisions that they affect in it.
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
        // The quotient is correct to the last bit for any initial reciprocal.
        let is_quotient_alone = operation.opcode() == Opcode::VDivFixup
            && op.inst.sources().skip(1).all(|source| {
                !matches!(source.value, Value::Register(range)
                    if marked.iter().any(|marked_range| marked_range.overlaps(range)))
            });
        Some(!is_quotient_alone)
    }
}

/// Bits of MODE that only affect arithmetic, such as rounding: others affect the registers that
/// instructions name, or skip instructions.
const ARITHMETIC: u32 = 0xfff;

/// Returns `true` if [`Walk::after`] models the instruction's effect on control flow and on the
/// meaning of later instructions.
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
        Run::Control(control) => matches!(
            control,
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

/// Returns `true` if the instruction computes each lane's result from registers in that lane, and
/// writes its destinations in exactly the active lanes. Also `true` for scalar operations.
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

/// Returns `true` if an instruction may load marked data; records marks that it may store.
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
            // Stores of lanes, and copies between memories.
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
