//! What a GPU does not take from a queue, and how it says so: bits of the queue's error signal, as
//! ROCr's handler of queue errors reads them (`AqlQueue::DynamicScratchHandler` in
//! `amd_aql_queue.cpp` of ROCm 5.2).

use crate::map::Violation;
use flipwave_codeobj::Descriptor;
use flipwave_device::{AccessKind, Address, DeviceError, FaultCause, KernelPacket};
use flipwave_isa::Target;
use std::fmt;

/// Why a queue is stopped: the bits of its error signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each says it in words")]
#[repr(u32)]
pub enum QueueError {
    #[error("the grid or the workgroup has no work-item, or the grid more than 2^32-1")]
    Dimensions = 2,
    #[error("the kernel needs more LDS or scratch than the GPU has")]
    Allocation = 4,
    #[error("there is no kernel, or none that the GPU can execute")]
    Code = 8,
    #[error("there are no packets of this type")]
    Packet = 0x20,
    #[error("the workgroup has more work-items than there can be")]
    Workgroup = 0x40,
    #[error("misaligned access")]
    Aperture = 0x2000_0000,
    #[error("illegal instruction")]
    Instruction = 0x4000_0000,
    #[error("trap")]
    Trap = 0x8000_0000,
}

/// Why a packet is not executed, or not ended as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not one that the GPU can execute.
    Packet(QueueError),
    /// What it names is not the GPU's.
    Memory(FaultCause),
}

impl Refusal {
    fn memory(address: Address, access: AccessKind) -> Refusal {
        Refusal::Memory(FaultCause::MemoryViolation { address, access, lane: None })
    }
}

impl From<Violation> for Refusal {
    fn from(violation: Violation) -> Refusal {
        Refusal::memory(Address(violation.address), AccessKind::Read)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Packet(error) => error.fmt(f),
            Refusal::Memory(cause) => cause.fmt(f),
        }
    }
}

/// Scratch that a wave can have: 13 bits of KiB (`COMPUTE_TMPRING_SIZE.WAVESIZE`, AMDGPUUsage).
const SCRATCH_OF_WAVE: u64 = 0x1fff << 10;
const LARGEST_WORKGROUP: u64 = 1024;

/// Checks what the packet processor checks of a packet and of the descriptor that it names.
pub(crate) fn check(
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
pub(crate) fn of_packet(error: DeviceError) -> Result<Refusal, DeviceError> {
    match error {
        DeviceError::NotAllocated { address, .. } => Ok(Refusal::memory(address, AccessKind::Read)),
        DeviceError::NoCode { kernel: Address(0) } => Ok(Refusal::Packet(QueueError::Code)),
        DeviceError::NoCode { kernel } => Ok(Refusal::memory(kernel, AccessKind::Fetch)),
        error => Err(error),
    }
}
