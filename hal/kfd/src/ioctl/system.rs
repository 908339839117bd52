//! What there is: versions, clocks, apertures.

use super::abi::*;
use super::error::Errno;
use super::gpu::GpuNode;
use super::process::Process;
use super::program::with_array;
use crate::clock::clock;
use crate::topology::APERTURES;

/// The newest version of which all is answered that the vendor's runtime asks.
pub fn version(own: &mut GetVersion) -> Result<(), Errno> {
    (own.major_version, own.minor_version) = (1, 17);
    Ok(())
}

/// The clocks. What is no GPU has none of a GPU, and is asked for the others: the vendor's runtime gets
/// its clock's frequency from the host's node, and does not look whether the call fails.
pub fn clocks(process: &Process, own: &mut GetClockCounters) -> Result<(), Errno> {
    let now = clock();
    own.gpu_clock_counter = process.gpu(own.gpu_id).map_or(0, |_| now);
    (own.cpu_clock_counter, own.system_clock_counter) = (now, now);
    own.system_clock_freq = 1_000_000_000;
    Ok(())
}

/// Bytes of the windows to LDS and to private memory.
const WINDOW: u64 = 1 << 32;
/// Addresses of other memory. The runtime reserves them all, if they have no more than 40 bits, and
/// hands them out by itself: where memory is does not depend on what else is in the process, so that
/// it is the same in each run.
const MEMORY: [u64; 2] = [0x10_0000_0000, 0xff_ffff_ffff];

pub fn apertures(process: &Process, own: &mut GetProcessAperturesNew) -> Result<(), Errno> {
    let all = process.machine.topology.nodes() - 1;
    let count = own.num_of_nodes.min(all);
    // Asked for none, the driver says how many there are.
    own.num_of_nodes = if own.num_of_nodes == 0 { all } else { count };
    let [lds, scratch] = APERTURES;
    // SAFETY: the program has room for as many as it says.
    unsafe {
        with_array(own.kfd_process_device_apertures_ptr, count, |places| {
            for (place, node) in places.iter_mut().zip(1..) {
                *place = ProcessDeviceApertures {
                    lds_base: lds,
                    lds_limit: lds + (WINDOW - 1),
                    scratch_base: scratch,
                    scratch_limit: scratch + (WINDOW - 1),
                    gpuvm_base: MEMORY[0],
                    gpuvm_limit: MEMORY[1],
                    gpu_id: GpuNode(node).id(),
                    pad: 0,
                };
            }
            Ok(())
        })
    }
}

/// There is no memory of images that would be laid out in tiles.
pub fn tile_config(process: &Process, own: &mut GetTileConfig) -> Result<(), Errno> {
    process.gpu(own.gpu_id)?;
    (own.num_tile_configs, own.num_macro_tile_configs) = (0, 0);
    (own.gb_addr_config, own.num_banks, own.num_ranks) = (0, 0, 0);
    Ok(())
}

/// Pages do not move: asked with -1, it is off, and it cannot be switched on.
pub fn xnack_mode(own: &mut SetXnackMode) -> Result<(), Errno> {
    if own.xnack_enabled > 0 {
        return Err(Errno::INVALID);
    }
    own.xnack_enabled = 0;
    Ok(())
}
