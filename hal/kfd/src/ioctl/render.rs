//! Calls on render nodes that libdrm makes. There is no graphics.

use super::arguments::{bytes_of, write_bytes};
use super::error::Errno;
use super::gpu::GpuNode;
use super::process::Process;
use super::render_abi::*;
use super::request::Request;
use crate::clock::GPU_CLOCK_KHZ;
use crate::topology::Gpu;
use flipwave_isa::{Generation, Target};

// Numbers of calls.
/// `DRM_IOCTL_VERSION`.
const VERSION: u8 = 0x00;
/// `DRM_IOCTL_GEM_CLOSE`.
const GEM_CLOSE: u8 = 0x09;
/// `DRM_IOCTL_PRIME_FD_TO_HANDLE`.
const PRIME_FD_TO_HANDLE: u8 = 0x2e;
/// `DRM_IOCTL_AMDGPU_GEM_MMAP`.
const GEM_MMAP: u8 = 0x41;
/// `DRM_IOCTL_AMDGPU_INFO`.
const INFO: u8 = 0x45;
/// `DRM_IOCTL_AMDGPU_GEM_METADATA`.
const GEM_METADATA: u8 = 0x46;
/// `DRM_IOCTL_AMDGPU_GEM_VA`.
const GEM_VA: u8 = 0x48;
/// `DRM_IOCTL_AMDGPU_GEM_OP`.
const GEM_OP: u8 = 0x50;

/// Executes a call on the render node of a GPU.
pub fn call(process: &Process, gpu: GpuNode, request: &Request) -> Result<(), Errno> {
    let (machine, objects) = (&process.machine, &process.gem_objects);
    match request.number {
        VERSION => request.with(version),
        INFO => {
            let gpu = machine.topology.gpu(gpu.0).ok_or(Errno::NO_DEVICE)?;
            request.with(|args| info(gpu, args))
        }
        PRIME_FD_TO_HANDLE => request.with(|args: &mut PrimeHandle| {
            let buffer = process.dmabufs.import(machine, gpu, args.fd)?;
            args.handle = objects.open(gpu, buffer);
            Ok(())
        }),
        GEM_CLOSE => request.with(|args| objects.close(machine, gpu, args)),
        GEM_MMAP => request.with(|args| objects.mmap_offset(gpu, args)),
        GEM_METADATA => request.with(|args| objects.metadata(machine, gpu, args)),
        GEM_VA => request.with(|args| objects.change_mapping(machine, gpu, args)),
        GEM_OP => request.with(|args| objects.operate(gpu, args)),
        _ => Err(Errno::NO_CALL),
    }
}

fn version(args: &mut Version) -> Result<(), Errno> {
    (args.version_major, args.version_minor, args.version_patchlevel) = (3, 57, 0);
    let texts = [
        ("amdgpu", args.name, &mut args.name_len),
        ("20150101", args.date, &mut args.date_len),
        ("AMD GPU", args.desc, &mut args.desc_len),
    ];
    for (text, buffer, size) in texts {
        let count = text.len().min(*size as usize);
        if buffer != 0 {
            // SAFETY: the program's buffer has `size` bytes.
            unsafe { write_bytes(buffer, &text.as_bytes()[..count]) }?;
        }
        *size = text.len() as u64;
    }
    Ok(())
}

// Queries, `AMDGPU_INFO_*`.
const ACCELERATION_WORKING: u32 = 0x00;
const HW_IP_COUNT: u32 = 0x03;
const TIMESTAMP: u32 = 0x05;
const READ_REGISTERS: u32 = 0x15;
const DEVICE: u32 = 0x16;

fn info(gpu: &Gpu, args: &mut Info) -> Result<(), Errno> {
    let answer = match args.query {
        ACCELERATION_WORKING => 1u32.to_ne_bytes().to_vec(),
        // No graphics engines.
        HW_IP_COUNT => 0u32.to_ne_bytes().to_vec(),
        TIMESTAMP => crate::clock::gpu_clock().to_ne_bytes().to_vec(),
        // Registers describe the layout of images, and are all 0. `second` is their number.
        READ_REGISTERS => vec![0; (args.second as usize).min(64) * 4],
        DEVICE => bytes_of(&device(gpu)).to_vec(),
        _ => return Err(Errno::INVALID),
    };
    let count = answer.len().min(args.return_size as usize);
    // SAFETY: the program's buffer has `return_size` bytes.
    unsafe { write_bytes(args.return_pointer, &answer[..count]) }
}

fn device(gpu: &Gpu) -> DeviceInfo {
    let board = gpu.board;
    // SAFETY: numbers.
    let zero: DeviceInfo = unsafe { std::mem::zeroed() };
    DeviceInfo {
        device_id: board.device.into(),
        pci_rev: board.revision.into(),
        family: family(&gpu.target),
        num_shader_engines: board.shader_engines,
        num_shader_arrays_per_engine: board.arrays_per_engine,
        // In kHz, as the other clocks.
        gpu_counter_freq: GPU_CLOCK_KHZ,
        max_engine_clock: u64::from(board.clock_mhz) * 1000,
        max_memory_clock: 1_600_000,
        cu_active_number: gpu.units,
        virtual_address_offset: 0x20_0000,
        virtual_address_max: 0x8000_0000_0000,
        virtual_address_alignment: 4096,
        pte_fragment_size: 2 << 20,
        gart_page_size: 4096,
        ..zero
    }
}

/// `AMDGPU_FAMILY_*` of a target.
fn family(target: &Target) -> u32 {
    let generation = target.generation();
    if generation >= Generation::Gfx12 {
        152
    } else if target.processor().starts_with("gfx115") {
        150
    } else if generation >= Generation::Gfx11 {
        145
    } else if generation >= Generation::Gfx10 {
        143
    } else {
        141
    }
}
