//! Loading of programs.

use crate::file::kernels::{Code, Kernels, Launch, Pointer};
use crate::program::error::PrepareError;
use crate::program::image::Image;
use flipwave_device::{Address, DeviceError, Dispatch};
use flipwave_machine::Simulator;

/// A device that programs are loaded to.
pub trait ProgramLoader {
    /// Loads code, unless it is loaded already.
    ///
    /// # Errors
    /// [`PrepareError`] if the code cannot be compiled, read or loaded.
    fn load(&mut self, code: &Code) -> Result<(), PrepareError>;

    /// Lays out a launch, whose code is loaded. `index` is its number in messages.
    ///
    /// # Errors
    /// [`PrepareError`] if the kernel does not exist or the arguments do not match it.
    fn dispatch(
        &self,
        index: usize,
        launch: &Launch,
        addresses: &Addresses,
    ) -> Result<Dispatch, PrepareError>;

    /// Allocates memory.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError>;

    /// Writes to allocated memory.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn write(&mut self, address: Address, content: &[u8]) -> Result<(), DeviceError>;

    /// Creates the heap that loaded code allocates memory from, after all buffers are allocated. `bytes` is
    /// its size; `None` for the default.
    ///
    /// # Errors
    /// [`PrepareError`] if the memory cannot be allocated.
    fn create_heap(&mut self, bytes: Option<u64>) -> Result<(), PrepareError>;

    /// Version of the compiler, if one was used.
    fn compiler(&self) -> Option<String>;
}

/// A simulated GPU that programs are loaded to.
pub trait LoadedMachine: ProgramLoader {
    /// The machine with everything that was loaded.
    fn into_simulator(self: Box<Self>) -> Simulator;
}

/// Addresses of a workload's buffers.
pub struct Addresses {
    /// Address of each buffer, in order.
    buffers: Vec<Address>,
    /// Value of each pointer in [`Kernels::pointers`], in order.
    pointers: Vec<Address>,
}

impl Addresses {
    /// Returns the values of all pointers, given the address of each buffer.
    pub(crate) fn new(kernels: &Kernels, buffers: Vec<Address>) -> Addresses {
        let value = |pointer: &Pointer| Address(buffers[pointer.buffer].0 + pointer.offset);
        Addresses { pointers: kernels.pointers.iter().map(value).collect(), buffers }
    }

    /// Returns the address of each buffer, in order.
    pub fn buffers(&self) -> &[Address] {
        &self.buffers
    }

    /// Returns the value of each pointer in [`Kernels::pointers`], in order.
    pub fn pointers(&self) -> &[Address] {
        &self.pointers
    }

    /// Returns the content of an image with addresses.
    pub fn value(&self, image: &Image) -> Vec<u8> {
        image.with_addresses(&self.pointers)
    }
}
