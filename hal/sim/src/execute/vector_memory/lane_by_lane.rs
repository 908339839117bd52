//! Accesses one lane after the other: for accesses that fault in one lane, rare operations, and
//! accesses that observers see in parts. The faster paths have the same results.

use super::addresses::{Addresses, BufferOperands, private_offsets};
use super::flat::{flat, flat_with_global_scratch, scratch};
use super::scattered::buffered;
use super::transfer::transfer;
use crate::execute::buffer::Buffer;
use crate::instruction::Op;
use crate::instruction::vector_memory::{Space, VectorAccess};
use crate::memory::Memory;
use crate::wave::Wave;
use flipwave_device::FaultCause;

/// Executes a vector memory operation.
#[cold]
#[inline(never)]
pub fn execute(
    wave: &mut Wave,
    op: &Op,
    access: VectorAccess,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let exec = wave.exec();
    match access.space {
        Space::Global
        | Space::GlobalByThread
        | Space::GlobalTransposed { .. }
        | Space::GlobalWithSignedOffset { .. } => {
            let addresses = Addresses::of_space(wave, op, exec, access.space);
            transfer(wave, op, access.transfer, &addresses, memory, lds)
        }
        Space::Scratch | Space::ScaledScratch { .. } => {
            let offsets = private_offsets(wave, op, access.space);
            scratch(wave, op, access.transfer, &offsets, exec, memory, lds)
        }
        Space::Flat => {
            let addresses = Addresses::of_space(wave, op, exec, access.space);
            flat(wave, op, access.transfer, addresses, memory, lds)
        }
        Space::FlatWithGlobalScratch { .. } => {
            let addresses = Addresses::of_space(wave, op, exec, access.space);
            flat_with_global_scratch(wave, op, access.transfer, addresses, memory, lds)
        }
        Space::Buffer { offset, index } => {
            let buffer = Buffer::read(wave, op, access.transfer, index);
            let operands = BufferOperands::of(wave, op, offset, index);
            buffered(wave, op, access.transfer, &buffer, &operands, memory, lds)
        }
    }
}
