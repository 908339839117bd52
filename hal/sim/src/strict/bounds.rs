//! Checks for accesses beyond LDS, private memory and allocations, and for addresses whose lowest
//! bits are dropped.

use super::footprint::{self, Footprint};
use super::violation::Finding;
use crate::execute::buffer::Buffer;
use crate::execute::lds::two_offsets;
use crate::execute::operand::scalar_word;
use crate::execute::scalar_memory;
use crate::execute::vector_memory::{Addresses, BufferOperands};
use crate::instruction::lds::LdsAccess;
use crate::instruction::scalar_memory::{self as scalar, ScalarAccess, Transfer};
use crate::instruction::vector_memory::{Space, VectorAccess};
use crate::instruction::{Op, Run, Word};
use crate::memory::{Memory, aperture};
use crate::shadow::Shadow;
use crate::wave::{Row, Wave};
use flipwave_device::Address;
use flipwave_isa::LaneMask;

/// Returns an invalid access of an instruction, and the lanes that make it.
pub fn check(wave: &Wave, op: &Op, memory: &dyn Memory) -> Option<(Finding, LaneMask)> {
    match op.run {
        Run::VectorMemory(access) => device(&footprint::device(wave, op, access), memory)
            .or_else(|| outside_segments(wave, op)),
        Run::ScalarMemory(access) => {
            Some((outside_scalar(wave, op, access, memory)?, LaneMask::EMPTY))
        }
        _ => outside_lds(wave, op),
    }
}

/// Returns an access beyond the workgroup's LDS or the work-items' private memory, and the lanes
/// that make it.
pub fn outside_segments(wave: &Wave, op: &Op) -> Option<(Finding, LaneMask)> {
    outside_private(wave, op).or_else(|| outside_lds(wave, op))
}

fn outside_private(wave: &Wave, op: &Op) -> Option<(Finding, LaneMask)> {
    let Run::VectorMemory(access) = op.run else { return None };
    if stays_in_private(wave, op, access) {
        return None;
    }
    let size = wave.private.bytes;
    let footprints = footprint::private(wave, op, access);
    let is_outside = |access: &&Footprint<i64>| {
        access.address < 0 || access.address + i64::from(access.bytes) > i64::from(size)
    };
    let Footprint { address, bytes, .. } = *footprints.iter().find(is_outside)?;
    // A sum this large is meant as a negative offset.
    let is_negative = (1 << 31..1 << 32).contains(&address);
    let offset = if is_negative { address - (1 << 32) } else { address };
    let finding = Finding::OutsidePrivate { offset, bytes, size };
    Some((finding, lanes(footprints.iter().filter(is_outside))))
}

fn outside_lds(wave: &Wave, op: &Op) -> Option<(Finding, LaneMask)> {
    match op.run {
        Run::Lds(access) if !stays_in_lds(wave, op, access) => {
            lds(wave, &footprint::lds(wave, op, access))
        }
        Run::VectorMemory(access) => lds(wave, &footprint::flat_lds(wave, op, access))
            .or_else(|| lds(wave, &footprint::moved_lds(wave, op, access))),
        _ => None,
    }
}

/// Returns `true` if a vector access is known to be inside private memory, or in other memory,
/// without examining each lane's address.
fn stays_in_private(wave: &Wave, op: &Op, access: VectorAccess) -> bool {
    let active = &wave.exec_row().0;
    // Register values do not exceed this, and a negative one is large.
    let highest = |row: &Row| {
        let words = row.0.iter().zip(active).map(|(word, active_word)| word & active_word);
        i64::from(words.max().unwrap_or(0))
    };
    let size = i64::from(wave.private.bytes);
    let bytes = i64::from(footprint::transferred(access.transfer).max(1));
    match access.space {
        Space::Scratch => {
            let base = match op.sources[2].words[0] {
                Word::Constant(_) => 0,
                word => i64::from(scalar_word(wave, word)),
            };
            let constant = base + op.immediate;
            let register = op.sources[0].row().map_or(0, |row| highest(wave.row(row)));
            constant >= 0 && constant + register + bytes <= size
        }
        Space::Flat => {
            let addresses = Addresses::of(wave, op, wave.exec());
            let upper = (aperture::PRIVATE >> 32) as u32;
            let lanes = addresses.high.0.iter().zip(active);
            lanes.fold(0, |any, (high, mask)| any | u32::from(*high == upper) & mask) == 0
        }
        Space::Buffer { offset, index: false } => {
            let private = &wave.private;
            let launch = private.launch..private.launch.wrapping_add(private.launch_bytes);
            let buffer = Buffer::read(wave, op, access.transfer, false);
            if !buffer.is_private(launch) {
                return true;
            }
            let operands = BufferOperands::of(wave, op, offset, false);
            let start = buffer.private_start(private.base, wave.machine.lanes);
            start
                .zip(operands.offsets(&buffer, wave.exec_row()))
                .is_some_and(|(start, offsets)| start + highest(&offsets) + bytes <= size)
        }
        Space::Buffer { index: true, .. }
        | Space::ScaledScratch { .. }
        | Space::FlatWithGlobalScratch { .. } => false,
        _ => true,
    }
}

/// Returns `true` if an LDS access is known to be inside without examining each lane's address.
fn stays_in_lds(wave: &Wave, op: &Op, access: LdsAccess) -> bool {
    let one = |bytes: u32| op.immediate as u32 + bytes;
    let two = |bytes: u32, scale: u32| {
        let [first, second] = two_offsets(op);
        first.max(second) * scale + bytes
    };
    let reach = match access {
        access if access.is_exchange() => return true,
        LdsAccess::Read(element) | LdsAccess::Write(element) => one(element.bytes() as u32),
        LdsAccess::ReadExchanged(elements) => one(u32::from(elements.words()) * 4),
        LdsAccess::ReadTransposed { words, .. } => one(u32::from(words) * 4),
        LdsAccess::Atomic { atomic, .. } => one(atomic.bytes.into()),
        LdsAccess::Read2 { words, scale } | LdsAccess::Write2 { words, scale } => {
            two(u32::from(words) * 4, scale)
        }
        LdsAccess::Exchange2 { atomic, scale } => two(atomic.bytes.into(), scale),
        _ => return false,
    };
    let addresses = crate::execute::lds::addresses(wave, op, 0).0;
    let active = || addresses.iter().zip(&wave.exec_row().0).map(|(address, mask)| address & mask);
    let is_inside =
        |highest: u32| highest.checked_add(reach).is_some_and(|end| end <= wave.lds_size);
    // The bitwise or is at least the highest address, and faster to compute.
    is_inside(active().fold(0, |all, address| all | address))
        || is_inside(active().max().unwrap_or(0))
}

fn lds(wave: &Wave, footprints: &[Footprint<u32>]) -> Option<(Finding, LaneMask)> {
    let is_outside = |access: &&Footprint<u32>| {
        access.address.checked_add(access.bytes).is_none_or(|end| end > wave.lds_size)
    };
    let Footprint { address, bytes, .. } = *footprints.iter().find(is_outside)?;
    let finding = Finding::OutsideLds { address, bytes, size: wave.lds_size };
    Some((finding, lanes(footprints.iter().filter(is_outside))))
}

fn device(footprints: &[Footprint<u64>], memory: &dyn Memory) -> Option<(Finding, LaneMask)> {
    // Usually all lanes access one allocation.
    let mut allocation = memory.allocation(footprints.first()?.address);
    let mut first = None;
    let mut outside = Vec::new();
    for access in footprints {
        if !allocation.as_ref().is_some_and(|range| range.contains(&access.address)) {
            allocation = memory.allocation(access.address);
        }
        // Unmapped memory causes a fault on any level.
        let Some(range) = &allocation else { continue };
        if access.address.saturating_add(access.bytes.into()) > range.end {
            first.get_or_insert((*access, range.clone()));
            outside.push(access);
        }
    }
    let (Footprint { address, bytes, .. }, range) = first?;
    let finding = Finding::OutsideAllocation {
        address: Address(address),
        bytes: bytes.into(),
        allocation: (Address(range.start), range.end - range.start),
    };
    Some((finding, lanes(outside.into_iter())))
}

fn lanes<'a, A: 'a>(footprints: impl Iterator<Item = &'a Footprint<A>>) -> LaneMask {
    LaneMask(footprints.fold(0, |mask, access| mask | 1 << access.lane.0))
}

/// Address before alignment, and number of words, of a scalar load from a 64-bit base.
fn scalar_place(wave: &Wave, op: &Op, access: ScalarAccess) -> Option<(u64, u8)> {
    let ScalarAccess { space: scalar::Space::Address, transfer: Transfer::Load(words), .. } =
        access
    else {
        return None;
    };
    let address = scalar_memory::unaligned_address(wave, op, access);
    Some((address, words))
}

/// Checks a scalar load. Compilers widen scalar loads beyond the end of an object without using the
/// excess words, so these are undefined; only a load that starts beyond the end is an error.
fn outside_scalar(
    wave: &Wave,
    op: &Op,
    access: ScalarAccess,
    memory: &dyn Memory,
) -> Option<Finding> {
    let (address, words) = scalar_place(wave, op, access)?;
    if !address.is_multiple_of(4) {
        return Some(Finding::Misaligned { address: Address(address), alignment: 4 });
    }
    let range = memory.allocation(address)?;
    (address >= range.end).then(|| Finding::OutsideAllocation {
        address: Address(address),
        bytes: u64::from(words) * 4,
        allocation: (Address(range.start), range.end - range.start),
    })
}

/// Marks the words undefined that a scalar load reads beyond an allocation.
pub fn forget_beyond(
    shadow: &mut Shadow,
    wave: &Wave,
    op: &Op,
    access: ScalarAccess,
    memory: &dyn Memory,
) {
    let Some((address, words)) = scalar_place(wave, op, access) else { return };
    let Some(range) = memory.allocation(address) else { return };
    for word in 0..words {
        let register = usize::from(op.scalar_destination.0) + usize::from(word);
        if address.saturating_add(4 * u64::from(word)) >= range.end && register < 126 {
            shadow.scalars[register] = !0;
        }
    }
}
