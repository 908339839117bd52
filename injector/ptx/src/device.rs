//! Devices on which hooks in PTX modules run.

use flipwave_cuda_driver::CudaDevice;
use flipwave_device::{Address, DeviceError, ModuleId};
use flipwave_machine::Machine;
use flipwave_ptx::{Module, Origin};
use flipwave_ptx_sim::{Inserted, PtxGpu};

/// A device on which hooks in PTX modules run.
pub trait HookDevice {
    /// Loads a module with hooks in addition to the module `original`. `origins` contains the origin of each
    /// instruction.
    ///
    /// # Errors
    /// [`DeviceError::Load`], [`DeviceError::OutOfMemory`].
    fn load_hooked(
        &mut self,
        original: ModuleId,
        module: &Module,
        origins: &[Origin],
    ) -> Result<ModuleId, DeviceError>;

    /// Address and size in bytes of a variable of a loaded module.
    fn variable(&mut self, module: ModuleId, name: &str) -> Option<(Address, u64)>;

    /// Copies bytes from the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies bytes to the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError>;
}

/// Inserted instructions are not counted, and both modules share the variables of the original one.
impl HookDevice for PtxGpu {
    fn load_hooked(
        &mut self,
        original: ModuleId,
        module: &Module,
        origins: &[Origin],
    ) -> Result<ModuleId, DeviceError> {
        self.load_rewritten(original, module, origins, Inserted::Free)
    }

    fn variable(&mut self, module: ModuleId, name: &str) -> Option<(Address, u64)> {
        PtxGpu::variable(self, module, name)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Machine::read(self, address, bytes)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        Machine::write(self, address, bytes)
    }
}

/// Each module has variables of its own.
impl HookDevice for CudaDevice {
    fn load_hooked(
        &mut self,
        _: ModuleId,
        module: &Module,
        _: &[Origin],
    ) -> Result<ModuleId, DeviceError> {
        self.load(module)
    }

    fn variable(&mut self, module: ModuleId, name: &str) -> Option<(Address, u64)> {
        CudaDevice::variable(self, module, name)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        CudaDevice::read(self, address, bytes)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        CudaDevice::write(self, address, bytes)
    }
}
