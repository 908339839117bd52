//! Facts about AMD's instructions, as messages for the host side of a tool.

use super::ToolScope;
use super::host::Writer;
use super::inst_facts::{
    AccessFacts, AccessKind, AccessSpace, ElementType, InstClass, InstFacts, InstFlags,
    OperandFacts, OperandKind, OperationNumbers, write_code,
};
use flipwave_codeobj::LineTable;
use flipwave_hooks::flow::{BlockEnd, Disassembly, InstIndex, Key};
use flipwave_isa::{
    Class, DataType, Inst, MemoryKind, MemoryOperand, MemorySpace, Operand, Register, Role, Value,
};
use std::collections::BTreeMap;

/// Position of an instruction in its block.
struct BlockPosition {
    block: usize,
    is_entry: bool,
    is_exit: bool,
    returns: bool,
}

/// Writes the facts about all instructions of a scope.
pub fn write(
    writer: &mut Writer,
    scope: &ToolScope<'_>,
    lines: &LineTable,
    numbers: &mut OperationNumbers,
) {
    let program = scope.program();
    let blocks = positions(program);
    let instructions = scope.all();
    write_code(writer, program.wave_size, &program.target.to_string(), instructions.len());
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
                block: number.number(),
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
    let text = scope.location(at).map(|location| location.instruction);
    let memory = inst.memory_operand().filter(|_| !is_emulated);
    let line = lines.lookup(inst.pc);
    let is_native = |value: bool| value && !is_emulated;
    let in_kernel = function.kernel.is_some();
    let operands = if is_emulated { &[] } else { inst.operands.as_slice() };
    let facts = InstFacts {
        pc: inst.pc.0,
        index: at.number(),
        block: position.map_or(0, |position| position.block),
        operation: scope.operation(at).unwrap_or_default(),
        text: text.as_deref().unwrap_or_default(),
        size: inst.size.into(),
        function: &function.name,
        line: line.as_ref().map(|line| (line.file.as_ref(), line.line)),
        class: class(inst.class()),
        data_type: match inst.data_type() {
            DataType::F16 => ElementType::F16,
            DataType::Bf16 => ElementType::Bf16,
            DataType::F32 => ElementType::F32,
            DataType::F64 => ElementType::F64,
            DataType::Integer => ElementType::Integer,
        },
        access: memory.as_ref().map(access),
        flags: InstFlags {
            is_branch: is_native(inst.flags.branch),
            is_conditional_branch: is_native(inst.flags.conditional),
            is_call: is_native(inst.flags.call),
            is_return: is_native(position.is_some_and(|position| position.returns)),
            is_barrier: is_native(inst.class() == Class::Barrier),
            is_end: is_native(inst.ends_wave()),
            changes_lanes: is_native(exec_words(inst) > 0),
            in_kernel,
            is_kernel_entry: in_kernel && at == function.instructions.start,
            is_block_entry: position.is_some_and(|position| position.is_entry),
            is_block_exit: position.is_some_and(|position| position.is_exit),
            is_emulated,
        },
        operands: operands.iter().map(operand).collect(),
    };
    facts.write(writer, numbers);
}

fn class(class: Class) -> InstClass {
    match class {
        Class::Valu => InstClass::Valu,
        Class::Matrix => InstClass::Matrix,
        Class::Salu => InstClass::Salu,
        Class::Smem => InstClass::Smem,
        Class::Vmem => InstClass::Vmem,
        Class::Lds => InstClass::Lds,
        Class::Branch => InstClass::Branch,
        Class::Wait => InstClass::Wait,
        Class::Barrier => InstClass::Barrier,
        Class::Message => InstClass::Message,
        Class::Image => InstClass::Image,
        Class::Graphics => InstClass::Graphics,
    }
}

/// The number of words of EXEC that an instruction writes.
fn exec_words(inst: &Inst) -> u8 {
    let exec = inst.writes.iter().find(|range| range.first == Register::ExecLo);
    exec.map_or(0, |range| range.words)
}

fn access(memory: &MemoryOperand) -> AccessFacts {
    AccessFacts {
        space: match memory.access.space {
            MemorySpace::Buffer => AccessSpace::Buffer,
            MemorySpace::Flat => AccessSpace::Flat,
            MemorySpace::Global => AccessSpace::Global,
            MemorySpace::Scratch => AccessSpace::Scratch,
            MemorySpace::Scalar => AccessSpace::Scalar,
            MemorySpace::Lds => AccessSpace::Lds,
        },
        kind: match memory.access.kind {
            MemoryKind::Load => AccessKind::Load,
            MemoryKind::Store => AccessKind::Store,
            MemoryKind::Atomic => AccessKind::Atomic,
        },
        bytes: memory.access.bytes.into(),
        elements: memory.offsets.len().max(1) as u32,
        distance: match memory.offsets[..] {
            [first, second] => second.wrapping_sub(first),
            _ => 0,
        },
        has_uniform_address: memory.address_in_m0 && memory.vaddr.is_none(),
    }
}

fn operand(operand: &Operand) -> OperandFacts {
    let (kind, first, words) = match &operand.value {
        Value::Register(range) => match range.first {
            Register::Vgpr(register) => (OperandKind::Vgpr, register.0.into(), range.words),
            Register::AccVgpr(register) => (OperandKind::AccVgpr, register.0.into(), range.words),
            Register::Sgpr(register) => (OperandKind::Sgpr, register.0.into(), range.words),
            _ => (OperandKind::Special, 0, range.words),
        },
        _ if operand.constant_bits().is_some() => (OperandKind::Constant, 0, 0),
        _ => (OperandKind::Other, 0, 0),
    };
    OperandFacts {
        kind,
        is_destination: operand.role == Role::Destination,
        first,
        words: words.into(),
        bits: operand.constant_bits().unwrap_or(0),
    }
}
