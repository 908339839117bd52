//! GPUs to which PTX modules are loaded: simulated ones, and those of NVIDIA's driver.

use flipwave_cuda_driver::CudaDevice;
use flipwave_device::{Address, DeviceError, ModuleId};
use flipwave_machine::Machine;
use flipwave_ptx::{Code, Module};
use flipwave_ptx_sim::PtxGpu;

/// A GPU to which PTX modules are loaded.
pub(crate) trait PtxDevice {
    /// Loads a module.
    ///
    /// # Errors
    /// [`DeviceError::Load`], [`DeviceError::OutOfMemory`].
    fn load(&mut self, module: &Module) -> Result<ModuleId, DeviceError>;

    /// The code of a loaded module.
    fn code(&self, module: ModuleId) -> Option<&Code>;

    /// Address in shared memory of the first byte that launches of a kernel provide.
    ///
    /// # Errors
    /// [`DeviceError`] if the kernel does not exist.
    fn dynamic_shared(&self, module: ModuleId, kernel: &str) -> Result<u64, DeviceError>;

    /// Allocates zeroed memory.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError>;

    /// Writes to allocated memory.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn write(&mut self, address: Address, content: &[u8]) -> Result<(), DeviceError>;
}

impl PtxDevice for PtxGpu {
    fn load(&mut self, module: &Module) -> Result<ModuleId, DeviceError> {
        PtxGpu::load(self, module)
    }

    fn code(&self, module: ModuleId) -> Option<&Code> {
        self.program(module).map(|program| &*program.code)
    }

    fn dynamic_shared(&self, module: ModuleId, _: &str) -> Result<u64, DeviceError> {
        let unknown = || DeviceError::Internal("an unknown module".to_owned());
        self.program(module).map(|program| program.dynamic_shared()).ok_or_else(unknown)
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        Machine::allocate(self, bytes)
    }

    fn write(&mut self, address: Address, content: &[u8]) -> Result<(), DeviceError> {
        Machine::write(self, address, content)
    }
}

impl PtxDevice for CudaDevice {
    fn load(&mut self, module: &Module) -> Result<ModuleId, DeviceError> {
        CudaDevice::load(self, module)
    }

    fn code(&self, module: ModuleId) -> Option<&Code> {
        CudaDevice::code(self, module)
    }

    fn dynamic_shared(&self, module: ModuleId, kernel: &str) -> Result<u64, DeviceError> {
        CudaDevice::dynamic_shared(self, module, kernel).map(u64::from)
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        CudaDevice::allocate(self, bytes)
    }

    fn write(&mut self, address: Address, content: &[u8]) -> Result<(), DeviceError> {
        CudaDevice::write(self, address, content)
    }
}
