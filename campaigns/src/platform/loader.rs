//! Loading of programs.

use crate::file::kernels::{Code, Launch};
use crate::program::error::PrepareError;
use flipwave_device::{Address, DeviceError, Dispatch};
use flipwave_machine::Simulator;

/// A device that programs are loaded to.
pub trait ProgramLoader {
    /// Loads code, unless it is loaded already.
    ///
    /// # Errors
    /// [`PrepareError`] if the code cannot be compiled, read or loaded.
    fn load(&mut self, code: &Code) -> Result<(), PrepareError>;

    /// Lays out a launch, whose code is loaded. `index` is its number in messages; `addresses` are those
    /// of the campaign's buffers.
    ///
    /// # Errors
    /// [`PrepareError`] if the kernel does not exist or the arguments do not match it.
    fn dispatch(
        &self,
        index: usize,
        launch: &Launch,
        addresses: &[Address],
    ) -> Result<Dispatch, PrepareError>;

    /// Allocates memory with this content.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&mut self, content: &[u8]) -> Result<Address, DeviceError>;

    /// Version of the compiler, if one was used.
    fn compiler(&self) -> Option<String>;
}

/// A simulated GPU that programs are loaded to.
pub trait LoadedMachine: ProgramLoader {
    /// The machine with everything that was loaded.
    fn into_simulator(self: Box<Self>) -> Simulator;
}
