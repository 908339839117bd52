//! Vector memory: global, flat, scratch and buffer accesses, one address per lane.
//!
//! An access is made for all lanes at once if the result is that of a lane-by-lane access,
//! otherwise lane by lane.

mod addresses;
mod data;
mod flat;
mod lane_by_lane;
mod placement;
mod scattered;
mod transfer;
mod whole_wave;

pub use addresses::{Addresses, BufferOperands, exact_private_offset, lds_place, private_offsets};
pub use placement::Placement;

use crate::execute::exchange::Loaded;
use crate::instruction::vector_memory::{Space, Transposed, VectorAccess};
use crate::instruction::{Op, Run};
use crate::memory::aperture::Window;
use crate::memory::{Memory, aperture};
use crate::wave::level::at_each_level;
use crate::wave::{LANES, Wave};
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;
use placement::Place;

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
    if wave.exec() == LaneMask::EMPTY {
        return Ok(());
    }
    if !at_once(wave, op, access, memory, lds) {
        lane_by_lane::execute(wave, op, access, memory, lds)?;
    }
    if let Space::GlobalTransposed { elements, .. } = access.space {
        transpose(wave, op, elements);
    }
    Ok(())
}

/// Executes an operation for all lanes at once; returns `false` without effect if it cannot.
#[inline(always)]
fn at_once(
    wave: &mut Wave,
    op: &Op,
    access: VectorAccess,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> bool {
    if access.space == Space::Global {
        // The most frequent kind has a separate path: its addresses are not copied into a common
        // variable.
        let placement = Placement::contiguous(Addresses::of(wave, op, wave.exec()));
        return whole_wave::transfer(wave, op, access.transfer, &placement, memory);
    }
    match placement::place(wave, op, access) {
        Some(Place::Memory(placement)) => {
            whole_wave::transfer(wave, op, access.transfer, &placement, memory)
        }
        Some(Place::Lds(offsets)) => {
            whole_wave::transfer_lds(wave, op, access.transfer, &offsets, lds)
        }
        None => false,
    }
}

/// Address of the first in-range element in device memory; `None` if the lanes' elements are not
/// placed alike.
pub fn first_address(wave: &Wave, op: &Op, access: VectorAccess) -> Option<u64> {
    let Some(Place::Memory(placement)) = placement::place(wave, op, access) else { return None };
    let Addresses { lanes, .. } = placement.addresses;
    (lanes != LaneMask::EMPTY).then(|| placement.addresses.first(lanes))
}

/// Returns `true` for a flat access whose first active lane accesses private memory or LDS.
pub fn leads_elsewhere(wave: &Wave, op: &Op) -> bool {
    let (exec, space) = match op.run {
        Run::VectorMemory(access) => (wave.exec(), access.space),
        _ => return false,
    };
    if !space.is_flat() || exec == LaneMask::EMPTY {
        return false;
    }
    let address = Addresses::of_space(wave, op, exec, space).first(exec);
    let is_global = matches!(aperture::window(address), Window::Global(_));
    let is_shared_private = space != Space::Flat && aperture::global_private(address).is_some();
    !is_global || is_shared_private
}

/// Exchanges the loaded elements between the lanes.
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

#[cfg(test)]
mod tests;
