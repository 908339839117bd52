//! Calls that describe the system: version, clocks, apertures.

use super::abi::*;
use super::arguments::with_array;
use super::error::Errno;
use super::gpu::GpuNode;
use super::process::Process;
use crate::clock::{gpu_clock, host_clock};
use crate::topology::{LDS_APERTURE, SCRATCH_APERTURE};
use std::ops::RangeInclusive;

/// Returns the newest interface version of which every call is implemented that AMD's runtime
/// makes.
pub fn version(args: &mut GetVersion) -> Result<(), Errno> {
    (args.major_version, args.minor_version) = (1, 17);
    Ok(())
}

/// Returns the clocks. For the host's node, which has no GPU clock, the others are still returned:
/// AMD's runtime asks that node for the clock's frequency, and does not check for errors.
pub fn clocks(process: &Process, args: &mut GetClockCounters) -> Result<(), Errno> {
    let now = host_clock();
    args.gpu_clock_counter = process.gpu(args.gpu_id).map_or(0, |_| gpu_clock());
    (args.cpu_clock_counter, args.system_clock_counter) = (now, now);
    args.system_clock_freq = 1_000_000_000;
    Ok(())
}

/// Size in bytes of the apertures of LDS and private memory.
const APERTURE_BYTES: u64 = 1 << 32;
/// Addresses of all other memory. The runtime reserves the whole range, if its addresses have at
/// most 40 bits, and allocates from it by itself. Addresses of memory therefore do not depend on
/// other mappings of the process, and are the same in each run.
const GPUVM: RangeInclusive<u64> = 0x10_0000_0000..=0xff_ffff_ffff;

pub fn apertures(process: &Process, args: &mut GetProcessAperturesNew) -> Result<(), Errno> {
    let all = process.machine.topology.nodes() - 1;
    let count = args.num_of_nodes.min(all);
    // A program that asks for 0 apertures gets the number of GPUs.
    args.num_of_nodes = if args.num_of_nodes == 0 { all } else { count };
    // SAFETY: the program's array has at least `count` elements.
    unsafe {
        with_array(args.kfd_process_device_apertures_ptr, count, |elements| {
            for (element, node) in elements.iter_mut().zip(1..) {
                *element = ProcessDeviceApertures {
                    lds_base: LDS_APERTURE,
                    lds_limit: LDS_APERTURE + (APERTURE_BYTES - 1),
                    scratch_base: SCRATCH_APERTURE,
                    scratch_limit: SCRATCH_APERTURE + (APERTURE_BYTES - 1),
                    gpuvm_base: *GPUVM.start(),
                    gpuvm_limit: *GPUVM.end(),
                    gpu_id: GpuNode(node).id(),
                    pad: 0,
                };
            }
            Ok(())
        })
    }
}

/// Returns no tilings: there is no tiled image memory.
pub fn tile_config(process: &Process, args: &mut GetTileConfig) -> Result<(), Errno> {
    process.gpu(args.gpu_id)?;
    (args.num_tile_configs, args.num_macro_tile_configs) = (0, 0);
    (args.gb_addr_config, args.num_banks, args.num_ranks) = (0, 0, 0);
    Ok(())
}

/// Returns that XNACK is off, and refuses to switch it on: pages are never migrated.
pub fn xnack_mode(args: &mut SetXnackMode) -> Result<(), Errno> {
    // -1 asks for the mode.
    if args.xnack_enabled > 0 {
        return Err(Errno::INVALID);
    }
    args.xnack_enabled = 0;
    Ok(())
}

/// Registers the runtime with debuggers, of which there are none. Returns no capabilities.
pub fn enable_runtime(args: &mut RuntimeEnable) -> Result<(), Errno> {
    args.capabilities_mask = 0;
    Ok(())
}
