//! Facts about instructions in the terms of `flipwave_tool.h`, for all instruction sets.

use super::host::Writer;
use std::collections::HashMap;

/// The largest number of operands that the host side receives.
const MAX_OPERANDS: usize = 64;

/// Numbers of operations, the same in all code of a run.
#[derive(Debug, Default)]
pub struct OperationNumbers(HashMap<String, u32>);

impl OperationNumbers {
    /// The number of the operation with a name.
    pub fn of(&mut self, name: &str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

/// `enum flipwave_class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstClass {
    Valu = 0,
    Matrix,
    Salu,
    Smem,
    Vmem,
    Lds,
    Branch,
    Wait,
    Barrier,
    Message,
    Image,
    Graphics,
}

/// `enum flipwave_space`, without `FLIPWAVE_NO_MEMORY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessSpace {
    Buffer = 1,
    Flat,
    Global,
    Scratch,
    Scalar,
    Lds,
    Constant,
}

/// `enum flipwave_data_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    F16 = 0,
    Bf16,
    F32,
    F64,
    Integer,
}

/// Kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
}

/// A memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessFacts {
    pub space: AccessSpace,
    pub kind: AccessKind,
    pub bytes: u32,
    /// Number of elements, and the distance of the second one in bytes.
    pub elements: u32,
    pub distance: i64,
    pub has_uniform_address: bool,
}

/// `enum flipwave_operand_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    Vgpr = 0,
    AccVgpr,
    Sgpr,
    Special,
    Constant,
    Other,
}

/// `flipwave_operand`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandFacts {
    pub kind: OperandKind,
    pub is_destination: bool,
    pub first: u32,
    pub words: u32,
    pub bits: u64,
}

/// Properties of `flipwave_inst` that are true or false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstFlags {
    pub is_branch: bool,
    pub is_conditional_branch: bool,
    pub is_call: bool,
    pub is_return: bool,
    pub is_barrier: bool,
    pub is_end: bool,
    pub changes_lanes: bool,
    pub in_kernel: bool,
    pub is_kernel_entry: bool,
    pub is_block_entry: bool,
    pub is_block_exit: bool,
    pub is_emulated: bool,
}

/// `flipwave_inst`.
#[derive(Clone, Debug)]
pub struct InstFacts<'a> {
    pub pc: u64,
    pub index: usize,
    pub block: usize,
    pub operation: &'a str,
    pub text: &'a str,
    pub size: u32,
    pub function: &'a str,
    /// The source line: file and number.
    pub line: Option<(&'a str, u32)>,
    pub class: InstClass,
    pub data_type: ElementType,
    pub access: Option<AccessFacts>,
    pub flags: InstFlags,
    pub operands: Vec<OperandFacts>,
}

/// Writes the beginning of a request to instrument code: what all instructions have in common.
pub fn write_code(writer: &mut Writer, wave_size: u8, target: &str, instructions: usize) {
    writer.word(wave_size.into());
    writer.text(target);
    writer.word(instructions as u32);
}

impl InstFacts<'_> {
    /// Writes the facts: `flipwave_instrument_all` of `include/host.c` reads them.
    pub fn write(&self, writer: &mut Writer, numbers: &mut OperationNumbers) {
        writer.wide(self.pc);
        writer.word(self.index as u32);
        writer.word(self.block as u32);
        writer.text(self.operation);
        writer.word(numbers.of(self.operation));
        writer.text(self.text);
        writer.word(self.size);
        writer.text(self.function);
        writer.text(self.line.map_or("", |(file, _)| file));
        writer.word(self.line.map_or(0, |(_, line)| line));
        writer.word(self.class as u32);
        writer.word(self.data_type as u32);
        let access = self.access.as_ref();
        writer.word(access.map_or(0, |access| access.space as u32));
        writer.word(access.map_or(0, |access| access.bytes));
        writer.word(access.map_or(0, |access| access.elements));
        writer.wide(access.map_or(0, |access| access.distance) as u64);
        writer.word(self.flag_bits());
        let operands = &self.operands[..self.operands.len().min(MAX_OPERANDS)];
        writer.word(operands.len() as u32);
        for operand in operands {
            writer.word(operand.kind as u32);
            writer.word(operand.is_destination.into());
            writer.word(operand.first);
            writer.word(operand.words);
            writer.wide(operand.bits);
        }
    }

    fn flag_bits(&self) -> u32 {
        let kind = self.access.map(|access| access.kind);
        let flags = &self.flags;
        let bits = [
            kind == Some(AccessKind::Load),
            kind == Some(AccessKind::Store),
            kind == Some(AccessKind::Atomic),
            self.access.is_some_and(|access| access.has_uniform_address),
            flags.is_branch,
            flags.is_conditional_branch,
            flags.is_call,
            flags.is_return,
            flags.is_barrier,
            flags.is_end,
            flags.changes_lanes,
            flags.in_kernel,
            flags.is_kernel_entry,
            flags.is_block_entry,
            flags.is_block_exit,
            flags.is_emulated,
        ];
        (0..).zip(bits).map(|(bit, flag)| u32::from(flag) << bit).sum()
    }
}
