//! A device whose dispatches can be cancelled.

use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Completion, Device, DeviceError, Dispatch, ModuleId};
use flipwave_injector::CancellationToken;
use flipwave_isa::Target;
use flipwave_sim::{EmbeddedGpu, Execution, Unobserved};

/// A GPU whose dispatches can be cancelled.
pub struct CancellableDevice<'a> {
    /// The GPU.
    pub device: &'a mut EmbeddedGpu,
    /// The token that cancels dispatches.
    pub cancellation: &'a CancellationToken,
}

impl Device for CancellableDevice<'_> {
    fn target(&self) -> &Target {
        self.device.target()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.device.allocate(bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.device.free(address)
    }

    fn write(&mut self, address: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(address, bytes)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(address, bytes)
    }

    fn load(&mut self, code_object: &CodeObject) -> Result<ModuleId, DeviceError> {
        self.device.load(code_object)
    }

    fn address_of(&self, module: ModuleId, address: u64) -> Result<Address, DeviceError> {
        self.device.address_of(module, address)
    }

    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError> {
        let mut execution = self.device.begin(dispatch)?;
        let kernel = &dispatch.kernel;
        let device = &mut *self.device;
        self.cancellation.run_to_end(kernel, &mut execution, |execution, until| {
            device.advance(execution, &mut Unobserved, until)
        })
    }

    fn dispatch_attended(
        &mut self,
        dispatch: &Dispatch,
        between: &mut dyn FnMut(&mut Self) -> Result<(), DeviceError>,
    ) -> Result<Option<Completion>, DeviceError> {
        let mut execution = self.device.begin(dispatch)?;
        let cancellation = self.cancellation;
        let advance = |execution: &mut Execution, until: u64| {
            let slice = execution.statistics().wave_instructions.saturating_add(ATTENDED_SLICE);
            let progress = self.device.advance(execution, &mut Unobserved, until.min(slice))?;
            between(self)?;
            Ok(progress)
        };
        cancellation.run_to_end(&dispatch.kernel, &mut execution, advance).map(Some)
    }
}

/// Number of wave instructions between two calls of the host in [`Device::dispatch_attended`].
const ATTENDED_SLICE: u64 = 1 << 12;
