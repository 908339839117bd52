//! Packets that a GPU refuses, and how it reports them: as bits of the queue's error signal, which
//! ROCr's handler of queue errors reads (`AqlQueue::DynamicScratchHandler` in `amd_aql_queue.cpp`
//! of ROCm 5.2).

use crate::map::Violation;
use flipwave_codeobj::Descriptor;
use flipwave_device::{AccessKind, Address, DeviceError, FaultCause, KernelPacket};
use flipwave_isa::Target;
use std::fmt;

/// Reasons for which a queue is stopped; the values are bits of its error signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the error texts describe the variants")]
#[repr(u32)]
pub enum QueueError {
    #[error(
        "invalid dimensions: the grid or workgroup is empty, or the grid exceeds 2^32-1 work-items"
    )]
    Dimensions = 2,
    #[error("the kernel needs more LDS or scratch than the GPU has")]
    Allocation = 4,
    #[error("missing kernel, or one that the GPU cannot execute")]
    Code = 8,
    #[error("unknown packet type")]
    Packet = 0x20,
    #[error("the workgroup exceeds 1024 work-items")]
    Workgroup = 0x40,
    #[error("misaligned access")]
    Aperture = 0x2000_0000,
    #[error("illegal instruction")]
    Instruction = 0x4000_0000,
    #[error("trap")]
    Trap = 0x8000_0000,
}

/// Why a packet is not executed, or its completion cannot be signalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The packet is invalid.
    Packet(QueueError),
    /// The packet, its queue or something that it names is not in memory that the GPU may access.
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

/// Largest scratch size of a wave in bytes: 13 bits of KiB (`COMPUTE_TMPRING_SIZE.WAVESIZE`,
/// AMDGPUUsage).
const MAX_WAVE_SCRATCH: u64 = 0x1fff << 10;
/// Largest number of work-items in a workgroup.
const MAX_WORKGROUP: u64 = 1024;

/// Checks of a dispatch packet and its kernel descriptor what a GPU's packet processor checks.
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
    if items > MAX_WORKGROUP {
        return refuse(QueueError::Workgroup);
    }
    let scratch = packet.private_bytes.max(descriptor.private_segment_fixed_size);
    let lanes = u64::from(descriptor.wavefront_size());
    if packet.lds_bytes > target.lds_bytes() || u64::from(scratch) * lanes > MAX_WAVE_SCRATCH {
        return refuse(QueueError::Allocation);
    }
    if !target.wave_sizes().iter().any(|size| u64::from(*size) == lanes) {
        return refuse(QueueError::Code);
    }
    Ok(())
}

/// Converts a device error that an invalid packet causes to a [`Refusal`].
///
/// # Errors
/// Returns all other errors unchanged.
pub(crate) fn from_device_error(error: DeviceError) -> Result<Refusal, DeviceError> {
    match error {
        DeviceError::NotAllocated { address, .. } => Ok(Refusal::memory(address, AccessKind::Read)),
        DeviceError::NoCode { kernel: Address(0) } => Ok(Refusal::Packet(QueueError::Code)),
        DeviceError::NoCode { kernel } => Ok(Refusal::memory(kernel, AccessKind::Fetch)),
        error => Err(error),
    }
}
