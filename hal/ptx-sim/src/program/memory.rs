//! Accesses to memory.

use super::operand::{Addresses, Destination, Source, destination, elements, source};
use super::{AtomicOperation, AtomicValue, Op};
use crate::Gap;
use flipwave_ptx::{Address, Argument, Code, FunctionKind, Inst, ScalarType, Space, Symbol};

/// Memory that an instruction accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryAccess {
    /// The state space.
    pub space: MemorySpace,
    /// The address before the offset is added.
    pub base: Source,
    /// Bytes added to the address.
    pub offset: i64,
    /// Bytes of the access, which is aligned to them.
    pub bytes: u64,
}

impl MemoryAccess {
    /// Returns `true` if the memory may be device memory.
    pub fn reaches_device(&self) -> bool {
        matches!(self.space, MemorySpace::Global | MemorySpace::Generic)
    }
}

/// State spaces of accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemorySpace {
    /// The address decides.
    Generic,
    /// Device memory.
    Global,
    /// The workgroup's shared memory.
    Shared,
    /// The lane's local memory.
    Local,
    /// The kernel's arguments.
    Arguments,
}

/// A value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryValue {
    /// Offset from the address of the access in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// `true` if a wider register receives the sign.
    pub is_signed: bool,
}

/// `cp.async`: a copy from global to shared memory, which is complete before the next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsyncCopy {
    /// The shared memory.
    pub to: MemoryAccess,
    /// The global memory.
    pub from: MemoryAccess,
    /// Bytes to copy; the rest is filled with zeroes. All bytes without the operand.
    pub count: Option<Source>,
    /// `true` if `count` is a predicate that suppresses the copy.
    pub is_ignoring: bool,
}

/// `ldmatrix` and `stmatrix` of matrices with eight rows of eight elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MatrixLoad {
    /// The row of the lane's matrix.
    pub access: MemoryAccess,
    /// A register per matrix.
    pub registers: Vec<u16>,
    /// `true` to transpose each matrix.
    pub is_transposed: bool,
    /// `true` for a store.
    pub is_store: bool,
}

/// Memory at an operand in brackets.
pub(super) fn access(
    inst: &Inst,
    operand: &Argument,
    space: Option<Space>,
    bytes: u64,
    code: &Code,
    addresses: &dyn Addresses,
) -> Result<MemoryAccess, Gap> {
    let Argument::Memory(Address { base, offset, others }) = operand else {
        return Err(Gap::because("an operand in brackets was expected"));
    };
    if !others.is_empty() {
        return Err(Gap::form());
    }
    let is_entry = code
        .functions
        .get(inst.function)
        .is_some_and(|function| function.kind == FunctionKind::Entry);
    let space = match (&**base, space) {
        (Argument::Frame(_), _) => MemorySpace::Local,
        (Argument::Parameter(_), _) => MemorySpace::Arguments,
        (Argument::Symbol(Symbol::Variable(number), _), None) => {
            let is_shared = code.variables[*number].space == Space::Shared;
            if is_shared { MemorySpace::Shared } else { MemorySpace::Global }
        }
        (_, None) => MemorySpace::Generic,
        (_, Some(Space::Global | Space::Const)) => MemorySpace::Global,
        (_, Some(Space::Shared)) => MemorySpace::Shared,
        (_, Some(Space::Local)) => MemorySpace::Local,
        (_, Some(Space::Param)) if is_entry && !inst.form.has("param::func") => {
            MemorySpace::Arguments
        }
        (_, Some(Space::Param)) => MemorySpace::Local,
        (_, Some(Space::Reg | Space::Sreg | Space::Tex)) => return Err(Gap::form()),
    };
    let base = source(base, ScalarType::B64, addresses)?;
    Ok(MemoryAccess { space, base, offset: *offset, bytes })
}

/// Sizes of the values of a load or store: the type's, or halves of 128 bits.
fn values(inst: &Inst) -> Result<(Vec<MemoryValue>, u64), Gap> {
    let kind = inst.form.source().ok_or_else(Gap::form)?;
    let (bytes, count) = match kind {
        ScalarType::B128 => (8, 2 * u64::from(inst.form.elements)),
        kind if kind.bits() >= 8 => (kind.bytes(), inst.form.elements.into()),
        _ => return Err(Gap::form()),
    };
    let is_signed = kind.is_signed();
    let values = (0..count).map(|number| MemoryValue { offset: number * bytes, bytes, is_signed });
    Ok((values.collect(), bytes * count))
}

pub(super) fn load(inst: &Inst, code: &Code, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let [results, memory, ..] = &inst.operands[..] else { return Err(Gap::form()) };
    let (values, bytes) = values(inst)?;
    let access = access(inst, memory, inst.form.space, bytes, code, addresses)?;
    let results = elements(results);
    if results.len() != values.len() {
        return Err(Gap::form());
    }
    let results = results.iter().map(destination).collect::<Result<Vec<_>, _>>()?;
    Ok(Op::Load { access, values: values.into_iter().zip(results).collect() })
}

pub(super) fn store(inst: &Inst, code: &Code, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let [memory, data, ..] = &inst.operands[..] else { return Err(Gap::form()) };
    let kind = inst.form.source().ok_or_else(Gap::form)?;
    if inst.form.has("async") || inst.form.has("bulk") {
        return Err(Gap::form());
    }
    let (values, bytes) = values(inst)?;
    let access = access(inst, memory, inst.form.space, bytes, code, addresses)?;
    let element = if kind == ScalarType::B128 { ScalarType::B64 } else { kind };
    let data = elements(data);
    if data.len() != values.len() {
        return Err(Gap::form());
    }
    let data =
        data.iter().map(|part| source(part, element, addresses)).collect::<Result<Vec<_>, _>>()?;
    Ok(Op::Store { access, values: values.into_iter().zip(data).collect() })
}

pub(super) fn atomic(inst: &Inst, code: &Code, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let kind = inst.form.source().ok_or_else(Gap::form)?;
    let has_result = inst.form.opcode() == "atom";
    if inst.form.has("async") || kind.bits() > 64 {
        return Err(Gap::form());
    }
    let (results, rest) = match &inst.operands[..] {
        [result, rest @ ..] if has_result => (Some(elements(result)), rest),
        rest => (None, rest),
    };
    let [memory, operands @ ..] = rest else { return Err(Gap::form()) };
    let (bytes, count) = (kind.bytes(), usize::from(inst.form.elements));
    let access = access(inst, memory, inst.form.space, bytes * count as u64, code, addresses)?;
    let operation = AtomicOperation::of(&inst.form)?;
    let operands = operands.get(..operation.operands()).ok_or_else(Gap::form)?;
    let operands: Vec<Vec<Argument>> = operands.iter().map(elements).collect();
    if results.iter().chain(&operands).any(|elements| elements.len() != count) {
        return Err(Gap::form());
    }
    let value = |number: usize| {
        let sources = operands.iter().map(|all| source(&all[number], kind, addresses));
        let result = results.as_ref().map(|all| destination(&all[number]));
        Ok(AtomicValue {
            offset: bytes * number as u64,
            bytes,
            sources: sources.collect::<Result<Vec<_>, _>>()?,
            destination: result.transpose()?.unwrap_or(Destination::Sink),
        })
    };
    let values = (0..count).map(value).collect::<Result<Vec<_>, Gap>>()?;
    Ok(Op::Atomic { access, operation, values })
}

/// `cp.async` and the waits for it.
pub(super) fn copy(inst: &Inst, code: &Code, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let form = &inst.form;
    let is_wait = ["commit_group", "wait_group", "wait_all"].iter().any(|name| form.has(name));
    if !form.has("async") || form.has("bulk") || form.has("mbarrier") {
        return Err(Gap::form());
    }
    if is_wait {
        return Ok(Op::Nothing);
    }
    let [to, from, bytes, rest @ ..] = &inst.operands[..] else { return Err(Gap::form()) };
    let Source::Constant(bytes) = source(bytes, ScalarType::B32, addresses)? else {
        return Err(Gap::form());
    };
    if !matches!(bytes, 4 | 8 | 16) {
        return Err(Gap::form());
    }
    let has_policy = form.has("L2::cache_hint");
    let count = rest.first().filter(|_| rest.len() > usize::from(has_policy));
    let count = count.map(|count| source(count, ScalarType::B32, addresses)).transpose()?;
    Ok(Op::Copy(AsyncCopy {
        to: access(inst, to, Some(Space::Shared), bytes, code, addresses)?,
        from: access(inst, from, Some(Space::Global), bytes, code, addresses)?,
        count,
        is_ignoring: matches!(count, Some(Source::Predicate { .. })),
    }))
}

/// `ldmatrix` and `stmatrix`.
pub(super) fn matrix(inst: &Inst, code: &Code, addresses: &dyn Addresses) -> Result<Op, Gap> {
    let form = &inst.form;
    let is_store = form.opcode() == "stmatrix";
    let (memory, registers) = match &inst.operands[..] {
        [memory, registers] if is_store => (memory, registers),
        [registers, memory] if !is_store => (memory, registers),
        _ => return Err(Gap::form()),
    };
    if !form.has("m8n8") || form.source() != Some(ScalarType::B16) {
        return Err(Gap::form());
    }
    let space = form.space;
    let access = access(inst, memory, space, 16, code, addresses)?;
    let registers = elements(registers);
    let word = |register: &Argument| match destination(register)? {
        Destination::Word { word, .. } => Ok(word),
        _ => Err(Gap::form()),
    };
    let registers = registers.iter().map(word).collect::<Result<Vec<_>, _>>()?;
    let is_transposed = form.has("trans");
    Ok(Op::Matrix(MatrixLoad { access, registers, is_transposed, is_store }))
}
