//! Device API: memory, loading of code objects, dispatch, and faults.
//!
//! The embedded GPU and hardware implement the same trait, [`Device`]. A dispatch either completes or
//! ends with a typed [`DeviceFault`]. A [`DeviceError`] means that the request was invalid or that the
//! tool failed; it is never an outcome of a fault-injection experiment.

mod change;
mod fault;
mod fault_context;
mod identity;
mod kernarg;
mod kernel_name;
mod packet;
mod ranges;
mod stall;

pub use change::{Change, Patch};
pub use fault::{
    Absence, AccessKind, DeviceFault, FaultCause, FaultClass, FaultKind, FaultReport,
    UnknownFaultKind, WaveLocation,
};
pub use fault_context::{
    Bits, CallFrame, ChainEnd, FaultContext, FaultingLane, FrameEntry, OperandValue, RegisterValue,
};
pub use identity::{Address, Dim3, ModuleId, WaveId};
pub use kernarg::{ArgumentValue, KernargError, LaunchMemory, Layout, layout, layout_with_memory};
pub use kernel_name::{demangled_kernel, kernel_is_called, kernel_matches, matching_kernels};
pub use packet::{KernelPacket, QueuedPacket};
pub use ranges::AllocatedRanges;
pub use stall::{Stall, Wait, Waiting};

use flipwave_codeobj::CodeObject;
use flipwave_isa::Target;

/// A kernel dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The loaded code object.
    pub module: ModuleId,
    /// Name of the kernel in the code object.
    pub kernel: String,
    /// Grid size, in work-items per dimension.
    pub grid: Dim3,
    /// Workgroup size, in work-items per dimension.
    pub workgroup: Dim3,
    /// The kernarg segment, including hidden arguments, as returned by [`layout`].
    pub kernarg: Vec<u8>,
    /// Dynamic LDS, in bytes, in addition to the kernel's static LDS.
    pub dynamic_lds: u32,
    /// Watchdog limit, in wave instructions, after which the dispatch ends as hung. Counts executed
    /// instructions, so it does not depend on the host's speed.
    pub instruction_limit: u64,
    /// Location of the dispatch packet if a runtime has written it, and the memory that it refers to,
    /// to device memory. The device then takes grid, workgroup, arguments and LDS from the packet; the
    /// fields above must have the same values. The kernel is the one above, so that rewritten code can
    /// replace it, unless the module has no code object: then the packet also determines the kernel.
    pub queued: Option<QueuedPacket>,
    /// `true` if workgroups may wait for each other (a cooperative launch): all are resident at the same time and
    /// take turns. GPUs that execute resident workgroups side by side anyway ignore it.
    pub is_cooperative: bool,
}

impl Dispatch {
    /// Number of waves of this many lanes. Workgroups at the end of a grid may be smaller.
    pub fn waves(&self, lanes: u64) -> u64 {
        // Along each dimension: number and size of the full workgroups, and of the partial workgroup.
        let parts = [0, 1, 2].map(|dimension| {
            let (grid, group) = (self.grid[dimension], self.workgroup[dimension]);
            [(u64::from(grid / group), u64::from(group)), (1, u64::from(grid % group))]
        });
        let mut waves = 0;
        for x in parts[0] {
            for y in parts[1] {
                for z in parts[2] {
                    waves += x.0 * y.0 * z.0 * (x.1 * y.1 * z.1).div_ceil(lanes);
                }
            }
        }
        waves
    }
}

/// The result of a dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// All waves ended.
    Completed(Statistics),
    /// The device stopped the dispatch.
    Faulted(DeviceFault),
}

/// Execution counts of a completed dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions executed, counted once per wave.
    pub wave_instructions: u64,
    /// Instructions executed, each counted once per active lane (once for scalar instructions).
    pub lane_operations: u64,
    /// Waves executed.
    pub waves: u64,
}

/// Errors returned by a [`Device`].
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The address range is not allocated.
    #[error("{operation} of {bytes} bytes at {address}: the range is not inside one allocation")]
    NotAllocated {
        /// The operation: read, write or free.
        operation: &'static str,
        /// Start of the range.
        address: Address,
        /// Length of the range, in bytes.
        bytes: u64,
    },
    /// The allocation does not fit in memory.
    #[error("cannot allocate {bytes} bytes of device memory: {reason}")]
    OutOfMemory {
        /// The requested size, in bytes.
        bytes: u64,
        /// Reason of the failure.
        reason: String,
    },
    /// The code object is for another target.
    #[error("the code object is for {code_object}, the device is {device}")]
    WrongTarget {
        /// Target of the code object.
        code_object: String,
        /// Target of the device.
        device: String,
    },
    /// The device does not support the request. The message is the device's.
    #[error(transparent)]
    Unsupported(Box<dyn std::error::Error + Send + Sync>),
    /// The code object cannot be loaded.
    #[error("cannot load the code object: {0}")]
    Load(String),
    /// The address is outside the code object.
    #[error(
        "address {address:#x} is not in the loaded code object; expected {:#x} to {:#x}",
        image.start, image.end
    )]
    OutsideModule {
        /// The requested ELF virtual address.
        address: u64,
        /// ELF virtual addresses of the code object.
        image: std::ops::Range<u64>,
    },
    /// The code object has no kernel of this name.
    #[error("no kernel `{wanted}` in the code object; it has: {}", present.join(", "))]
    UnknownKernel {
        /// The requested name.
        wanted: String,
        /// Names of the kernels in the code object.
        present: Vec<String>,
    },
    /// The device or the kernel does not allow the launch configuration.
    #[error("cannot launch kernel `{kernel}`: {reason}")]
    BadLaunch {
        /// The kernel.
        kernel: String,
        /// The invalid value and the allowed values.
        reason: String,
    },
    /// The memory is already mapped.
    #[error("cannot map {bytes} bytes at {address}: part of the range is already mapped")]
    Occupied {
        /// Start of the range.
        address: Address,
        /// Length of the range, in bytes.
        bytes: u64,
    },
    /// The kernel of a packet is not in a loaded code object.
    #[error("the kernel at {kernel} is not in loaded code")]
    NoCode {
        /// Address of the kernel's descriptor or first instruction.
        kernel: Address,
    },
    /// The tool failed.
    #[error("device failure: {0}")]
    Internal(String),
}

/// A GPU.
pub trait Device {
    /// The target that the device executes.
    fn target(&self) -> &Target;

    /// Allocates `bytes` of zeroed device memory.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError>;

    /// Frees an allocation; `address` was returned by [`Device::allocate`].
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn free(&mut self, address: Address) -> Result<(), DeviceError>;

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies bytes from the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Loads a code object.
    ///
    /// # Errors
    /// [`DeviceError::WrongTarget`], [`DeviceError::Load`], [`DeviceError::OutOfMemory`].
    fn load(&mut self, code_object: &CodeObject) -> Result<ModuleId, DeviceError>;

    /// Converts an ELF virtual address of a loaded code object to a device address, for the host to
    /// read and write the code object's data.
    ///
    /// # Errors
    /// [`DeviceError::OutsideModule`]; [`DeviceError::Internal`] if the module belongs to another
    /// device.
    fn address_of(&self, module: ModuleId, address: u64) -> Result<Address, DeviceError>;

    /// Executes a dispatch and waits for its end.
    ///
    /// # Errors
    /// [`DeviceError::UnknownKernel`], [`DeviceError::BadLaunch`]. Faults of the executed code are not
    /// errors but [`Completion::Faulted`].
    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError>;

    /// Executes a dispatch like [`Device::dispatch`] and calls `between` repeatedly while it runs, so that
    /// waves can wait for the host. Returns `None` without executing anything if the device cannot do so.
    ///
    /// # Errors
    /// See [`Device::dispatch`], and the errors of `between`.
    fn dispatch_attended(
        &mut self,
        dispatch: &Dispatch,
        between: &mut dyn FnMut(&mut Self) -> Result<(), DeviceError>,
    ) -> Result<Option<Completion>, DeviceError>
    where
        Self: Sized,
    {
        let _ = (dispatch, between);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_include_partial_workgroups() {
        let waves = |grid, workgroup| {
            let dispatch = Dispatch {
                module: ModuleId(0),
                kernel: String::new(),
                grid,
                workgroup,
                kernarg: Vec::new(),
                dynamic_lds: 0,
                instruction_limit: 0,
                queued: None,
                is_cooperative: false,
            };
            dispatch.waves(64)
        };
        assert_eq!(waves([256, 1, 1], [256, 1, 1]), 4);
        assert_eq!(waves([300, 1, 1], [256, 1, 1]), 5);
        // Four workgroups: 16x16, 4x16, 16x4 and 4x4 work-items.
        assert_eq!(waves([20, 20, 1], [16, 16, 1]), 4 + 1 + 1 + 1);
    }
}
