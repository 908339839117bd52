//! Memory and LDS addresses that an instruction accesses.

use super::buffer::Buffer;
use super::lds::{self, two_offsets};
use super::scalar_memory;
use super::vector_memory::{Addresses, BufferOperands, private_offsets};
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{Space, VectorAccess};
use crate::instruction::{Op, Run};
use crate::wave::{Row, ScalarIndex, Wave};
use flipwave_isa::Lane;

/// For each element of a lane's access, the active lanes and the address of the element's first
/// byte. For private memory and LDS this is an offset; for buffers, out-of-range addresses are
/// included. Scalar accesses have one lane.
pub fn accessed(wave: &Wave, op: &Op) -> Vec<Vec<(Lane, u64)>> {
    match op.run {
        Run::VectorMemory(access) => vec![in_memory(wave, op, access)],
        Run::Lds(access) => in_lds(wave, op, access),
        Run::ScalarMemory(access) => {
            vec![vec![(Lane(0), scalar_memory::address(wave, op, access))]]
        }
        _ => Vec::new(),
    }
}

fn in_memory(wave: &Wave, op: &Op, access: VectorAccess) -> Vec<(Lane, u64)> {
    let exec = wave.exec();
    match access.space {
        Space::Scratch | Space::ScaledScratch { .. } => {
            offsets(wave, &private_offsets(wave, op, access.space))
        }
        Space::Buffer { offset, index } => {
            let buffer = Buffer::read(wave, op, access.transfer, index);
            let operands = BufferOperands::of(wave, op, offset, index);
            let place = |lane: Lane| {
                let (record, offset) = operands.of_lane(&buffer, lane);
                (lane, buffer.address(lane, record, offset))
            };
            exec.lanes().map(place).collect()
        }
        space => {
            let addresses = Addresses::of_space(wave, op, exec, space);
            exec.lanes().map(|lane| (lane, addresses.at(lane.0.into()))).collect()
        }
    }
}

fn in_lds(wave: &Wave, op: &Op, access: LdsAccess) -> Vec<Vec<(Lane, u64)>> {
    match access {
        LdsAccess::Read2 { scale, .. }
        | LdsAccess::Write2 { scale, .. }
        | LdsAccess::Exchange2 { scale, .. } => {
            let element = |at| offsets(wave, &lds::addresses(wave, op, at * scale));
            two_offsets(op).map(element).into()
        }
        LdsAccess::ReadByThread | LdsAccess::WriteByThread => {
            vec![offsets(wave, &lds::by_thread(wave, op))]
        }
        LdsAccess::Count { .. } => {
            let first = wave.scalar(ScalarIndex::M0) & 0xffff;
            vec![offsets(wave, &Row::splat(first.wrapping_add(op.immediate as u32)))]
        }
        access if access.is_exchange() => Vec::new(),
        _ => vec![offsets(wave, &lds::addresses(wave, op, op.immediate as u32))],
    }
}

fn offsets(wave: &Wave, row: &Row) -> Vec<(Lane, u64)> {
    wave.exec().lanes().map(|lane| (lane, row.0[usize::from(lane.0)].into())).collect()
}
