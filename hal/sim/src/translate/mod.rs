//! Translation of decoded instructions into [`Op`]s, which the simulator executes.

mod barrier_order;
pub mod code;
pub mod coverage;
mod memory;
mod memory_floats;
mod not_compute;
mod on_scalars;
mod operands;
mod order;
pub mod program;
mod slots;
mod unspecified;
mod vector;

use crate::execute::lane::Kind;
use crate::execute::{hardware_register, scalar};
use crate::instruction::{
    Dual, Flow, Inner, NotExecuted, Op, Run, ScalarOperation, Shared, Source, TableRow, Word,
    control, scalar_memory, tensor,
};
use crate::wave::{Level, Machine, RowIndex, ScalarIndex};
use flipwave_device::Absence;
use flipwave_isa::{
    AccVgpr, Encoding, Family, Inst, Opcode, Operand, Operation, Register, RegisterRange, Role,
    Value, Vgpr,
};
use memory::{lds_operands, scalar_memory_operands, vector_memory_operands};
use operands::{Gap, OPERANDS, constant, source};
use vector::vector_operands;

/// Translates an instruction. One that cannot be executed becomes an [`Op`] whose execution reports
/// the reason.
pub fn translate(inst: Inst, level: Level, machine: Machine) -> Op {
    let mut op = Op::new(inst, Run::Gap(""));
    op.run = match resolve(&mut op, level, machine) {
        Ok(run) => run,
        Err(Gap(reason)) => Run::Gap(reason),
    };
    op.per_lane = op.run.is_per_lane();
    op.flow = flow(&op);
    op.shared = Shared::of(op.run);
    op.held = op.shared;
    if machine.accum_offset().is_some() {
        relocate_acc_vgprs(&mut op, machine);
    }
    op
}

/// Computes [`Op::flow`].
fn flow(op: &Op) -> Flow {
    if matches!(op.run, Run::Control(control::Control::Barrier)) {
        return Flow::Waits;
    }
    let parts = match op.run {
        Run::Control(control) => control != control::Control::Nothing,
        Run::NotCompute(_) | Run::Unspecified(_) | Run::Gap(_) => true,
        // Instructions that change MODE.
        _ if op.inst.operation.is(Family::GprIndex) => true,
        _ => op.inst.writes.iter().any(|range| range.first == Register::Mode),
    };
    if parts { Flow::Parts } else { Flow::of_place(&op.inst) }
}

/// Moves AccVGPR operands to the rows where the kernel's AccVGPRs begin.
fn relocate_acc_vgprs(op: &mut Op, machine: Machine) {
    op.destination = machine.place(op.destination);
    for word in op.sources.iter_mut().flat_map(|source| &mut source.words) {
        if let Word::Row(row) = word {
            *row = machine.place(*row);
        }
    }
}

/// Resolves the operands, and selects the function that executes the instruction.
fn resolve(op: &mut Op, level: Level, machine: Machine) -> Result<Run, Gap> {
    record_named_registers(op, machine);
    let inst = op.inst.clone();
    let name = inst.operation.name();
    if let Some(reason) = not_compute::reason(&inst, machine.generation) {
        return Ok(Run::NotCompute(reason));
    }
    if let Some(reason) = unspecified::reason(&inst, machine) {
        return Ok(Run::Unspecified(reason));
    }
    if !inst.modifiers.unrecognized.is_empty() {
        return Err(Gap("a modifier is not understood"));
    }
    if let Some(destination) = inst.destinations().next()
        && let Value::Register(range) = destination.value
    {
        if let Some(row) = RowIndex::nominal(range.first) {
            op.destination = row;
        } else {
            op.scalar_destination = ScalarIndex::of_destination(range.first);
        }
    }
    if let Some(control) = control::find(name) {
        if inst.encoding == Encoding::Ds {
            op.immediate = inst.modifiers.offset;
        }
        if let Some(target) = inst.branch_target {
            let next = inst.pc.0.wrapping_add(inst.size.into());
            op.immediate = target.0.wrapping_sub(next) as i64 / 4;
        }
        for (slot, operand) in op
            .sources
            .iter_mut()
            .zip(inst.sources().filter(|operand| !matches!(operand.value, Value::Symbol(_))))
        {
            *slot = source(operand, Kind::Wide)?;
        }
        // The source is four bits of MODE, the immediate the hardware register field that they are
        // written to.
        if let Some(offset) = match inst.operation.opcode() {
            Opcode::SRoundMode => Some(0),
            Opcode::SDenormMode => Some(4),
            _ => None,
        } {
            op.sources[0] = Source { words: constant(op.immediate as u64 & 0xf) };
            op.immediate = hardware_register::mode_field(offset, 4).into();
        }
        return Ok(Run::Control(control));
    }
    if matches!(name, "lds_direct_load" | "ds_direct_load") {
        return lds_direct_load(op, level);
    }
    if inst.operation.is(Family::SendMessageReturn) {
        return answered_message(op);
    }
    if let Some(operation) = scalar::find(name) {
        return scalar_operands(op, &inst, operation);
    }
    if let Some(name) = on_scalars::vector_name(name) {
        return on_scalars::operands(op, &inst, &name, level, machine);
    }
    if let Some(access) = scalar_memory::find(name, inst.modifiers.glc) {
        return scalar_memory_operands(op, &inst, access);
    }
    if let Some(direction) = tensor::find(name) {
        return tensor_operands(op, &inst, direction);
    }
    match inst.encoding {
        Encoding::Global
        | Encoding::Flat
        | Encoding::Scratch
        | Encoding::Mubuf
        | Encoding::Mtbuf => vector_memory_operands(op, &inst, machine),
        Encoding::Ds => lds_operands(op, &inst, machine),
        Encoding::Vopd => dual(op, &inst, level, machine),
        _ => {
            let run = vector_operands(op, &inst, level, machine)?;
            Ok(if reads_lds(op) { lds_direct(op, run) } else { run })
        }
    }
}

/// Returns `true` if a source is the LDS word that M0 addresses.
fn reads_lds(op: &Op) -> bool {
    let direct = Word::Scalar(ScalarIndex::LDS_DIRECT);
    op.sources.iter().any(|source| source.words[0] == direct)
}

/// Wraps an operation: the LDS word is read first, then `run` executes the operation.
fn lds_direct(op: &mut Op, run: Run) -> Run {
    let inner = Op { run, per_lane: run.is_per_lane(), ..op.clone() };
    op.inner = Some(Box::new(Inner::LdsDirect(inner)));
    Run::LdsDirect
}

/// Translates a load of the LDS word that M0 addresses to all lanes: a move from it.
fn lds_direct_load(op: &mut Op, level: Level) -> Result<Run, Gap> {
    let copy = crate::execute::operations::find("v_mov_b32").ok_or(OPERANDS)?;
    op.sources[0] = Source { words: [Word::Scalar(ScalarIndex::LDS_DIRECT); 2] };
    Ok(lds_direct(op, Run::Vector(copy.function(level))))
}

/// Records the highest vector registers that the operands name.
fn record_named_registers(op: &mut Op, machine: Machine) {
    let border = machine.accum_offset().unwrap_or(u16::MAX);
    for operand in &op.inst.operands {
        if let Value::Register(RegisterRange { first, words }) = operand.value {
            match first {
                Register::Vgpr(Vgpr(n)) => {
                    let end = n + u16::from(words);
                    op.vgprs_named = op.vgprs_named.max(end.min(border));
                    op.acc_vgprs_named = op.acc_vgprs_named.max(end.saturating_sub(border));
                }
                Register::AccVgpr(AccVgpr(n)) => {
                    op.acc_vgprs_named = op.acc_vgprs_named.max(u16::from(n) + u16::from(words));
                }
                _ => {}
            }
        }
    }
}

/// Resolves the operands of a scalar operation.
fn scalar_operands(
    op: &mut Op,
    inst: &Inst,
    operation: &'static ScalarOperation,
) -> Result<Run, Gap> {
    let is_register = |operand: &Operand| matches!(operand.value, Value::Register(_));
    let mut values: Vec<&Operand> = inst
        .sources()
        .filter(|operand| inst.encoding != Encoding::Sopk || is_register(operand))
        .collect();
    // A destination that is also read is the last source.
    if values.len() < operation.sources.len()
        && let Some(destination) = inst.destinations().next()
    {
        values.push(destination);
    }
    if values.len() < operation.sources.len() {
        return Err(Gap("the operands are not those of the operation"));
    }
    for (index, value) in values.iter().take(op.sources.len()).enumerate() {
        let words = operation.sources.get(index).copied().unwrap_or(1);
        let kind = if words == 2 { Kind::Wide } else { Kind::Word };
        op.sources[index] = source(value, kind)?;
    }
    op.row = Some(TableRow::Scalar(operation));
    Ok(Run::Scalar(operation.run))
}

/// Translates the groups of scalar registers with a tensor descriptor. The last two are absent for
/// smaller tensors, and then read as zero.
fn tensor_operands(op: &mut Op, inst: &Inst, direction: tensor::Direction) -> Result<Run, Gap> {
    for (slot, operand) in op.sources.iter_mut().zip(inst.sources()) {
        *slot = match operand.value {
            Value::Off => Source::NONE,
            _ => source(operand, Kind::Word)?,
        };
    }
    Ok(Run::Tensor(direction))
}

/// Translates a message whose answer goes to a register (AMDGPUUsage and LLVM's `SIDefines.h`,
/// `sendmsg`).
fn answered_message(op: &mut Op) -> Result<Run, Gap> {
    const GET_DOORBELL: i64 = 128;
    const GET_DDID: i64 = 129;
    const GET_TMA: i64 = 130;
    const GET_REALTIME: i64 = 131;
    const GET_TBA: i64 = 133;
    const GET_SE_AID_ID: i64 = 135;
    match op.immediate {
        GET_REALTIME => {
            let clock = scalar_memory::find("s_memrealtime", false);
            clock.map(Run::ScalarMemory).ok_or(OPERANDS)
        }
        // Only trap handlers use these, and none is installed: the addresses are zero, and all
        // waves run on the first shader engine. The sources of the move are zero.
        GET_DOORBELL | GET_DDID | GET_TMA | GET_TBA | GET_SE_AID_ID => {
            let wide = op.inst.operation.opcode() == Opcode::SSendmsgRtn64;
            let zero = scalar::find(if wide { "s_mov_b64" } else { "s_mov_b32" });
            zero.map(|operation| Run::Scalar(operation.run)).ok_or(OPERANDS)
        }
        _ => Ok(Run::NotCompute(NotExecuted {
            absence: Absence::FromCompute,
            reason: "only a trap handler sends this message",
        })),
    }
}

/// Translates a dual-issue instruction: both halves as separate instructions.
fn dual(op: &mut Op, inst: &Inst, level: Level, machine: Machine) -> Result<Run, Gap> {
    // Each half begins with its only destination.
    let is_destination = |index: &usize| inst.operands[*index].role == Role::Destination;
    let starts: Vec<usize> = (0..inst.operands.len()).filter(is_destination).collect();
    let &[_, second] = starts.as_slice() else { return Err(OPERANDS) };
    let half = |operands: &[Operand], text: &str| {
        let mnemonic = text.split_whitespace().next().unwrap_or_default();
        let operation =
            Operation::from_mnemonic(&mnemonic.replace("dual_", ""), machine.generation);
        let mut half = inst.clone();
        half.operation = operation;
        half.encoding = Encoding::Vop2;
        half.operands = operands.to_vec();
        translate(half, level, machine)
    };
    let (first, second) = inst.operands.split_at(second);
    let (first_text, second_text) = inst.text.split_once(" :: ").ok_or(OPERANDS)?;
    let (mut first, second) = (half(first, first_text), half(second, second_text));
    for half in [&first, &second] {
        if let Run::Gap(reason) = half.run {
            return Err(Gap(reason));
        }
    }
    let destination = std::mem::replace(&mut first.destination, RowIndex::WAITING);
    let words = match inst.operands[0].value {
        Value::Register(range) => range.words.into(),
        _ => 1,
    };
    op.inner = Some(Box::new(Inner::Dual(Dual { first, destination, words, second })));
    Ok(Run::Dual)
}

#[cfg(test)]
mod tests;
