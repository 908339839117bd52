//! Whether results that are not settled may decide the course of waves, as far as the code shows: then
//! there is nothing to follow. What may be marked is followed through the code in all ways that waves may
//! take, wherever values may get: what is stored to memory, or to LDS, may be loaded by any load.

use crate::execute::hardware_register::mode_bits;
use crate::instruction::control::Control;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{self, Transfer};
use crate::instruction::{Op, Run, scalar_memory};
use crate::shadow::{Named, SlotSet, decided_by};
use crate::translate::coverage::unsettled_bits;
use crate::translate::program::Program;
use crate::wave::{Machine, ScalarIndex};
use flipwave_isa::{Control as Course, ExecChange, Family};
use rustc_hash::FxHashMap;

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
    let mut marks = Marks { memory: memory_may_be_marked, lds: false };
    loop {
        let before = marks;
        if walk(program, start, begin, &mut marks).is_none() {
            return false;
        }
        if marks == before {
            return true;
        }
    }
}

/// What may be marked beside registers, wherever in the code waves are.
#[derive(Clone, Copy, PartialEq, Eq)]
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

/// Goes all ways that waves may take from `start` on; nothing if it is not sure that marks decide nothing
/// there.
fn walk(program: &Program, start: u64, begin: State, marks: &mut Marks) -> Option<()> {
    let generation = program.machine().generation;
    let mut known = FxHashMap::from_iter([(start, begin)]);
    let mut waiting = vec![start];
    while let Some(pc) = waiting.pop() {
        // Where nothing can be decoded execution ends.
        let Ok(op) = program.fetch(pc) else { continue };
        let state = after(op, program.machine(), known[&pc], marks)?;
        let course = op.inst.control(generation);
        let target = op.inst.branch_target.map(|target| program.device_address(target));
        let next = course.may_go_on().then_some(pc.wrapping_add(op.size.into()));
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

/// What may be marked after an instruction; nothing if it is not sure that marks decide nothing at it, or
/// where waves are then.
fn after(op: &Op, machine: Machine, mut state: State, marks: &mut Marks) -> Option<State> {
    if !is_understood(op, machine) {
        return None;
    }
    let (_, words) = decided_by(op, machine).unzip();
    if words.into_iter().flatten().any(|word| state.active.has_word(word)) {
        return None;
    }
    let named = Named::of(&op.inst, machine);
    let keeps_to_lanes = keeps_to_lanes(op);
    let read = match keeps_to_lanes {
        true => state.active,
        false => state.active.union(state.resting),
    };
    let reads_marks = named.reads.iter().any(|(_, slots)| read.has_any(slots));
    let is_loaded = loads(op, &state, marks, reads_marks);
    let is_marked = reads_marks || is_loaded || unsettled_bits(op, machine) != 0;
    if is_marked && matches!(op.run, Run::Control(_)) {
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
            return None;
        }
        state.resting = state.resting.union(state.active.vectors());
        if change != ExecChange::Narrows {
            state.active = state.active.union(state.resting);
        }
    }
    Some(state)
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
