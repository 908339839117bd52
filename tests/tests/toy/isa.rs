//! An instruction set of ten instructions, for waves of eight lanes.
//!
//! A wave has 16 vector registers `r0` to `r15` and eight scalar registers `s0` to `s7`. An instruction is
//! one dword: the operation in the lowest byte, then three operands of a byte each.

use flipwave_arch::{
    Architecture, FloatFormat, Group, Instruction, OperationName, Pc, RegisterClass, RegisterId,
    RegisterNames, RegisterRole, RegisterSpan, SimdShape,
};
use std::any::Any;

/// Lanes of a wave.
pub const LANES: u8 = 8;
/// Vector registers of a wave.
pub const VECTORS: u16 = 16;
/// Scalar registers of a wave.
pub const SCALARS: u16 = 8;
/// Name of the target.
pub const TARGET: &str = "toy";

static VECTOR: RegisterClass = RegisterClass {
    instruction_set: TARGET,
    rank: 0,
    names: RegisterNames::Numbered("r"),
    count: VECTORS,
    bits: 32,
    is_per_lane: true,
    has_known_readers: true,
};

static SCALAR: RegisterClass = RegisterClass {
    instruction_set: TARGET,
    rank: 1,
    names: RegisterNames::Numbered("s"),
    count: SCALARS,
    bits: 32,
    is_per_lane: false,
    has_known_readers: true,
};

/// A vector register.
pub fn vector(number: u8) -> RegisterId {
    RegisterId { class: &VECTOR, number: number.into() }
}

/// A scalar register.
pub fn scalar(number: u8) -> RegisterId {
    RegisterId { class: &SCALAR, number: number.into() }
}

/// The operations, in the order of their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `set rA, B`: B in all lanes.
    Set,
    /// `tid rA`: number of the work-item in the grid.
    Tid,
    /// `arg sA, B`: kernel argument B.
    Arg,
    /// `add rA, rB, rC`: sum of integers.
    Add,
    /// `fadd rA, rB, rC`: sum in single precision.
    FAdd,
    /// `shl rA, rB, C`: rB shifted left by C.
    Shl,
    /// `load rA, sB, rC`: the word at address sB + rC.
    Load,
    /// `store sA, rB, rC`: stores rC at address sA + rB.
    Store,
    /// `loop sA, B`: decrements sA; if it is not zero, continues at instruction B.
    Loop,
    /// `end`: ends the wave.
    End,
}

/// The operations with their names and the kinds of their operands: `r` and `s` for registers, `n` for
/// numbers.
pub const OPS: [(Op, &str, &str); 10] = [
    (Op::Set, "set", "rn"),
    (Op::Tid, "tid", "r"),
    (Op::Arg, "arg", "sn"),
    (Op::Add, "add", "rrr"),
    (Op::FAdd, "fadd", "rrr"),
    (Op::Shl, "shl", "rrn"),
    (Op::Load, "load", "rsr"),
    (Op::Store, "store", "srr"),
    (Op::Loop, "loop", "sn"),
    (Op::End, "end", ""),
];

/// A decoded instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inst {
    pub pc: Pc,
    pub op: Op,
    pub operands: [u8; 3],
    text: String,
}

impl Inst {
    /// Decodes a dword; `None` if it is no instruction.
    pub fn decode(word: u32, pc: Pc) -> Option<Inst> {
        let [op, operands @ ..] = word.to_le_bytes();
        let (op, name, kinds) = *OPS.get(usize::from(op))?;
        let mut names = Vec::new();
        for (kind, operand) in kinds.chars().zip(operands) {
            names.push(match kind {
                'r' if u16::from(operand) < VECTORS => vector(operand).to_string(),
                's' if u16::from(operand) < SCALARS => scalar(operand).to_string(),
                'n' => operand.to_string(),
                _ => return None,
            });
        }
        let is_unused = operands[names.len()..].iter().all(|operand| *operand == 0);
        let text = format!("{name} {}", names.join(", ")).trim_end().to_owned();
        is_unused.then_some(Inst { pc, op, operands, text })
    }

    /// Encodes a line of assembly.
    pub fn assemble(line: &str) -> Option<u32> {
        let (name, operands) = line.split_once(' ').unwrap_or((line, ""));
        let code = OPS.iter().position(|(_, known, _)| *known == name)?;
        let mut bytes = [code as u8, 0, 0, 0];
        let operands = operands.split(',').map(str::trim).filter(|operand| !operand.is_empty());
        for (byte, operand) in bytes[1..].iter_mut().zip(operands) {
            *byte = operand.trim_start_matches(['r', 's']).parse().ok()?;
        }
        let word = u32::from_le_bytes(bytes);
        (Inst::decode(word, Pc(0))?.text == line).then_some(word)
    }

    fn reads(&self) -> Vec<RegisterId> {
        let [a, b, c] = self.operands;
        match self.op {
            Op::Set | Op::Tid | Op::Arg | Op::End => vec![],
            Op::Add | Op::FAdd => vec![vector(b), vector(c)],
            Op::Shl => vec![vector(b)],
            Op::Load => vec![scalar(b), vector(c)],
            Op::Store => vec![scalar(a), vector(b), vector(c)],
            Op::Loop => vec![scalar(a)],
        }
    }

    /// The register that the instruction writes.
    pub fn written(&self) -> Option<RegisterId> {
        match self.op {
            Op::Set | Op::Tid | Op::Add | Op::FAdd | Op::Shl | Op::Load => {
                Some(vector(self.operands[0]))
            }
            Op::Arg | Op::Loop => Some(scalar(self.operands[0])),
            Op::Store | Op::End => None,
        }
    }
}

impl Instruction for Inst {
    fn pc(&self) -> Pc {
        self.pc
    }

    fn size(&self) -> u8 {
        4
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn operation(&self) -> OperationName {
        OperationName::fixed(OPS[self.op as usize].1)
    }

    fn is_in(&self, group: Group) -> bool {
        match group {
            Group::All => true,
            Group::Fp32 => self.op == Op::FAdd,
            Group::Integer => matches!(self.op, Op::Set | Op::Tid | Op::Add | Op::Shl),
            Group::Load => self.op == Op::Load,
            Group::VectorRegister => self.written().is_some_and(RegisterId::is_per_lane),
            Group::ScalarRegister => self.written().is_some_and(|written| !written.is_per_lane()),
            group => self.primary_group() == group,
        }
    }

    fn primary_group(&self) -> Group {
        match self.op {
            Op::Load | Op::Store => Group::Vmem,
            Op::Arg | Op::Loop | Op::End => Group::Salu,
            Op::Set | Op::Tid | Op::Add | Op::FAdd | Op::Shl => Group::Valu,
        }
    }

    fn conditional_target(&self) -> Option<Pc> {
        (self.op == Op::Loop).then(|| Pc(4 * u64::from(self.operands[1])))
    }

    fn accesses_memory(&self) -> bool {
        matches!(self.op, Op::Load | Op::Store)
    }

    fn synchronizes(&self) -> bool {
        false
    }

    fn ends_wave(&self) -> bool {
        self.op == Op::End
    }

    fn is_executed_by_lanes(&self) -> bool {
        self.primary_group() != Group::Salu
    }

    fn registers(&self, role: RegisterRole) -> Vec<RegisterId> {
        let [a, b, c] = self.operands;
        match (role, self.op) {
            (RegisterRole::Destination, _) => self.written().into_iter().collect(),
            (RegisterRole::Source, _) => self.reads(),
            (RegisterRole::LoadAddress, Op::Load) => vec![scalar(b), vector(c)],
            (RegisterRole::StoreAddress, Op::Store) => vec![scalar(a), vector(b)],
            (RegisterRole::StoreValue, Op::Store) => vec![vector(c)],
            _ => vec![],
        }
    }

    fn float_formats(&self, register: RegisterId, _: RegisterRole) -> Vec<FloatFormat> {
        let is_number = self.op == Op::FAdd && register.is_per_lane();
        is_number.then_some(FloatFormat::F32).into_iter().collect()
    }

    fn for_each_read(&self, visit: &mut dyn FnMut(RegisterId)) {
        self.reads().into_iter().for_each(visit);
    }

    fn for_each_written(&self, visit: &mut dyn FnMut(RegisterId)) {
        self.written().into_iter().for_each(visit);
    }

    fn reaches_unknown_registers(&self) -> bool {
        false
    }

    fn reads_other_lanes(&self) -> bool {
        false
    }

    fn overwrites_some_lanes(&self) -> bool {
        false
    }

    fn boxed(&self) -> Box<dyn Instruction> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The instruction set.
#[derive(Debug)]
pub struct Toy;

impl Architecture for Toy {
    fn target(&self) -> &str {
        TARGET
    }

    fn register(&self, name: &str) -> Option<RegisterId> {
        VECTOR.parse(name).or_else(|| SCALAR.parse(name))
    }

    fn register_examples(&self) -> &'static str {
        "a register from r0 to r15 or s0 to s7"
    }

    fn span_examples(&self) -> &'static str {
        "r0 or s7"
    }

    fn register_span(&self, text: &str) -> Option<RegisterSpan> {
        self.register(text).map(|register| RegisterSpan::new(register, 1))
    }

    fn operation(&self, name: &str) -> Option<OperationName> {
        let known = OPS.iter().find(|(_, known, _)| *known == name);
        known.map(|(_, name, _)| OperationName::fixed(name))
    }

    fn computes_numbers(&self, operation: &str) -> bool {
        operation == "fadd"
    }

    fn any_vector_register(&self) -> RegisterId {
        vector(0)
    }

    fn simds(&self) -> SimdShape {
        SimdShape { count: 2, width: 4 }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
