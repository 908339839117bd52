//! Locations, within a function, of the values that registers had at its entry.
//!
//! The analysis proves what it finds from the function's instructions. It relies on the entry block, which
//! is executed once and first, on stores to the stack not being overwritten through pointers, and on calls
//! preserving the registers that the caller expects to be preserved, as compilers do.

use crate::instruction::Op;
use crate::translate::program::Program;
use flipwave_isa::{
    Family, Inst, Lane, MemoryKind, Opcode, Operand, Register, RegisterRange, Sgpr, Value,
};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Maximum size of an analysed function in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Location of the value that a register had at the entry of the function.
#[derive(Clone, Copy, Debug)]
pub enum EntryValue<'a> {
    /// In the register: the function has not written it.
    Kept,
    /// In another place.
    Saved(Location<'a>),
}

/// A place where a function saves a register.
#[derive(Clone, Copy, Debug)]
pub enum Location<'a> {
    /// A scalar register.
    Scalar(Register),
    /// A lane of a vector register.
    Lane {
        /// The vector register.
        register: Register,
        /// The lane.
        lane: Lane,
    },
    /// Private memory, written by a store of all lanes.
    Stack(StackSlot<'a>),
}

/// A word per lane in private memory, at a distance from a register's value at the entry: the stack
/// pointer's, mostly.
#[derive(Clone, Copy, Debug)]
pub struct StackSlot<'a> {
    /// The store.
    pub store: &'a Op,
    /// The scalar register that it adds to its address.
    pub base: Register,
    /// The register that had the value of `base` at the entry.
    pub origin: Register,
}

/// The resource of private memory up to gfx10: every function has it in these registers, which no function
/// changes (AMDGPUUsage, "Non-Kernel Functions").
const SCRATCH_RESOURCE: RegisterRange = RegisterRange { first: Register::Sgpr(Sgpr(0)), words: 4 };

/// A save of a register in the entry block.
#[derive(Clone, Copy, Debug)]
struct Save<'a> {
    /// Index of the instruction that saves it.
    index: usize,
    register: Register,
    location: Location<'a>,
}

/// Lanes that EXEC has during the entry block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActiveLanes {
    All,
    Unknown,
}

/// The code of a function.
pub struct FunctionCode<'a> {
    /// Device address and instruction.
    instructions: Vec<(u64, &'a Op)>,
    /// Device address of the end.
    end: u64,
    /// Number of instructions at the beginning that are executed once, before all others.
    entry_block: usize,
    saves: Vec<Save<'a>>,
}

impl<'a> FunctionCode<'a> {
    /// Reads the function at these device addresses; `None` if its code cannot be analysed.
    pub fn read(program: &'a Program, code: Range<u64>) -> Option<FunctionCode<'a>> {
        if code.end.saturating_sub(code.start) > MAX_BYTES {
            return None;
        }
        let mut instructions = Vec::new();
        let mut pc = code.start;
        while pc < code.end {
            let op = program.fetch(pc).ok()?;
            if names_registers_indirectly(&op.inst) {
                return None;
            }
            instructions.push((pc, op));
            pc += u64::from(op.size);
        }
        let mut function =
            FunctionCode { instructions, end: pc, entry_block: 0, saves: Vec::new() };
        function.entry_block = function.entry_block(program);
        function.saves = function.saves();
        Some(function)
    }

    /// Index of the instruction at a device address; the number of instructions for the end.
    pub fn index_of(&self, pc: u64) -> Option<usize> {
        if pc == self.end {
            return Some(self.instructions.len());
        }
        self.instructions.binary_search_by_key(&pc, |(pc, _)| *pc).ok()
    }

    /// Location of the value that `register` had at the entry, when `next` is the next instruction; `None`
    /// if that cannot be proven.
    pub fn entry_value(&self, register: Register, next: usize) -> Option<EntryValue<'a>> {
        if !self.executed(next).any(|(_, op)| writes(&op.inst, register)) {
            return Some(EntryValue::Kept);
        }
        let mut saves = self.saves.iter().filter(|save| save.register == register);
        let save = saves.find(|save| save.index < next && self.is_intact(save, next))?;
        Some(EntryValue::Saved(save.location))
    }

    /// The instructions that may have been executed when `next` is the next one, with their indices.
    fn executed(&self, next: usize) -> impl Iterator<Item = (usize, &'a Op)> {
        let all = self.instructions.iter().enumerate().map(|(index, (_, op))| (index, *op));
        all.filter(move |(index, _)| self.may_precede(*index, next))
    }

    /// Returns `true` if instruction `index` may have been executed when `next` is the next one.
    fn may_precede(&self, index: usize, next: usize) -> bool {
        let entry = 0..self.entry_block;
        if entry.contains(&index) || entry.contains(&next) {
            return index < next;
        }
        // Execution runs straight to the end of the function.
        match self.straight_exit(index) {
            Some(exit) => (index + 1..=exit).contains(&next),
            None => true,
        }
    }

    /// Index of the instruction that leaves the function, if no other branch follows an instruction.
    fn straight_exit(&self, index: usize) -> Option<usize> {
        let after = self.instructions.get(index..)?;
        let is_control = |op: &Op| transfers_control(&op.inst);
        let (distance, (_, op)) = after.iter().enumerate().find(|(_, (_, op))| is_control(op))?;
        let leaves = matches!(op.inst.operation.opcode(), Opcode::SSetpc | Opcode::SEndpgm);
        leaves.then_some(index + distance)
    }

    /// Length of the entry block.
    fn entry_block(&self, program: &Program) -> usize {
        let targets = self
            .instructions
            .iter()
            .filter_map(|(_, op)| self.index_of(program.device_address(op.inst.branch_target?)));
        let first_target = targets.min().unwrap_or(self.instructions.len());
        let mut all = self.instructions.iter();
        let first_control = all.position(|(_, op)| transfers_control(&op.inst));
        first_control.map_or(first_target, |control| first_target.min(control + 1))
    }

    /// The saves of registers in the entry block.
    fn saves(&self) -> Vec<Save<'a>> {
        let mut saves = Vec::new();
        let mut written = HashSet::new();
        // Registers with the entry value of another register.
        let mut copies: HashMap<Register, Register> = HashMap::new();
        let mut active = ActiveLanes::Unknown;
        for (index, (_, op)) in self.instructions.iter().take(self.entry_block).enumerate() {
            let inst = &*op.inst;
            let origin = |register: Register| match copies.get(&register) {
                Some(origin) => Some(*origin),
                None => (!written.contains(&register)).then_some(register),
            };
            let mut save = |register: Option<Register>, location| {
                saves.extend(register.map(|register| Save { index, register, location }));
            };
            let mut moved = Vec::new();
            match inst.operation.opcode() {
                Opcode::SMov => {
                    if let (Some(to), Some(from)) = (destination(inst), register(inst.source(0))) {
                        for (to, from) in to.iter().zip(from.iter()) {
                            save(origin(from), Location::Scalar(to));
                            moved.extend(origin(from).map(|origin| (to, origin)));
                        }
                    }
                }
                Opcode::VWritelane => {
                    if let (Some(to), Some(from), Some(lane)) =
                        (destination(inst), register(inst.source(0)), lane_of(inst))
                    {
                        let location = Location::Lane { register: to.first, lane };
                        save(origin(from.first), location);
                    }
                }
                _ if active == ActiveLanes::All => {
                    if let (Some(data), Some(base)) = (stored_register(inst), stack_base(inst))
                        && let Some(entry) = origin(base)
                    {
                        let slot = StackSlot { store: op, base, origin: entry };
                        save(origin(data), Location::Stack(slot));
                    }
                }
                _ => {}
            }
            active = active_lanes_after(inst, active);
            for register in inst.writes.iter().flat_map(|range| range.iter()) {
                written.insert(register);
                copies.remove(&register);
            }
            copies.extend(moved);
        }
        saves
    }

    /// Returns `true` if a saved value cannot have been overwritten when `next` is the next instruction.
    fn is_intact(&self, save: &Save<'a>, next: usize) -> bool {
        let mut later = self.executed(next).filter(|(index, _)| *index > save.index);
        match save.location {
            Location::Scalar(copy) => !later.any(|(_, op)| writes(&op.inst, copy)),
            Location::Lane { register, lane } => !later.any(|(_, op)| {
                let is_lane_write = op.inst.operation.opcode() == Opcode::VWritelane;
                let other_lane = is_lane_write && lane_of(&op.inst).is_some_and(|of| of != lane);
                writes(&op.inst, register) && !other_lane
            }),
            Location::Stack(_) => true,
        }
    }
}

/// Returns `true` if the registers that an instruction writes, or that later ones write, are unknown.
fn names_registers_indirectly(inst: &Inst) -> bool {
    inst.indexes_registers()
        || inst.operation.is(Family::GprIndex)
        || inst.operation.name() == "s_set_vgpr_msb"
}

fn transfers_control(inst: &Inst) -> bool {
    inst.flags.branch || inst.flags.call || inst.flags.terminator
}

fn writes(inst: &Inst, register: Register) -> bool {
    inst.writes.iter().any(|range| range.contains(register))
}

fn register_of(operand: &Operand) -> Option<RegisterRange> {
    register(Some(&operand.value))
}

fn register(value: Option<&Value>) -> Option<RegisterRange> {
    match value {
        Some(Value::Register(range)) => Some(*range),
        _ => None,
    }
}

fn destination(inst: &Inst) -> Option<RegisterRange> {
    inst.destinations().next().and_then(register_of)
}

/// The lane of `v_writelane_b32`, if it is constant.
fn lane_of(inst: &Inst) -> Option<Lane> {
    match inst.source(1) {
        Some(Value::Integer(lane)) => u8::try_from(*lane).ok().map(Lane),
        _ => None,
    }
}

/// The vector register that an instruction stores to the stack, if it has no other vector operand.
fn stored_register(inst: &Inst) -> Option<Register> {
    let access = inst.memory().filter(|access| access.kind == MemoryKind::Store)?;
    if access.bytes != 4 {
        return None;
    }
    let ranges = inst.sources().filter_map(register_of);
    let vectors: Vec<RegisterRange> = ranges.filter(|range| range.first.is_per_lane()).collect();
    match vectors[..] {
        [RegisterRange { first, words: 1 }] => Some(first),
        _ => None,
    }
}

/// The scalar register that an access to the stack adds to its address.
fn stack_base(inst: &Inst) -> Option<Register> {
    let ranges = inst.sources().filter_map(register_of);
    let scalars: Vec<RegisterRange> =
        ranges.filter(|range| !range.first.is_per_lane() && *range != SCRATCH_RESOURCE).collect();
    match scalars[..] {
        [RegisterRange { first, words: 1 }] => Some(first),
        _ => None,
    }
}

/// The active lanes after an instruction.
fn active_lanes_after(inst: &Inst, before: ActiveLanes) -> ActiveLanes {
    let writes_exec =
        inst.writes.iter().any(|range| matches!(range.first, Register::ExecLo | Register::ExecHi));
    let is_all = matches!(inst.operation.opcode(), Opcode::SMov | Opcode::SOrSaveexec)
        && inst.source(0) == Some(&Value::Integer(-1));
    if !writes_exec {
        before
    } else if is_all {
        ActiveLanes::All
    } else {
        ActiveLanes::Unknown
    }
}
