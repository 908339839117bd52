//! Flat accesses, whose lanes may access LDS and private memory, and private accesses.

use super::addresses::Addresses;
use super::data::{atomic_operands, data_row, write_lane};
use super::placement::{self, Placement};
use super::scattered::{Memories, scattered};
use super::transfer::{load_words, store_words, transfer};
use crate::execute::buffer::Buffer;
use crate::execute::lds;
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Element, Op};
use crate::memory::aperture::Window;
use crate::memory::{Memory, aperture};
use crate::wave::{LANES, Row, Wave, private};
use flipwave_device::FaultCause;
use flipwave_isa::{Lane, LaneMask};

/// Executes a flat access: each lane's address window decides. LDS and private memory are accessed
/// lane by lane, global memory as a global access.
#[inline(never)]
pub fn flat(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    mut addresses: Addresses,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let exec = addresses.lanes;
    let mut global = LaneMask::EMPTY;
    let mut private = LaneMask::EMPTY;
    let mut offsets = Row::ZERO;
    for lane in exec.lanes() {
        let bit = 1u64 << lane.0;
        match aperture::window(addresses.at(lane.0.into())) {
            Window::Global(_) => global.0 |= bit,
            Window::Private(offset) => {
                private.0 |= bit;
                offsets.0[usize::from(lane.0)] = offset;
            }
            Window::Lds(offset) => flat_lds(wave, op, what, lane, offset, lds)?,
        }
    }
    if private != LaneMask::EMPTY {
        scratch(wave, op, what, &offsets, private, memory, lds)?;
    }
    if global != LaneMask::EMPTY {
        addresses.lanes = global;
        transfer(wave, op, what, &addresses, memory, lds)?;
    }
    Ok(())
}

/// Executes a flat access where private memory has addresses that all waves share. The addresses of
/// a lane, of this wave or of others, have a stride of one dword per lane.
#[inline(never)]
pub fn flat_with_global_scratch(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    mut addresses: Addresses,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let exec = addresses.lanes;
    let mut private = LaneMask::EMPTY;
    let mut places = [(0, Lane(0), 0); LANES];
    for lane in exec.lanes() {
        let owner = aperture::global_private(addresses.at(lane.0.into()))
            .and_then(|(owner, sum)| Some((Lane(owner), wave.private.owner(sum)?)));
        if let Some((owner, (base, offset))) = owner {
            private.0 |= 1 << lane.0;
            places[usize::from(lane.0)] = (base, owner, offset);
        }
    }
    if private != LaneMask::EMPTY {
        let lanes = wave.machine.lanes;
        let memories = Memories { device: memory, lds };
        scattered(wave, op, what, private, &Buffer::default(), memories, |lane, byte| {
            let (base, owner, offset) = places[usize::from(lane.0)];
            Some(private::address(base, lanes, owner, offset.wrapping_add(byte)))
        })?;
    }
    match LaneMask(exec.0 & !private.0) {
        LaneMask::EMPTY => Ok(()),
        others => {
            addresses.lanes = others;
            flat(wave, op, what, addresses, memory, lds)
        }
    }
}

/// Executes one lane's flat access to LDS.
fn flat_lds(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    lane: Lane,
    offset: u32,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let index = usize::from(lane.0);
    match what {
        Transfer::Load(element) => {
            let bytes = lds::read(lds, offset, element.bytes());
            for word in 0..element.words() {
                let row = wave.row_mut(op.destination.plus(word.into()));
                let loaded = u32::from_le_bytes(
                    [0, 1, 2, 3].map(|byte| bytes[usize::from(word) * 4 + byte]),
                );
                row.0[index] = element.extend(loaded, row.0[index]);
            }
        }
        Transfer::Store(element) => {
            let mut bytes = [0; 16];
            for word in 0..element.words() {
                let register = data_row(op, word.into()).map_or(0, |row| wave.row(row).0[index]);
                bytes[usize::from(word) * 4..][..4]
                    .copy_from_slice(&element.part(register).to_le_bytes());
            }
            lds::write(lds, offset, &bytes[..element.bytes()]);
        }
        Transfer::Atomic { atomic, returns } => {
            let operands = atomic_operands(wave, op, atomic, lane);
            let old = lds::modify(lds, offset, lane, atomic, operands)?;
            if returns {
                write_lane(wave, op, lane, old, atomic.bytes);
            }
        }
        // No flat instruction converts data, or moves data between LDS and memory.
        _ => {}
    }
    Ok(())
}

/// Executes a private access; the base is the wave's FLAT_SCRATCH.
#[inline(never)]
pub fn scratch(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    offsets: &Row,
    lanes: LaneMask,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    if let Transfer::Load(element) | Transfer::Store(element) = what
        && let Element::Words(words) = element
        && let Some(Placement { addresses, apart, .. }) =
            placement::private(wave, offsets, lanes, element)
    {
        return match what {
            Transfer::Load(_) => load_words(wave, op, words, apart, &addresses, memory),
            _ => store_words(wave, op, words, apart, &addresses, memory),
        };
    }
    let base = wave.scalar_pair(wave.machine.flat_scratch);
    let wave_lanes = wave.machine.lanes;
    let memories = Memories { device: memory, lds };
    scattered(wave, op, what, lanes, &Buffer::default(), memories, |lane, byte| {
        let offset = offsets.0[usize::from(lane.0)].wrapping_add(byte);
        Some(private::address(base, wave_lanes, lane, offset))
    })
}
