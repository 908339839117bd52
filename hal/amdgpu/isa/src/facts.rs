//! Facts about instructions in the common terms of all instruction sets.

use crate::{
    Class, DataType, Encoding, Family, Inst, LanesWritten, MemoryKind, Opcode, Register,
    RegisterRange, RegisterSet, Role, Value,
};
use flipwave_arch::{FloatFormat, Group, Instruction, OperationName, Pc, RegisterId, RegisterRole};
use std::any::Any;

impl Instruction for Inst {
    fn pc(&self) -> Pc {
        self.pc
    }

    fn size(&self) -> u8 {
        self.words.size
    }

    fn text(&self) -> &str {
        &self.words.text
    }

    fn operation(&self) -> OperationName {
        OperationName::fixed(self.words.operation.name())
    }

    fn is_in(&self, group: Group) -> bool {
        let operation = self.words.operation;
        let memory = operation.memory();
        match group {
            Group::All => true,
            Group::Valu | Group::Salu | Group::Vmem | Group::Smem | Group::Lds | Group::Matrix => {
                unit(operation.class()) == group
            }
            Group::Atomic => memory.is_some_and(|access| access.kind == MemoryKind::Atomic),
            Group::Fp64 => operation.data_type() == DataType::F64,
            Group::Fp32 => operation.data_type() == DataType::F32,
            Group::Fp16 => matches!(operation.data_type(), DataType::F16 | DataType::Bf16),
            Group::Integer => operation.data_type() == DataType::Integer && memory.is_none(),
            Group::Load => memory.is_some_and(|access| access.kind == MemoryKind::Load),
            Group::Compare => writes_conditions_only(self),
            Group::VectorRegister => destinations(self).any(Register::is_per_lane),
            Group::ScalarRegister => destinations(self).any(|register| !register.is_per_lane()),
        }
    }

    /// `atomic` for atomics, otherwise the unit that executes the instruction.
    fn primary_group(&self) -> Group {
        if self.is_in(Group::Atomic) { Group::Atomic } else { unit(self.class()) }
    }

    fn conditional_target(&self) -> Option<Pc> {
        self.branch_target.filter(|_| self.flags.conditional)
    }

    fn accesses_memory(&self) -> bool {
        self.flags.loads || self.flags.stores
    }

    fn synchronizes(&self) -> bool {
        self.class() == Class::Barrier || self.words.operation.is(Family::GlobalWaveSync)
    }

    fn ends_wave(&self) -> bool {
        Inst::ends_wave(self)
    }

    fn is_executed_by_lanes(&self) -> bool {
        matches!(
            self.class(),
            Class::Valu | Class::Matrix | Class::Vmem | Class::Lds | Class::Image | Class::Graphics
        )
    }

    fn registers(&self, role: RegisterRole) -> Vec<RegisterId> {
        let memory = || self.memory_operand();
        let registers: Vec<Register> = match role {
            RegisterRole::Destination => destinations(self).collect(),
            RegisterRole::Source => sources(self),
            RegisterRole::LoadAddress | RegisterRole::StoreAddress => {
                let is_load = role == RegisterRole::LoadAddress;
                let operand =
                    memory().filter(|operand| (operand.access.kind == MemoryKind::Load) == is_load);
                let ranges = operand.map(|operand| {
                    let m0 = operand.address_in_m0.then_some(RegisterRange::new(Register::M0, 1));
                    [operand.vaddr, operand.saddr, operand.resource, operand.soffset, m0]
                        .into_iter()
                        .flatten()
                });
                ranges.into_iter().flatten().flat_map(RegisterRange::iter).collect()
            }
            RegisterRole::StoreValue => {
                let operand = memory().filter(|operand| operand.access.kind != MemoryKind::Load);
                let ranges = operand.map(|operand| operand.stored).unwrap_or_default();
                ranges.into_iter().flat_map(RegisterRange::iter).collect()
            }
        };
        let registers = registers.into_iter().filter(|register| register.can_be_struck());
        registers.map(RegisterId::from).collect()
    }

    fn float_formats(&self, register: RegisterId, role: RegisterRole) -> Vec<FloatFormat> {
        Register::of_id(register).map_or_else(Vec::new, |register| formats(self, register, role))
    }

    fn for_each_read(&self, visit: &mut dyn FnMut(RegisterId)) {
        let registers = self.reads.iter().flat_map(|range| flags_as_masks(*range).iter());
        registers.for_each(|register| visit(register.into()));
    }

    fn for_each_written(&self, visit: &mut dyn FnMut(RegisterId)) {
        let registers = self.writes.iter().flat_map(|range| flags_as_masks(*range).iter());
        registers.for_each(|register| visit(register.into()));
    }

    /// Registers are accessed by an index in M0 or in GPR-index mode, or not at all where vector
    /// instructions are skipped.
    fn reaches_unknown_registers(&self) -> bool {
        self.indexes_registers()
            || self.words.operation.is(Family::GprIndex)
            || self.words.operation.opcode() == Opcode::SSetvskip
    }

    fn reads_other_lanes(&self) -> bool {
        Inst::reads_other_lanes(self)
    }

    fn overwrites_some_lanes(&self) -> bool {
        self.lanes_written() == LanesWritten::Some
    }

    fn boxed(&self) -> Box<dyn Instruction> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The group named after the unit that executes instructions of a class.
fn unit(class: Class) -> Group {
    match class {
        Class::Valu | Class::Graphics => Group::Valu,
        Class::Matrix => Group::Matrix,
        Class::Vmem | Class::Image => Group::Vmem,
        Class::Smem => Group::Smem,
        Class::Lds => Group::Lds,
        Class::Salu | Class::Branch | Class::Wait | Class::Barrier | Class::Message => Group::Salu,
    }
}

fn writes_conditions_only(inst: &Inst) -> bool {
    let is_condition = |register| {
        matches!(
            register,
            Register::VccLo | Register::VccHi | Register::ExecLo | Register::ExecHi | Register::Scc
        )
    };
    let mut destinations = destinations(inst).peekable();
    destinations.peek().is_some()
        && (inst.words.operation.is(Family::Compare) || destinations.all(is_condition))
}

/// Destination registers of `inst`, in the order of its register list: every 32-bit word of vector
/// registers, scalar registers, VCC, EXEC, M0, SCC and FLAT_SCRATCH that it writes, including implicit
/// ones. MODE and trap-handler state are excluded.
fn destinations(inst: &Inst) -> impl Iterator<Item = Register> {
    inst.writes.iter().flat_map(|range| range.iter()).filter(|register| register.can_be_struck())
}

/// Registers that `inst` reads: named operands, and implicitly read VCC, SCC and M0. EXEC counts if it
/// is an operand, not if it only selects the lanes of a vector instruction.
fn sources(inst: &Inst) -> Vec<Register> {
    let operands =
        inst.operands.iter().filter(|operand| operand.role == Role::Source || inst.flags.tied);
    let named: RegisterSet = operands
        .filter_map(|operand| match operand.value {
            Value::Register(range) => Some(range),
            _ => None,
        })
        .flat_map(|range| range.iter())
        .collect();
    let is_exec = |register: Register| matches!(register, Register::ExecLo | Register::ExecHi);
    let read = inst.reads.iter().flat_map(|range| range.iter());
    read.filter(|register| !is_exec(*register) || named.contains(*register)).collect()
}

impl Register {
    /// Returns `true` for registers that faults can strike: all except MODE, trap-handler state and
    /// read-only registers.
    pub fn can_be_struck(self) -> bool {
        matches!(
            self,
            Register::Vgpr(_)
                | Register::AccVgpr(_)
                | Register::Sgpr(_)
                | Register::VccLo
                | Register::VccHi
                | Register::ExecLo
                | Register::ExecHi
                | Register::FlatScratchLo
                | Register::FlatScratchHi
                | Register::M0
                | Register::Scc
        )
    }
}

/// Formats of the numbers that begin in a register of `inst`, by its data type.
fn formats(inst: &Inst, register: Register, role: RegisterRole) -> Vec<FloatFormat> {
    const OTHER_OPERANDS: [Family; 4] =
        [Family::Convert, Family::Ldexp, Family::FrexpExponent, Family::CompareClass];
    let operation = inst.words.operation;
    let is_result = role == RegisterRole::Destination;
    let is_arithmetic = matches!(inst.class(), Class::Valu | Class::Matrix)
        && register.is_per_lane()
        && (is_result || !OTHER_OPERANDS.into_iter().any(|family| operation.is(family)));
    if !is_arithmetic {
        return Vec::new();
    }
    let halves = |[low, high]: [FloatFormat; 2]| {
        let packed = inst.encoding == Encoding::Vop3p && operation.is(Family::Packed);
        let to_high = inst.modifiers.op_sel.is_some_and(|bits| {
            let sources = inst.sources().count();
            bits >> sources & 1 != 0 && is_result
        });
        match (packed, to_high) {
            (true, _) => vec![low, high],
            (false, true) => vec![high],
            (false, false) => vec![low],
        }
    };
    match inst.data_type() {
        DataType::F64 => {
            let mut ranges = inst.writes.iter().chain(&inst.reads);
            let begins = ranges.any(|range| {
                (0..range.words).step_by(2).any(|word| range.first.offset(word) == Some(register))
                    && range.words % 2 == 0
            });
            if begins { vec![FloatFormat::F64] } else { Vec::new() }
        }
        DataType::F32 => vec![FloatFormat::F32],
        DataType::F16 => halves([FloatFormat::F16, FloatFormat::F16High]),
        DataType::Bf16 => halves([FloatFormat::Bf16, FloatFormat::Bf16High]),
        _ => Vec::new(),
    }
}

/// Maps the flags VCCZ and EXECZ to the masks they are computed from.
fn flags_as_masks(range: RegisterRange) -> RegisterRange {
    match range.first {
        Register::Vccz => RegisterRange::new(Register::VccLo, 2),
        Register::Execz => RegisterRange::new(Register::ExecLo, 2),
        _ => range,
    }
}

#[cfg(test)]
mod tests;
