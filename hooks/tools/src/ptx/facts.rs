//! Facts about PTX instructions, as messages for the host side of a tool.

use super::access::access;
use super::scope::PtxScope;
use crate::host::Writer;
use crate::inst_facts::{
    AccessSpace, ElementType, InstClass, InstFacts, InstFlags, OperandFacts, OperandKind,
    OperationNumbers, write_code,
};
use flipwave_arch::SourceLines;
use flipwave_ptx::{
    Argument, Class, Code, ControlFlow, FunctionKind, INSTRUCTION_BYTES, Inst, ScalarType, Space,
    WARP_SIZE,
};
use std::ops::Range;

/// Writes the facts about all instructions of a scope, for the target `target`.
pub fn write(
    writer: &mut Writer,
    scope: &PtxScope<'_>,
    target: &str,
    numbers: &mut OperationNumbers,
) {
    let code = scope.code();
    let functions: Vec<usize> = scope.functions().collect();
    let counts = functions.iter().map(|number| code.functions[*number].instructions.len());
    write_code(writer, WARP_SIZE, target, counts.sum());
    let mut number = 0;
    for function in functions {
        for block in blocks(code, function) {
            for at in block.clone() {
                write_inst(writer, code, at, (number, &block), numbers);
            }
            number += 1;
        }
    }
}

/// The basic blocks of a function. In contrast to [`ControlFlow`], calls end blocks: lanes may end in the called
/// function.
fn blocks(code: &Code, function: usize) -> Vec<Range<usize>> {
    let flow = ControlFlow::of(code, &code.functions[function]);
    let mut blocks = Vec::new();
    for block in flow.blocks {
        let mut start = block.instructions.start;
        for at in block.instructions.clone() {
            let is_call = code.instructions[at].form.class() == Some(Class::Call);
            if is_call || at + 1 == block.instructions.end {
                blocks.push(start..at + 1);
                start = at + 1;
            }
        }
    }
    blocks
}

fn write_inst(
    writer: &mut Writer,
    code: &Code,
    at: usize,
    (block, range): (usize, &Range<usize>),
    numbers: &mut OperationNumbers,
) {
    let inst = &code.instructions[at];
    let function = &code.functions[inst.function];
    let line = code.lookup(inst.pc);
    let opcode = inst.form.opcode();
    let access = access(code, inst);
    let is_branch = matches!(opcode, "bra" | "brx");
    let in_kernel = function.kind == FunctionKind::Entry;
    let is_block_exit = at + 1 == range.end;
    let next = code.instructions.get(at + 1).filter(|_| !is_block_exit);
    let facts = InstFacts {
        pc: inst.pc.0,
        index: at,
        block,
        operation: inst.operation().name(),
        text: inst.text(),
        size: INSTRUCTION_BYTES.into(),
        function: &function.name,
        line: line.as_ref().map(|line| (line.file.as_ref(), line.line)),
        class: class(inst, access.map(|access| access.space)),
        data_type: data_type(inst),
        access,
        flags: InstFlags {
            is_branch,
            is_conditional_branch: is_branch && inst.guard.is_some(),
            is_call: inst.form.class() == Some(Class::Call),
            is_return: opcode == "ret",
            is_barrier: is_barrier(opcode),
            is_end: inst.guard.is_none() && (opcode == "exit" || opcode == "ret" && in_kernel),
            changes_lanes: next
                .is_some_and(|next| next.guard != inst.guard || may_change_guard(inst)),
            in_kernel,
            is_kernel_entry: in_kernel && at == function.instructions.start,
            is_block_entry: at == range.start,
            is_block_exit,
            is_emulated: inst.is_emulated(),
        },
        operands: operands(inst),
    };
    facts.write(writer, numbers);
}

/// Returns `true` if an instruction may change the predicate that guards it, and the next one.
fn may_change_guard(inst: &Inst) -> bool {
    let guard = inst.guard.map(|guard| guard.register);
    guard.is_some_and(|guard| inst.accesses().destinations.contains(&guard))
}

fn is_barrier(opcode: &str) -> bool {
    matches!(opcode, "bar" | "barrier")
}

fn class(inst: &Inst, space: Option<AccessSpace>) -> InstClass {
    let Some(class) = inst.form.class() else { return InstClass::Valu };
    match class {
        Class::Arithmetic
        | Class::Logic
        | Class::Move
        | Class::Convert
        | Class::Compare
        | Class::Lanes
        | Class::Stack => InstClass::Valu,
        Class::Matrix if matches!(inst.form.opcode(), "ldmatrix" | "stmatrix") => InstClass::Lds,
        Class::Matrix => InstClass::Matrix,
        Class::Load | Class::Store | Class::Atomic | Class::Reduction | Class::Copy => {
            match space {
                Some(AccessSpace::Lds) => InstClass::Lds,
                Some(AccessSpace::Constant) => InstClass::Smem,
                None if inst.form.accesses(Space::Param) => InstClass::Smem,
                _ => InstClass::Vmem,
            }
        }
        Class::Texture => InstClass::Image,
        Class::Control if inst.form.opcode() == "trap" => InstClass::Message,
        Class::Control | Class::Call => InstClass::Branch,
        Class::Synchronization if is_barrier(inst.form.opcode()) => InstClass::Barrier,
        Class::Synchronization | Class::Cache => InstClass::Wait,
        Class::Event => InstClass::Message,
    }
}

fn data_type(inst: &Inst) -> ElementType {
    use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F32x2, F64, Tf32};
    match inst.form.result() {
        Some(F16 | F16x2) => ElementType::F16,
        Some(Bf16 | Bf16x2) => ElementType::Bf16,
        Some(F32 | F32x2 | Tf32) => ElementType::F32,
        Some(F64) => ElementType::F64,
        _ => ElementType::Integer,
    }
}

fn operands(inst: &Inst) -> Vec<OperandFacts> {
    let written = inst.written_operands();
    let kind = inst.form.source().unwrap_or(ScalarType::B64);
    let all = inst.operands.iter().enumerate().map(|(number, operand)| {
        let (kind, first, words, bits) = match operand {
            Argument::Register(register) if register.is_predicate() => {
                (OperandKind::Special, register.first.number, 1, 0)
            }
            Argument::Register(register) => {
                (OperandKind::Vgpr, register.first.number, register.words(), 0)
            }
            Argument::Special(_) => (OperandKind::Special, 0, 1, 0),
            Argument::Constant(value) => (OperandKind::Constant, 0, 0, value.bits(kind)),
            _ => (OperandKind::Other, 0, 0, 0),
        };
        let is_destination = number < written;
        OperandFacts { kind, is_destination, first: first.into(), words: words.into(), bits }
    });
    all.collect()
}
