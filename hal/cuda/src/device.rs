//! Properties of devices.
//!
//! Numbers are those of the compute capability (CUDA C++ Programming Guide, "Technical Specifications per Compute
//! Capability"), or properties of the simulator.

use crate::driver::{DEVICE_BYTES, Device};
use flipwave_arch::Architecture;

/// Version of the API, 12.8.
pub const VERSION: i32 = 12080;

/// Number of multiprocessors that a device reports.
pub const MULTIPROCESSORS: i32 = 16;

/// Name of a device.
pub fn name(device: &Device) -> String {
    format!("Flipwave {}", device.target.target())
}

/// Bytes of shared memory of a multiprocessor, and the most that a workgroup can use after opting in.
pub fn shared_bytes(device: &Device) -> (u64, u64) {
    let (multiprocessor, workgroup) = match device.number() {
        75 => (64, 64),
        80 | 87 => (164, 163),
        86 | 89 | 120 | 121 => (100, 99),
        _ => (228, 227),
    };
    (multiprocessor << 10, workgroup << 10)
}

/// Threads of a multiprocessor.
pub fn threads(device: &Device) -> u64 {
    match device.number() {
        75 => 1024,
        86 | 87 | 89 | 120 | 121 => 1536,
        _ => 2048,
    }
}

/// Workgroups of a multiprocessor.
fn workgroups(device: &Device) -> u64 {
    match device.number() {
        75 | 86 | 87 => 16,
        89 | 120 | 121 => 24,
        _ => 32,
    }
}

/// Bytes of shared memory that a workgroup can use without opting in.
pub const DEFAULT_SHARED_BYTES: u64 = 48 << 10;
/// Registers of a multiprocessor.
const REGISTERS: u64 = 65536;

/// Number of workgroups of a kernel that are resident on a multiprocessor.
pub fn resident_workgroups(
    device: &Device,
    registers: u32,
    shared: u64,
    threads_of_workgroup: u64,
) -> u64 {
    if threads_of_workgroup == 0 || threads_of_workgroup > 1024 {
        return 0;
    }
    let waves = threads_of_workgroup.div_ceil(32);
    let (all_shared, _) = shared_bytes(device);
    let by_threads = threads(device) / (32 * waves);
    let by_shared = if shared == 0 { u64::MAX } else { all_shared / (shared + 1024) };
    // Registers are allocated to waves in units of 256.
    let by_registers = REGISTERS / (u64::from(registers.max(1)) * 32).next_multiple_of(256) / waves;
    by_threads.min(by_shared).min(by_registers).min(workgroups(device))
}

/// The value of an attribute (`CUdevice_attribute`, `cudaDeviceAttr`); `None` for unknown ones.
pub fn attribute(device: &Device, attribute: i32) -> Option<i32> {
    let (major, minor) = device.capability();
    let (shared, opt_in) = shared_bytes(device);
    Some(match attribute {
        1 => 1024,                        // MAX_THREADS_PER_BLOCK
        2 | 3 => 1024,                    // MAX_BLOCK_DIM_X, _Y
        4 => 64,                          // MAX_BLOCK_DIM_Z
        5 => i32::MAX,                    // MAX_GRID_DIM_X
        6 | 7 => 65535,                   // MAX_GRID_DIM_Y, _Z
        8 => DEFAULT_SHARED_BYTES as i32, // MAX_SHARED_MEMORY_PER_BLOCK
        9 => 65536,                       // TOTAL_CONSTANT_MEMORY
        10 => 32,                         // WARP_SIZE
        11 => i32::MAX,                   // MAX_PITCH
        12 => REGISTERS as i32,           // MAX_REGISTERS_PER_BLOCK
        13 => 1_000_000,                  // CLOCK_RATE, in kHz
        14 => 512,                        // TEXTURE_ALIGNMENT
        15 => 1,                          // GPU_OVERLAP
        16 => MULTIPROCESSORS,            // MULTIPROCESSOR_COUNT
        17 => 0,                          // KERNEL_EXEC_TIMEOUT
        18 => 0,                          // INTEGRATED
        19 => 1,                          // CAN_MAP_HOST_MEMORY
        20 => 0,                          // COMPUTE_MODE
        21..=30 => 0,                     // textures
        31 => 1,                          // CONCURRENT_KERNELS
        32 => 0,                          // ECC_ENABLED
        33 => device_pci(),               // PCI_BUS_ID
        34 => 0,                          // PCI_DEVICE_ID
        35 => 0,                          // TCC_DRIVER
        36 => 1_000_000,                  // MEMORY_CLOCK_RATE, in kHz
        37 => 5120,                       // GLOBAL_MEMORY_BUS_WIDTH
        38 => 50 << 20,                   // L2_CACHE_SIZE
        39 => threads(device) as i32,     // MAX_THREADS_PER_MULTIPROCESSOR
        40 => 1,                          // ASYNC_ENGINE_COUNT
        41 => 1,                          // UNIFIED_ADDRESSING
        42..=49 | 52..=74 => 0,           // textures and surfaces
        50 => 0,                          // PCI_DOMAIN_ID
        51 => 32,                         // TEXTURE_PITCH_ALIGNMENT
        75 => major as i32,               // COMPUTE_CAPABILITY_MAJOR
        76 => minor as i32,               // COMPUTE_CAPABILITY_MINOR
        77 => 0,                          // MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH
        78 => 1,                          // STREAM_PRIORITIES_SUPPORTED
        79 | 80 => 1,                     // GLOBAL_, LOCAL_L1_CACHE_SUPPORTED
        81 => shared as i32,              // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
        82 => REGISTERS as i32,           // MAX_REGISTERS_PER_MULTIPROCESSOR
        83 => 1,                          // MANAGED_MEMORY
        84 => 0,                          // MULTI_GPU_BOARD
        85 => 0,                          // MULTI_GPU_BOARD_GROUP_ID
        86 => 0,                          // HOST_NATIVE_ATOMIC_SUPPORTED
        87 => 2,                          // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
        88 => 0,                          // PAGEABLE_MEMORY_ACCESS
        89 => 1,                          // CONCURRENT_MANAGED_ACCESS
        90 => 0,                          // COMPUTE_PREEMPTION_SUPPORTED
        91 => 1,                          // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
        95 => 1,                          // COOPERATIVE_LAUNCH
        97 => opt_in as i32,              // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        99 => 1,                          // HOST_REGISTER_SUPPORTED
        106 => workgroups(device) as i32, // MAX_BLOCKS_PER_MULTIPROCESSOR
        111 => 1024,                      // RESERVED_SHARED_MEMORY_PER_BLOCK
        115 => 1,                         // MEMORY_POOLS_SUPPORTED
        92..=148 => 0,
        _ => return None,
    })
}

/// Number of the PCI bus.
fn device_pci() -> i32 {
    1
}

/// Size of device memory in bytes.
pub fn memory_bytes() -> u64 {
    DEVICE_BYTES
}
