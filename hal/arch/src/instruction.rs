//! Facts about decoded instructions.

use crate::{FloatFormat, Group, OperationName, Pc, RegisterId};
use std::any::Any;
use std::fmt;

/// A decoded instruction at an address.
pub trait Instruction: fmt::Debug + Send + Sync {
    /// Address of the instruction.
    fn pc(&self) -> Pc;

    /// Length in bytes.
    fn size(&self) -> u8;

    /// Number of dwords of the encoding, which faults can strike; 0 if code has no encoding.
    fn encoding_dwords(&self) -> u8 {
        self.size() / 4
    }

    /// Text of the instruction, in the syntax of its assembler.
    fn text(&self) -> &str;

    /// Name of the operation.
    fn operation(&self) -> OperationName;

    /// Returns `true` if the instruction belongs to a group.
    fn is_in(&self, group: Group) -> bool;

    /// The one group under which results of the instruction are filed.
    fn primary_group(&self) -> Group;

    /// Target of a conditional branch whose target is known; `None` for all other instructions.
    fn conditional_target(&self) -> Option<Pc>;

    /// Returns `true` if the instruction may access memory.
    fn accesses_memory(&self) -> bool;

    /// Returns `true` if the instruction synchronizes waves.
    fn synchronizes(&self) -> bool;

    /// Returns `true` if the instruction ends its wave.
    fn ends_wave(&self) -> bool;

    /// Returns `true` if each active lane executes the instruction, and `false` if the wave executes it
    /// once.
    fn is_executed_by_lanes(&self) -> bool;

    /// Registers that play a role in the instruction and that faults can strike, in the order of the
    /// instruction's register list; a register may occur more than once.
    fn registers(&self, role: RegisterRole) -> Vec<RegisterId>;

    /// Formats of the floating-point numbers that begin in a register with this role: results, and
    /// operands except those of conversions. Empty for registers without such numbers.
    fn float_formats(&self, register: RegisterId, role: RegisterRole) -> Vec<FloatFormat>;

    /// Calls `visit` with each register that the instruction reads, including implicitly read ones.
    fn for_each_read(&self, visit: &mut dyn FnMut(RegisterId));

    /// Calls `visit` with each register that the instruction writes, including implicitly written
    /// ones.
    fn for_each_written(&self, visit: &mut dyn FnMut(RegisterId));

    /// Returns `true` if the instruction, or one whose meaning it changes, may access registers that
    /// it does not name.
    fn reaches_unknown_registers(&self) -> bool;

    /// Returns `true` if a lane may read per-lane registers of other lanes, or of inactive ones.
    fn reads_other_lanes(&self) -> bool;

    /// Returns `true` if the instruction may leave the old value in some of the lanes that it runs on.
    fn overwrites_some_lanes(&self) -> bool;

    /// Returns a copy that outlives this instruction.
    fn boxed(&self) -> Box<dyn Instruction>;

    /// The value itself, for code of its instruction set.
    fn as_any(&self) -> &dyn Any;
}

/// Role of a register in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterRole {
    /// Written by the instruction.
    Destination,
    /// Read by the instruction. The mask of active lanes counts only if it is an operand.
    Source,
    /// Part of the address of a load.
    LoadAddress,
    /// Part of the address of a store or an atomic operation.
    StoreAddress,
    /// Part of the data of a store or an atomic operation.
    StoreValue,
}
