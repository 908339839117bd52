//! What a GPU does not take from a queue, and how it says so: bits of the queue's error signal, as
//! ROCr's handler of queue errors reads them (`AqlQueue::DynamicScratchHandler` in
//! `amd_aql_queue.cpp` of ROCm 5.2).

use flipwave_codeobj::Descriptor;
use flipwave_device::{AccessKind, Address, DeviceError, FaultCause, KernelPacket};
use flipwave_isa::Target;

/// Why a queue is stopped: the bits of its error signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum QueueError {
    /// A grid or a workgroup with nothing in it, or a grid that no counter holds.
    Dimensions = 2,
    /// LDS or scratch that the GPU does not have.
    Allocation = 4,
    /// No kernel, or none that the GPU can execute.
    Code = 8,
    /// A packet of a type that there is not.
    Packet = 0x20,
    /// A workgroup of more work-items than there can be.
    Workgroup = 0x40,
    /// A misaligned access, of the memory aperture violation.
    Aperture = 0x2000_0000,
    /// An illegal instruction.
    Instruction = 0x4000_0000,
    /// A trap.
    Trap = 0x8000_0000,
}

/// How a packet ended that was not executed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not one that the GPU can execute.
    Packet(QueueError),
    /// What it names is not the GPU's.
    Memory(FaultCause),
}

/// Scratch that a wave can have: 13 bits of KiB (`COMPUTE_TMPRING_SIZE.WAVESIZE`, AMDGPUUsage).
const SCRATCH_OF_WAVE: u64 = 0x1fff << 10;
const LARGEST_WORKGROUP: u64 = 1024;

/// Checks what the packet processor checks of a packet and of the descriptor that it names.
pub fn check(
    packet: &KernelPacket,
    descriptor: &Descriptor,
    target: &Target,
) -> Result<(), Refusal> {
    let refuse = |error| Err(Refusal::Packet(error));
    let items: u64 = packet.workgroup.iter().map(|size| u64::from(*size)).product();
    let total: u128 = packet.grid.iter().map(|size| u128::from(*size)).product();
    if items == 0 || total == 0 || total > u128::from(u32::MAX) {
        return refuse(QueueError::Dimensions);
    }
    if items > LARGEST_WORKGROUP {
        return refuse(QueueError::Workgroup);
    }
    let scratch = packet.private_bytes.max(descriptor.private_segment_fixed_size);
    let lanes = u64::from(descriptor.wavefront_size());
    if packet.lds_bytes > target.lds_bytes() || u64::from(scratch) * lanes > SCRATCH_OF_WAVE {
        return refuse(QueueError::Allocation);
    }
    if !target.wave_sizes().iter().any(|size| u64::from(*size) == lanes) {
        return refuse(QueueError::Code);
    }
    Ok(())
}

/// What a GPU makes of an error of the device that a packet is to blame for.
///
/// # Errors
/// The others.
pub fn of_packet(error: DeviceError) -> Result<Refusal, DeviceError> {
    let memory = |address, access| {
        Refusal::Memory(FaultCause::MemoryViolation { address, access, lane: None })
    };
    match error {
        DeviceError::NotAllocated { address, .. } => Ok(memory(address, AccessKind::Read)),
        DeviceError::NoCode { kernel: Address(0) } => Ok(Refusal::Packet(QueueError::Code)),
        DeviceError::NoCode { kernel } => Ok(memory(kernel, AccessKind::Fetch)),
        error => Err(error),
    }
}
