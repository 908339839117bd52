//! Render nodes: what libdrm asks them. Nothing is drawn.

use super::error::Errno;
use super::gpu::GpuNode;
use super::process::Process;
use super::program::{bytes_of, write_bytes};
use super::render_abi::*;
use super::request::Request;
use crate::topology::Gpu;
use flipwave_isa::Generation;

/// `DRM_IOCTL_VERSION`.
const VERSION: u8 = 0x00;
/// `DRM_IOCTL_AMDGPU_INFO`.
const INFO: u8 = 0x45;
/// `DRM_IOCTL_PRIME_FD_TO_HANDLE`, `DRM_IOCTL_GEM_CLOSE` and those of `DRM_AMDGPU_GEM_*`.
const PRIME_FD_TO_HANDLE: u8 = 0x2e;
const GEM_CLOSE: u8 = 0x09;
const GEM_MMAP: u8 = 0x41;
const GEM_VA: u8 = 0x48;

pub fn answer(process: &Process, gpu: GpuNode, request: &Request) -> Result<(), Errno> {
    match request.number {
        VERSION => request.with(version),
        INFO => {
            let gpu = process.machine.topology.gpu(gpu.0).ok_or(Errno::NO_DEVICE)?;
            request.with(|own| info(gpu, own))
        }
        PRIME_FD_TO_HANDLE => request.with(|own: &mut PrimeHandle| {
            let buffer = process.files.get(&process.machine, gpu, own.fd)?;
            own.handle = process.objects.open(gpu, buffer);
            Ok(())
        }),
        GEM_CLOSE => request.with(|own| process.objects.close(&process.machine, gpu, own)),
        GEM_MMAP => request.with(|own| process.objects.locate(gpu, own)),
        GEM_VA => request.with(|own| process.objects.map(&process.machine, gpu, own)),
        _ => Err(Errno::NO_CALL),
    }
}

fn version(own: &mut Version) -> Result<(), Errno> {
    (own.version_major, own.version_minor, own.version_patchlevel) = (3, 57, 0);
    let texts = [
        ("amdgpu", own.name, &mut own.name_len),
        ("20150101", own.date, &mut own.date_len),
        ("AMD GPU", own.desc, &mut own.desc_len),
    ];
    for (text, place, room) in texts {
        let count = text.len().min(*room as usize);
        if place != 0 {
            // SAFETY: the program has room for as many as it says.
            unsafe { write_bytes(place, &text.as_bytes()[..count]) }?;
        }
        *room = text.len() as u64;
    }
    Ok(())
}

const ACCELERATION_WORKS: u32 = 0x00;
const ENGINES: u32 = 0x03;
const TIMESTAMP: u32 = 0x05;
const READ_REGISTERS: u32 = 0x15;
const DEVICE: u32 = 0x16;

fn info(gpu: &Gpu, own: &mut Info) -> Result<(), Errno> {
    let answer = match own.query {
        ACCELERATION_WORKS => 1u32.to_ne_bytes().to_vec(),
        // None of those that draw.
        ENGINES => 0u32.to_ne_bytes().to_vec(),
        TIMESTAMP => crate::clock::clock().to_ne_bytes().to_vec(),
        // How images are laid out: as if it were all the same. `second` is how many.
        READ_REGISTERS => vec![0; (own.second as usize).min(64) * 4],
        DEVICE => bytes_of(&device(gpu)).to_vec(),
        _ => return Err(Errno::INVALID),
    };
    let count = answer.len().min(own.return_size as usize);
    // SAFETY: the program has room for as many as it says.
    unsafe { write_bytes(own.return_pointer, &answer[..count]) }
}

fn device(gpu: &Gpu) -> DeviceInfo {
    let board = gpu.board;
    // SAFETY: numbers.
    let nothing: DeviceInfo = unsafe { std::mem::zeroed() };
    DeviceInfo {
        device_id: board.device.into(),
        pci_rev: board.revision.into(),
        family: family(gpu.target.generation()),
        num_shader_engines: board.shader_engines,
        num_shader_arrays_per_engine: 1,
        // In kHz, as the other clocks.
        gpu_counter_freq: 1_000_000,
        max_engine_clock: u64::from(board.clock_mhz) * 1000,
        max_memory_clock: 1_600_000,
        cu_active_number: gpu.units,
        virtual_address_offset: 0x20_0000,
        virtual_address_max: 0x8000_0000_0000,
        virtual_address_alignment: 4096,
        pte_fragment_size: 2 << 20,
        gart_page_size: 4096,
        ..nothing
    }
}

/// `AMDGPU_FAMILY_*`.
fn family(generation: Generation) -> u32 {
    match generation {
        own if own >= Generation::Gfx12 => 152,
        own if own >= Generation::Gfx11 => 145,
        own if own >= Generation::Gfx10 => 143,
        _ => 141,
    }
}
