//! Vector memory: global, flat, scratch and buffer accesses, one address per lane.

mod addresses;
mod data;
mod flat;
mod scattered;
mod transfer;

pub use addresses::{Addresses, lds_place};

use crate::execute::buffer::Buffer;
use crate::execute::exchange::Loaded;
use crate::execute::operand::scalar_word;
use crate::instruction::vector_memory::{Space, Transfer, Transposed, VectorAccess};
use crate::instruction::{Op, Word};
use crate::memory::Memory;
use crate::wave::level::at_each_level;
use crate::wave::{LANES, Wave};
use addresses::address_word;
use flat::{flat, flat_with_global_scratch, scratch};
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;
use scattered::buffered;
use transfer::transfer;

at_each_level! {
    /// Executes a vector memory operation.
    pub fn execute(
        wave: &mut Wave,
        op: &Op,
        access: VectorAccess,
        memory: &mut dyn Memory,
        lds: &mut [u8],
    ) -> Result<(), FaultCause> = execute_access;
}

#[inline(always)]
fn execute_access(
    wave: &mut Wave,
    op: &Op,
    access: VectorAccess,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let exec = wave.exec();
    if exec == LaneMask::EMPTY {
        return Ok(());
    }
    match access.space {
        Space::Global | Space::GlobalWithSignedOffset { .. } => {
            // The frequent one is made in vectors of the host.
            let addresses = match access.space {
                Space::Global => Addresses::of(wave, op, exec),
                space => Addresses::of_space(wave, op, exec, space),
            };
            transfer(wave, op, access.transfer, &addresses, memory, lds)
        }
        Space::GlobalByThread => {
            let addresses = Addresses::of_space(wave, op, exec, access.space);
            rare(wave, op, access.transfer, &addresses, memory, lds)
        }
        Space::GlobalTransposed { elements, .. } => {
            let addresses = Addresses::of_space(wave, op, exec, access.space);
            rare(wave, op, access.transfer, &addresses, memory, lds)?;
            transpose(wave, op, elements);
            Ok(())
        }
        Space::Scratch | Space::ScaledScratch { .. } => {
            let mut offsets = [0u32; LANES];
            let base = match op.sources[2].words[0] {
                Word::Constant(_) => 0,
                word => scalar_word(wave, word),
            };
            let base = base.wrapping_add(op.immediate as u32);
            let shift = match access.space {
                Space::ScaledScratch { shift } => shift,
                _ => 0,
            };
            for (lane, offset) in offsets.iter_mut().enumerate() {
                *offset = base.wrapping_add(address_word(wave, op, 0, lane) << shift);
            }
            scratch(wave, op, access.transfer, &offsets, exec, memory, lds)
        }
        Space::Flat => {
            let addresses = Addresses::of(wave, op, exec);
            flat(wave, op, access.transfer, addresses, memory, lds)
        }
        Space::FlatWithGlobalScratch { .. } => {
            let addresses = Addresses::of_space(wave, op, exec, access.space);
            flat_with_global_scratch(wave, op, access.transfer, addresses, memory, lds)
        }
        Space::Buffer { offset, index } => {
            let buffer = Buffer::read(wave, op, index);
            let mut offsets = [0u32; LANES];
            let mut indices = [0u32; LANES];
            for lane in 0..LANES {
                let second = usize::from(index);
                offsets[lane] = (op.immediate as u32).wrapping_add(if offset {
                    address_word(wave, op, second, lane)
                } else {
                    0
                });
                indices[lane] = if index { address_word(wave, op, 0, lane) } else { 0 };
            }
            buffered(wave, op, access.transfer, &buffer, &offsets, &indices, memory, lds)
        }
    }
}

/// A transfer out of the way of frequent ones.
#[cold]
#[inline(never)]
fn rare(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    addresses: &Addresses,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    transfer(wave, op, what, addresses, memory, lds)
}

/// Has the lanes exchange the elements that they have loaded.
#[cold]
#[inline(never)]
pub fn transpose(wave: &mut Wave, op: &Op, elements: Transposed) {
    let (words, count) = (elements.words(), elements.count());
    let mut lanes = [0; LANES];
    for lane in wave.exec().lanes().map(|lane| usize::from(lane.0)) {
        let rows = wave.rows_of(op.destination, words).iter().rev();
        lanes[lane] = rows.fold(0, |all, row| all << 32 | u128::from(row.0[lane]));
    }
    Loaded { lanes, words, bits: elements.bits() }
        .exchange(wave, op, |lane, element| (elements.source(lane, element), lane % count));
}
