//! Operands of instructions that access memory or LDS.

use super::operands::{Gap, OPERANDS, constant, source};
use crate::execute::lane::Kind;
use crate::instruction::lane_move::LaneMove;
use crate::instruction::lds::{self, LdsAccess};
use crate::instruction::scalar_memory::ScalarAccess;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Adapt, Op, Run, Source, vector_memory};
use crate::wave::Machine;
use flipwave_isa::{Encoding, Family, Generation, Inst, Operand, Value};

/// Resolves the operands of a scalar memory access.
pub fn scalar_memory_operands(op: &mut Op, inst: &Inst, access: ScalarAccess) -> Result<Run, Gap> {
    op.immediate = inst.modifiers.offset;
    let access = ScalarAccess { is_scaled: inst.modifiers.scale_offset, ..access };
    let values: Vec<&Operand> = inst.sources().collect();
    // Slots: 0 base, 1 offset, 2 data. Data is the first operand unless it is also the destination.
    let has_destination = inst.destinations().next().is_some();
    let order: &[usize] = if has_destination { &[0, 1] } else { &[2, 0, 1] };
    if values.len() > order.len() {
        return Err(OPERANDS);
    }
    for (value, slot) in values.into_iter().zip(order) {
        match (slot, &value.value) {
            (1, Value::Integer(offset)) => op.immediate = *offset,
            (1, Value::Literal(offset)) => op.immediate = i64::from(*offset),
            _ => op.sources[*slot] = source(value, Kind::Wide)?,
        }
    }
    if let Some(destination) = inst.destinations().next() {
        op.sources[2] = source(destination, Kind::Wide)?;
    }
    Ok(Run::ScalarMemory(access))
}

/// Resolves the operands of a vector memory access.
pub fn vector_memory_operands(op: &mut Op, inst: &Inst, machine: Machine) -> Result<Run, Gap> {
    let mut access = vector_memory::find(inst).ok_or(Gap("this memory operation"))?;
    if machine.generation >= Generation::Gfx125 {
        access.space = newest_space(inst, access);
    }
    if machine.loads_whole_registers {
        access.transfer = access.transfer.in_whole_registers();
    }
    if matches!(access.space, Space::GlobalTransposed { .. }) && machine.lanes != 32 {
        return Err(Gap("how waves of 64 lanes exchange what they load is not published"));
    }
    op.immediate = inst.modifiers.offset;
    let values: Vec<&Operand> = inst.sources().collect();
    let is_asynchronous = inst.operation.is(Family::AsyncLds);
    let has_data = access.transfer.has_data() || is_asynchronous;
    // Slots: 0 address, 1 data, 2 scalar base or resource, 3 scalar offset.
    let order: &[usize] = match (inst.encoding, has_data) {
        // Transfers from LDS to memory have no address register.
        (Encoding::Mubuf, false) if values.len() == 2 => &[2, 3],
        (Encoding::Mubuf | Encoding::Mtbuf, false) => &[0, 2, 3],
        // The destination of a returning atomic is also its data.
        (Encoding::Mubuf, true) if inst.destinations().next().is_some() => &[0, 2, 3],
        (Encoding::Mubuf | Encoding::Mtbuf, true) => &[1, 0, 2, 3],
        _ if access.space == Space::GlobalByThread && has_data => &[1, 2],
        _ if access.space == Space::GlobalByThread => &[2],
        // The LDS address is the first operand where LDS is written.
        _ if is_asynchronous && matches!(access.transfer, Transfer::LoadToLds(_)) => &[1, 0, 2],
        // gfx1250 has a scalar base.
        (Encoding::Flat, has_data) if values.len() == 2 + usize::from(has_data) => {
            if has_data {
                &[0, 1, 2]
            } else {
                &[0, 2]
            }
        }
        (Encoding::Flat, false) => &[0],
        (Encoding::Flat, true) => &[0, 1],
        (_, false) => &[0, 2],
        (_, true) => &[0, 1, 2],
    };
    if values.len() != order.len() {
        return Err(Gap("the operands are not those of the operation"));
    }
    for (value, slot) in values.iter().zip(order) {
        op.sources[*slot] = source(value, Kind::Word)?;
    }
    if has_data
        && op.sources[1] == Source::NONE
        && let Some(destination) = inst.destinations().next()
    {
        op.sources[1] = source(destination, Kind::Word)?;
    }
    Ok(Run::VectorMemory(access))
}

/// Address computation of gfx1250: offsets from a scalar base are signed and may count elements,
/// and flat addresses reach private memory in another way.
fn newest_space(inst: &Inst, access: VectorAccess) -> Space {
    let shift = if inst.modifiers.scale_offset {
        access.transfer.bytes().trailing_zeros() as u8
    } else {
        0
    };
    let has_base = inst.sources().any(|operand| match operand.value {
        Value::Register(range) => !range.first.is_per_lane(),
        _ => false,
    });
    match access.space {
        Space::Global if has_base => Space::GlobalWithSignedOffset { shift },
        Space::GlobalTransposed { elements, .. } => {
            Space::GlobalTransposed { elements, signed_offset: has_base.then_some(shift) }
        }
        Space::Flat => Space::FlatWithGlobalScratch { signed_offset: has_base.then_some(shift) },
        Space::Scratch if shift > 0 => Space::ScaledScratch { shift },
        space => space,
    }
}

/// Resolves the operands of an LDS access.
pub fn lds_operands(op: &mut Op, inst: &Inst, machine: Machine) -> Result<Run, Gap> {
    // The gfx11 name reflects that the new value precedes the compared value.
    let name = inst.operation.name().replace("ds_cmpstore_", "ds_cmpst_");
    let access = match lds::find(&name).ok_or(Gap("this LDS operation"))? {
        LdsAccess::Read(element) if machine.loads_whole_registers => {
            LdsAccess::Read(element.in_whole_registers())
        }
        access => access,
    };
    // The encoding has one field: one long offset or two short ones.
    let modifiers = &inst.modifiers;
    let short = i64::from(modifiers.offset0) | i64::from(modifiers.offset1) << 8;
    op.immediate = modifiers.offset | short;
    if access == LdsAccess::Swizzle {
        let pattern = modifiers.swizzle.unwrap_or(op.immediate as u16);
        let lane_move = Some(LaneMove::swizzle(pattern));
        op.adapt = Some(Box::new(Adapt { lane_move, ..Adapt::default() }));
    }
    // Accesses addressed by the thread's number have no address register.
    let first = usize::from(access == LdsAccess::WriteByThread);
    for (slot, operand) in op.sources[first..].iter_mut().zip(inst.sources()) {
        *slot = source(operand, Kind::Word)?;
    }
    if name != inst.operation.name() {
        op.sources.swap(1, 2);
    }
    // Without data, one arrival.
    if name == "ds_atomic_async_barrier_arrive_b64" {
        op.sources[1] = Source { words: constant(1) };
    }
    Ok(Run::Lds(access))
}
