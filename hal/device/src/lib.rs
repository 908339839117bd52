//! What a GPU is to everything above it: memory, loading, dispatch, and how a dispatch ends.
//!
//! The embedded GPU and hardware answer the same calls. A dispatch either completes or ends in
//! a typed [`DeviceFault`]; a [`DeviceError`] means that the request itself was wrong or the
//! tool failed, and is never an outcome of a fault-injection experiment.

mod change;
mod fault;
mod kernarg;
mod packet;
mod stall;

pub use change::{Change, Patch};
pub use fault::{Absence, AccessKind, DeviceFault, FaultCause, FaultClass, WaveLocation};
pub use kernarg::{ArgumentValue, KernargError, Layout, layout, layout_beside};
pub use packet::{KernelPacket, QueuedPacket};
pub use stall::{Stall, Wait, Waiting};

use flipwave_codeobj::CodeObject;
use flipwave_isa::Target;
use std::fmt;

/// An address in the GPU's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Three-dimensional extent or position; unused dimensions are 1 (extent) or 0 (position).
pub type Dim3 = [u32; 3];

/// Which of a dispatch's waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaveId {
    /// Position of the workgroup in the grid.
    pub workgroup: Dim3,
    /// Index of the wave in its workgroup.
    pub wave: u32,
}

impl fmt::Display for WaveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(f, "workgroup {x},{y},{z} wave {}", self.wave)
    }
}

/// A code object loaded on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(pub u32);

/// One kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The loaded code object.
    pub module: ModuleId,
    /// Name of the kernel in it.
    pub kernel: String,
    /// Work-items per dimension.
    pub grid: Dim3,
    /// Work-items of a workgroup per dimension.
    pub workgroup: Dim3,
    /// The kernel arguments, hidden ones included, as [`layout`] makes them.
    pub kernarg: Vec<u8>,
    /// LDS bytes asked for at launch, beyond what the kernel declares.
    pub dynamic_lds: u32,
    /// The watchdog: wave instructions after which the dispatch is ended as hung. Counted in
    /// executed instructions, so that it does not depend on the host's speed.
    pub instruction_limit: u64,
    /// Where the launch's packet stands, if a runtime has put it into the device's memory with all
    /// that it names. What the packet says counts then, and not grid, workgroup, arguments and LDS
    /// above; whoever asks for those without a device finds them there, and they have to be the
    /// packet's. The kernel is the one above, so that rewritten code can take its place, unless the
    /// module has no code object: then the packet says that, too.
    pub queued: Option<QueuedPacket>,
}

/// How a dispatch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// All waves reached their end.
    Completed(Statistics),
    /// The device stopped it.
    Faulted(DeviceFault),
}

/// What a completed dispatch executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Instructions executed, counted per wave.
    pub wave_instructions: u64,
    /// The same, each weighted with its active lanes (1 for scalar instructions).
    pub lane_operations: u64,
    /// Waves run.
    pub waves: u64,
}

/// A request that cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// An address range that is not allocated.
    #[error("{operation} of {bytes} bytes at {address}: the range is not inside one allocation")]
    NotAllocated {
        /// What was asked for: read, write or free.
        operation: &'static str,
        /// Start of the range.
        address: Address,
        /// Its length.
        bytes: u64,
    },
    /// No room for an allocation.
    #[error("cannot allocate {bytes} bytes of device memory: {reason}")]
    OutOfMemory {
        /// Size asked for.
        bytes: u64,
        /// Why not.
        reason: String,
    },
    /// The code object is for something else.
    #[error("the code object is for {code_object}, the device is {device}")]
    WrongTarget {
        /// Target of the code object.
        code_object: String,
        /// Target of the device.
        device: String,
    },
    /// Something that this kind of device does not do, in its own words.
    #[error(transparent)]
    Unsupported(Box<dyn std::error::Error + Send + Sync>),
    /// A code object that cannot be loaded.
    #[error("cannot load the code object: {0}")]
    Load(String),
    /// An address that the code object does not have.
    #[error(
        "address {address:#x} is not in the loaded code object; expected {:#x} to {:#x}",
        image.start, image.end
    )]
    OutsideModule {
        /// The ELF virtual address asked for.
        address: u64,
        /// ELF virtual addresses of the code object.
        image: std::ops::Range<u64>,
    },
    /// No such kernel.
    #[error("no kernel `{wanted}` in the code object; it has: {}", present.join(", "))]
    UnknownKernel {
        /// The name asked for.
        wanted: String,
        /// The names there are.
        present: Vec<String>,
    },
    /// A launch whose shape the device or the kernel does not allow.
    #[error("kernel `{kernel}` cannot be launched: {reason}")]
    BadLaunch {
        /// The kernel.
        kernel: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// Memory that is there already.
    #[error("{bytes} bytes at {address} cannot be mapped: part of that is mapped already")]
    Occupied {
        /// Start of the range.
        address: Address,
        /// Its length.
        bytes: u64,
    },
    /// A packet whose kernel is in no loaded code.
    #[error("the kernel at {kernel} is not in loaded code")]
    NoCode {
        /// Where its descriptor is, or its first instruction.
        kernel: Address,
    },
    /// The tool's own failure.
    #[error("device failure: {0}")]
    Internal(String),
}

/// A GPU.
pub trait Device {
    /// What it executes.
    fn target(&self) -> &Target;

    /// Reserves `bytes` of zeroed device memory.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError>;

    /// Gives an allocation back; `address` is what [`Device::allocate`] returned.
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

    /// Where an ELF virtual address of a loaded code object is in the device's memory, so that the
    /// host can read and write the code object's data.
    ///
    /// # Errors
    /// [`DeviceError::OutsideModule`]; [`DeviceError::Internal`] if the module is not this
    /// device's.
    fn address_of(&self, module: ModuleId, address: u64) -> Result<Address, DeviceError>;

    /// Runs a dispatch to its end.
    ///
    /// # Errors
    /// [`DeviceError::UnknownKernel`], [`DeviceError::BadLaunch`]. What the running code does
    /// wrong is no error but a [`Completion::Faulted`].
    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError>;
}
