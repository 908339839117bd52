//! Facts about instructions, as messages for the host side of a tool.

use super::ToolScope;
use super::host::Writer;
use flipwave_codeobj::LineTable;
use flipwave_hooks::flow::{BlockEnd, Disassembly, InstIndex, Key};
use flipwave_isa::{
    Class, DataType, Inst, MemoryKind, MemoryOperand, MemorySpace, Operand, Register, Role, Value,
};
use std::collections::{BTreeMap, HashMap};

/// The largest number of operands that the host side receives.
const MAX_OPERANDS: usize = 64;

/// Numbers of operations, the same in all code objects of a run.
#[derive(Debug, Default)]
pub struct OperationNumbers(HashMap<String, u32>);

impl OperationNumbers {
    fn of(&mut self, name: &str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

/// Position of an instruction in its block.
struct BlockPosition {
    block: u32,
    is_entry: bool,
    is_exit: bool,
    returns: bool,
}

/// Writes the facts about all instructions of a scope: `flipwave_instrument_all` of `include/host.c` reads
/// them.
pub fn write(
    writer: &mut Writer,
    scope: &ToolScope<'_>,
    lines: &LineTable,
    numbers: &mut OperationNumbers,
) {
    let program = scope.program();
    let blocks = positions(program);
    let instructions = scope.all();
    writer.word(program.wave_size.into());
    writer.text(&program.target.to_string());
    writer.word(instructions.len() as u32);
    for at in instructions {
        write_inst(writer, scope, at, lines, blocks.get(&at), numbers);
    }
}

/// The position of each instruction in its block.
fn positions(program: &Disassembly) -> BTreeMap<InstIndex, BlockPosition> {
    let mut positions = BTreeMap::new();
    for (number, block) in program.blocks.enumerated() {
        for at in block.instructions.iter() {
            let is_exit = at == block.last();
            let position = BlockPosition {
                block: number.number() as u32,
                is_entry: at == block.instructions.start,
                is_exit,
                returns: is_exit && block.end == BlockEnd::Return,
            };
            positions.insert(at, position);
        }
    }
    positions
}

fn write_inst(
    writer: &mut Writer,
    scope: &ToolScope<'_>,
    at: InstIndex,
    lines: &LineTable,
    position: Option<&BlockPosition>,
    numbers: &mut OperationNumbers,
) {
    let program = scope.program();
    let inst = &program.instructions[at];
    let function = &program.functions[program.function_of(at)];
    let is_emulated = scope.is_emulated(at);
    let operation = scope.operation(at).unwrap_or_default();
    let text = scope.location(at).map(|location| location.instruction);
    let memory = inst.memory_operand().filter(|_| !is_emulated);
    let line = lines.lookup(inst.pc);

    writer.wide(inst.pc.0);
    writer.word(at.number() as u32);
    writer.word(position.map_or(0, |position| position.block));
    writer.text(operation);
    writer.word(numbers.of(operation));
    writer.text(text.as_deref().unwrap_or_default());
    writer.word(inst.size.into());
    writer.text(&function.name);
    writer.text(line.as_ref().map_or("", |line| &line.file));
    writer.word(line.as_ref().map_or(0, |line| line.line));
    writer.word(class_number(inst.class()));
    writer.word(match inst.data_type() {
        DataType::F16 => 0,
        DataType::Bf16 => 1,
        DataType::F32 => 2,
        DataType::F64 => 3,
        DataType::Integer => 4,
    });
    write_memory(writer, memory.as_ref());
    let kind = memory.as_ref().map(|memory| memory.access.kind);
    let is_native = |value: bool| value && !is_emulated;
    let uniform =
        memory.as_ref().is_some_and(|memory| memory.address_in_m0 && memory.vaddr.is_none());
    let exec_words = exec_words(inst);
    let flags = [
        kind == Some(MemoryKind::Load),
        kind == Some(MemoryKind::Store),
        kind == Some(MemoryKind::Atomic),
        uniform,
        is_native(inst.flags.branch),
        is_native(inst.flags.conditional),
        is_native(inst.flags.call),
        is_native(position.is_some_and(|position| position.returns)),
        is_native(inst.class() == Class::Barrier),
        is_native(inst.ends_wave()),
        is_native(exec_words > 0),
        function.kernel.is_some(),
        function.kernel.is_some() && at == function.instructions.start,
        position.is_some_and(|position| position.is_entry),
        position.is_some_and(|position| position.is_exit),
        is_emulated,
    ];
    let flags = (0..).zip(flags).map(|(bit, flag)| u32::from(flag) << bit).sum();
    writer.word(flags);
    let operands = if is_emulated { &[] } else { inst.operands.as_slice() };
    let operands = &operands[..operands.len().min(MAX_OPERANDS)];
    writer.word(operands.len() as u32);
    for operand in operands {
        write_operand(writer, operand);
    }
}

fn class_number(class: Class) -> u32 {
    match class {
        Class::Valu => 0,
        Class::Matrix => 1,
        Class::Salu => 2,
        Class::Smem => 3,
        Class::Vmem => 4,
        Class::Lds => 5,
        Class::Branch => 6,
        Class::Wait => 7,
        Class::Barrier => 8,
        Class::Message => 9,
        Class::Image => 10,
        Class::Graphics => 11,
    }
}

/// The number of words of EXEC that an instruction writes.
fn exec_words(inst: &Inst) -> u8 {
    let exec = inst.writes.iter().find(|range| range.first == Register::ExecLo);
    exec.map_or(0, |range| range.words)
}

fn write_memory(writer: &mut Writer, memory: Option<&MemoryOperand>) {
    let space = memory.map_or(0, |memory| match memory.access.space {
        MemorySpace::Buffer => 1,
        MemorySpace::Flat => 2,
        MemorySpace::Global => 3,
        MemorySpace::Scratch => 4,
        MemorySpace::Scalar => 5,
        MemorySpace::Lds => 6,
    });
    writer.word(space);
    writer.word(memory.map_or(0, |memory| memory.access.bytes.into()));
    let offsets = memory.map_or(&[][..], |memory| &memory.offsets);
    writer.word(if memory.is_some() { offsets.len().max(1) as u32 } else { 0 });
    let distance = match offsets {
        [first, second] => second.wrapping_sub(*first),
        _ => 0,
    };
    writer.wide(distance as u64);
}

fn write_operand(writer: &mut Writer, operand: &Operand) {
    let (kind, first, words) = match &operand.value {
        Value::Register(range) => match range.first {
            Register::Vgpr(register) => (0, u32::from(register.0), range.words),
            Register::AccVgpr(register) => (1, u32::from(register.0), range.words),
            Register::Sgpr(register) => (2, u32::from(register.0), range.words),
            _ => (3, 0, range.words),
        },
        _ if operand.constant_bits().is_some() => (4, 0, 0),
        _ => (5, 0, 0),
    };
    writer.word(kind);
    writer.word((operand.role == Role::Destination).into());
    writer.word(first);
    writer.word(words.into());
    writer.wide(operand.constant_bits().unwrap_or(0));
}
