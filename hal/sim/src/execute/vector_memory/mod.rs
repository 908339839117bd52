//! Vector memory: global, flat, scratch and buffer accesses, one address per lane.

mod addresses;
mod data;
mod exchange;
mod flat;
mod scattered;
mod transfer;

pub use addresses::{Addresses, lds_place};

use crate::execute::buffer::Buffer;
use crate::execute::operand::scalar_word;
use crate::instruction::vector_memory::{Space, VectorAccess};
use crate::instruction::{Op, Word};
use crate::memory::Memory;
use crate::wave::level::at_each_level;
use crate::wave::{LANES, Wave};
use addresses::address_word;
pub use exchange::exchange;
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
        Space::GlobalWithSignedOffset { shift } => {
            let addresses = Addresses::with_signed_offset(wave, op, exec, shift);
            transfer(wave, op, access.transfer, &addresses, memory, lds)?;
            if let Some(elements) = access.exchange {
                exchange(wave, op, elements, exec);
            }
            Ok(())
        }
        Space::Global => {
            let addresses = Addresses::of(wave, op, exec);
            transfer(wave, op, access.transfer, &addresses, memory, lds)?;
            if let Some(elements) = access.exchange {
                exchange(wave, op, elements, exec);
            }
            Ok(())
        }
        Space::GlobalByThread => {
            let addresses = Addresses::by_thread(wave, op, exec);
            transfer(wave, op, access.transfer, &addresses, memory, lds)
        }
        Space::ScaledScratch { shift } => {
            let base = match op.sources[2].words[0] {
                Word::Constant(_) => 0,
                word => scalar_word(wave, word),
            };
            let base = base.wrapping_add(op.immediate as u32);
            let offsets = std::array::from_fn(|lane| {
                base.wrapping_add(address_word(wave, op, 0, lane) << shift)
            });
            scratch(wave, op, access.transfer, &offsets, exec, memory, lds)
        }
        Space::Scratch => {
            let mut offsets = [0u32; LANES];
            let base = match op.sources[2].words[0] {
                Word::Constant(_) => 0,
                word => scalar_word(wave, word),
            };
            let base = base.wrapping_add(op.immediate as u32);
            for (lane, offset) in offsets.iter_mut().enumerate() {
                *offset = base.wrapping_add(address_word(wave, op, 0, lane));
            }
            scratch(wave, op, access.transfer, &offsets, exec, memory, lds)
        }
        Space::Flat => {
            let addresses = Addresses::of(wave, op, exec);
            flat(wave, op, access.transfer, addresses, memory, lds)
        }
        Space::FlatWithGlobalScratch { signed_offset } => {
            let addresses = match signed_offset {
                Some(shift) => Addresses::with_signed_offset(wave, op, exec, shift),
                None => Addresses::of(wave, op, exec),
            };
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
