//! Placement of the elements of all lanes of an access, if they are placed alike.

use super::addresses::{Addresses, BufferOperands, private_offsets};
use crate::execute::buffer::Buffer;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Element, Op};
use crate::memory::aperture::{GLOBAL_PRIVATE, PRIVATE, SHARED};
use crate::wave::{LANES, Row, Wave, private};
use flipwave_isa::LaneMask;

/// Placement of the lanes' elements in device memory.
pub struct Placement {
    /// Addresses of the accessing lanes.
    pub addresses: Addresses,
    /// Byte distance between consecutive words of an element.
    pub apart: u32,
    /// Out-of-range lanes, which load zeros and whose stores are dropped.
    pub void: LaneMask,
}

impl Placement {
    /// Placement of elements whose words are contiguous, one element per lane.
    #[inline(always)]
    pub fn contiguous(addresses: Addresses) -> Placement {
        Placement { addresses, apart: 4, void: LaneMask::EMPTY }
    }
}

/// Memory that all lanes access.
#[expect(clippy::large_enum_variant, reason = "it lives on the stack for one access")]
pub enum Place {
    /// Device memory.
    Memory(Placement),
    /// LDS at these addresses.
    Lds(Row),
}

/// Memory that the active lanes access; `None` if they access different kinds.
#[inline(always)]
pub fn place(wave: &Wave, op: &Op, access: VectorAccess) -> Option<Place> {
    let lanes = wave.exec();
    let element = match access.transfer {
        Transfer::Load(element) | Transfer::Store(element) => Some(element),
        Transfer::Atomic { .. } => None,
        _ => return None,
    };
    let placement = match access.space {
        Space::Global
        | Space::GlobalByThread
        | Space::GlobalWithSignedOffset { .. }
        | Space::GlobalTransposed { .. } => {
            Placement::contiguous(Addresses::of_space(wave, op, lanes, access.space))
        }
        Space::Scratch | Space::ScaledScratch { .. } => {
            private(wave, &private_offsets(wave, op, access.space), lanes, element?)?
        }
        Space::Flat | Space::FlatWithGlobalScratch { .. } => {
            let addresses = match access.space {
                Space::Flat => Addresses::of(wave, op, lanes),
                space => Addresses::of_space(wave, op, lanes, space),
            };
            match window(&addresses, wave.exec_row(), access.space)? {
                Window::Global => Placement::contiguous(addresses),
                Window::Private => private(wave, &addresses.low, lanes, element?)?,
                Window::Lds => return Some(Place::Lds(addresses.low)),
            }
        }
        Space::Buffer { offset, index } => {
            let buffer = Buffer::read(wave, op, access.transfer, index);
            let operands = BufferOperands::of(wave, op, offset, index);
            let offsets = operands.offsets(&buffer, wave.exec_row())?;
            let granule = access.transfer.granule(&buffer) as u32;
            let bytes = access.transfer.bytes() as u32;
            buffer.place([&operands.indices, &offsets], (wave.exec_row(), lanes), bytes, granule)?
        }
    };
    Some(Place::Memory(placement))
}

/// Placement of the elements at private offsets, if each lies in one dword or consists of whole
/// dwords; `None` if offsets exceed a lane's maximum.
#[inline(always)]
pub fn private(wave: &Wave, offsets: &Row, lanes: LaneMask, element: Element) -> Option<Placement> {
    let stride = private::stride(wave.machine.lanes);
    let apart = stride / 4;
    let last = match element {
        Element::Words(_) => 0,
        Element::Part { bytes, .. } => 4 - u32::from(bytes),
    };
    let mut addresses = Row::ZERO;
    let mut odd = 0;
    for lane in 0..LANES {
        let offset = offsets.0[lane];
        let byte = offset % 4;
        let is_odd = (byte > last) | (offset >= u32::MAX / (2 * apart));
        odd |= u64::from(is_odd) << lane;
        let row = (offset - byte).wrapping_mul(apart);
        addresses.0[lane] = row.wrapping_add(4 * lane as u32 + byte);
    }
    let base = wave.scalar_pair(wave.machine.flat_scratch);
    let addresses = Addresses::after(base, &addresses, &Row::ZERO, lanes);
    (odd & lanes.0 == 0).then_some(Placement { addresses, apart: stride, void: LaneMask::EMPTY })
}

/// Address window that contains all lanes' flat addresses.
enum Window {
    Global,
    Private,
    Lds,
}

/// Window of the active lanes' addresses, if they share one.
#[inline(always)]
fn window(addresses: &Addresses, active: &Row, space: Space) -> Option<Window> {
    let upper = |address: u64| (address >> 32) as u32;
    let [mut shared, mut private, mut global_private, mut others] = [0; 4];
    for lane in 0..LANES {
        let high = addresses.high.0[lane];
        let is = |there: bool| if there { active.0[lane] } else { 0 };
        shared |= is(high == upper(SHARED));
        private |= is(high == upper(PRIVATE));
        global_private |= is((high ^ upper(GLOBAL_PRIVATE)) >> 26 == 0);
        others |= is((high != upper(SHARED)) & (high != upper(PRIVATE)));
    }
    if global_private != 0 && space != Space::Flat {
        return None;
    }
    match (shared != 0, private != 0, others != 0) {
        (true, false, false) => Some(Window::Lds),
        (false, true, false) => Some(Window::Private),
        (false, false, true) => Some(Window::Global),
        _ => None,
    }
}
