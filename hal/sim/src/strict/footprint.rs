//! Bytes that a memory instruction accesses.

use crate::execute::buffer::Buffer;
use crate::execute::lds;
use crate::execute::vector_memory::{Addresses, BufferOperands, exact_private_offset, lds_place};
use crate::instruction::Op;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::memory::aperture;
use crate::memory::aperture::Window;
use crate::wave::{LANES, ScalarIndex, Wave, private};
use flipwave_isa::Lane;

/// Consecutive bytes accessed by a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint<A> {
    /// The lane.
    pub lane: Lane,
    /// Address of the first byte.
    pub address: A,
    /// Number of bytes.
    pub bytes: u32,
}

/// Bytes that each lane transfers; zero if the format of a buffer determines it.
pub fn transferred(transfer: Transfer) -> u32 {
    match transfer {
        Transfer::Load(element)
        | Transfer::Store(element)
        | Transfer::LoadToLds(element)
        | Transfer::StoreFromLds(element) => element.bytes() as u32,
        Transfer::LoadBlock | Transfer::StoreBlock => 128,
        Transfer::Atomic { atomic, .. } => atomic.bytes.into(),
        Transfer::LoadFormat(_) | Transfer::StoreFormat(_) | Transfer::LoadFormatToLds(_) => 0,
    }
}

/// Bytes of device memory that a vector access touches. Excludes private memory, which belongs to
/// the launch, and bytes out of a buffer's range.
pub fn device(wave: &Wave, op: &Op, access: VectorAccess) -> Vec<Footprint<u64>> {
    let bytes = transferred(access.transfer);
    let exec = wave.exec();
    match access.space {
        Space::Scratch | Space::ScaledScratch { .. } => Vec::new(),
        Space::Global
        | Space::GlobalByThread
        | Space::GlobalTransposed { .. }
        | Space::Flat
        | Space::GlobalWithSignedOffset { .. }
        | Space::FlatWithGlobalScratch { .. } => {
            let addresses = Addresses::of_space(wave, op, exec, access.space);
            let place = |lane: Lane| {
                let address = addresses.at(lane.0.into());
                let is_global = matches!(aperture::window(address), Window::Global(_));
                let is_device = match access.space {
                    Space::Flat => is_global,
                    Space::FlatWithGlobalScratch { .. } => {
                        is_global && aperture::global_private(address).is_none()
                    }
                    _ => true,
                };
                is_device.then_some(Footprint { lane, address, bytes })
            };
            exec.lanes().filter_map(place).collect()
        }
        Space::Buffer { offset, index } => {
            let buffer = Buffer::read(wave, op, access.transfer, index);
            let operands = BufferOperands::of(wave, op, offset, index);
            let byte = |lane: Lane, byte: u32| {
                let (record, offset) = operands.of_lane(&buffer, lane);
                let offset = offset + u64::from(byte);
                let address = buffer.address(lane, record, offset);
                buffer.contains(lane, record, offset, 1).then_some(Footprint {
                    lane,
                    address,
                    bytes: 1,
                })
            };
            // Swizzling may separate the bytes.
            exec.lanes().flat_map(|lane| (0..bytes).filter_map(move |at| byte(lane, at))).collect()
        }
    }
}

/// Bytes of the lanes' private memory that a vector access touches, as offsets.
pub fn private(wave: &Wave, op: &Op, access: VectorAccess) -> Vec<Footprint<i64>> {
    let bytes = transferred(access.transfer).max(1);
    let exec = wave.exec();
    let footprint = |lane, address| Footprint { lane, address, bytes };
    match access.space {
        Space::Scratch | Space::ScaledScratch { .. } => {
            let place = |lane| footprint(lane, exact_private_offset(wave, op, access.space, lane));
            exec.lanes().map(place).collect()
        }
        Space::Flat | Space::FlatWithGlobalScratch { .. } => {
            let addresses = Addresses::of_space(wave, op, exec, access.space);
            let place = |lane: Lane| match aperture::window(addresses.at(lane.0.into())) {
                Window::Private(offset) => Some(footprint(lane, i64::from(offset as i32))),
                _ => None,
            };
            exec.lanes().filter_map(place).collect()
        }
        Space::Buffer { offset, index } => {
            let private = &wave.private;
            let launch = private.launch..private.launch.wrapping_add(private.launch_bytes);
            let buffer = Buffer::read(wave, op, access.transfer, index);
            if !buffer.is_private(launch) {
                return Vec::new();
            }
            let operands = BufferOperands::of(wave, op, offset, index);
            let stride = i64::from(private::stride(wave.machine.lanes));
            let place = |lane: Lane| {
                let (record, offset) = operands.of_lane(&buffer, lane);
                let at = buffer.address(lane, record, offset).wrapping_sub(private.base) as i64;
                footprint(lane, at.div_euclid(stride) * 4 + at.rem_euclid(4))
            };
            exec.lanes().map(place).collect()
        }
        _ => Vec::new(),
    }
}

/// Bytes of LDS that the lanes of a flat access touch.
pub fn flat_lds(wave: &Wave, op: &Op, access: VectorAccess) -> Vec<Footprint<u32>> {
    if !access.space.is_flat() {
        return Vec::new();
    }
    let addresses = Addresses::of_space(wave, op, wave.exec(), access.space);
    let bytes = transferred(access.transfer);
    let place = |lane: Lane| match aperture::window(addresses.at(lane.0.into())) {
        Window::Lds(address) => Some(Footprint { lane, address, bytes }),
        _ => None,
    };
    wave.exec().lanes().filter_map(place).collect()
}

/// Bytes of LDS that a move between LDS and device memory touches.
pub fn moved_lds(wave: &Wave, op: &Op, access: VectorAccess) -> Vec<Footprint<u32>> {
    let bytes = match access.transfer {
        // Loads of any size write whole dwords of each lane.
        Transfer::LoadToLds(element) => 4 * u32::from(element.words()),
        Transfer::LoadFormatToLds(_) => 4,
        Transfer::StoreFromLds(element) => element.bytes() as u32,
        _ => return Vec::new(),
    };
    let place =
        |lane| Footprint { lane, address: lds_place(wave, op, lane, bytes as usize), bytes };
    wave.exec().lanes().map(place).collect()
}

/// Bytes that an LDS instruction touches.
pub fn lds(wave: &Wave, op: &Op, access: LdsAccess) -> Vec<Footprint<u32>> {
    let modifiers = &op.inst.modifiers;
    let at = |offset: u32, bytes: u32| {
        let addresses = lds::addresses(wave, op, offset);
        let place = move |lane: Lane| Footprint {
            lane,
            address: addresses.0[usize::from(lane.0) % LANES],
            bytes,
        };
        wave.exec().lanes().map(place)
    };
    let offset = op.immediate as u32;
    match access {
        LdsAccess::Read(element) | LdsAccess::Write(element) => {
            at(offset, element.bytes() as u32).collect()
        }
        LdsAccess::ReadExchanged(elements) => at(offset, u32::from(elements.words()) * 4).collect(),
        LdsAccess::ReadTransposed { words, .. } => at(offset, u32::from(words) * 4).collect(),
        LdsAccess::Read2 { words, scale } | LdsAccess::Write2 { words, scale } => {
            let bytes = u32::from(words) * 4;
            at(u32::from(modifiers.offset0) * scale, bytes)
                .chain(at(u32::from(modifiers.offset1) * scale, bytes))
                .collect()
        }
        LdsAccess::Atomic { atomic, .. } => at(offset, atomic.bytes.into()).collect(),
        LdsAccess::Exchange2 { atomic, scale } => {
            let bytes = atomic.bytes.into();
            at(u32::from(modifiers.offset0) * scale, bytes)
                .chain(at(u32::from(modifiers.offset1) * scale, bytes))
                .collect()
        }
        LdsAccess::ExchangeIf => at(offset, 8)
            .map(|access| Footprint { address: access.address & !7, ..access })
            .collect(),
        LdsAccess::ReadByThread | LdsAccess::WriteByThread => {
            let addresses = lds::by_thread(wave, op);
            let place = |lane: Lane| Footprint {
                lane,
                address: addresses.0[usize::from(lane.0) % LANES],
                bytes: 4,
            };
            wave.exec().lanes().map(place).collect()
        }
        LdsAccess::Count { .. } => {
            let address = (wave.scalar(ScalarIndex::M0) & 0xffff).wrapping_add(offset);
            let first = wave.exec().lanes().next();
            first.map(|lane| Footprint { lane, address, bytes: 4 }).into_iter().collect()
        }
        LdsAccess::Permute
        | LdsAccess::BackwardPermute
        | LdsAccess::BackwardPermuteAny
        | LdsAccess::Swizzle => Vec::new(),
    }
}
