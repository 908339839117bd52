//! A device that runs a workload dispatch by dispatch, and can be cancelled.

use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Completion, Device, DeviceError, Dispatch, ModuleId};
use flipwave_injector::{CancellationToken, Changes, Workload};
use flipwave_injector_amdgpu::load_apart;
use flipwave_isa::Target;
use flipwave_sim::{EmbeddedGpu, Execution, Unobserved};

/// A GPU that runs the dispatches of a workload, in their order. Dispatches can be cancelled. Between them,
/// the GPU's memory changes as in the workload.
pub struct CancellableDevice<'a> {
    device: &'a mut EmbeddedGpu,
    cancellation: &'a CancellationToken,
    changes: &'a Changes,
    /// Number of completed dispatches.
    completed: usize,
}

impl<'a> CancellableDevice<'a> {
    /// Prepares a clone of a workload's device for the first dispatch.
    ///
    /// # Errors
    /// [`DeviceError`] if the changes of memory cannot be applied.
    pub fn new(
        device: &'a mut EmbeddedGpu,
        workload: &'a Workload,
    ) -> Result<CancellableDevice<'a>, DeviceError> {
        let changes = &workload.program.changes;
        changes.apply(0, device)?;
        let cancellation = &workload.cancellation;
        Ok(CancellableDevice { device, cancellation, changes, completed: 0 })
    }

    /// Changes memory after a dispatch that has completed.
    fn ended(&mut self, completion: Completion) -> Result<Completion, DeviceError> {
        if let Completion::Completed(_) = completion {
            self.completed += 1;
            self.changes.apply(self.completed, self.device)?;
        }
        Ok(completion)
    }
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
        load_apart(self.device, self.changes, code_object)
    }

    fn address_of(&self, module: ModuleId, address: u64) -> Result<Address, DeviceError> {
        self.device.address_of(module, address)
    }

    fn dispatch(&mut self, dispatch: &Dispatch) -> Result<Completion, DeviceError> {
        let mut execution = self.device.begin(dispatch)?;
        let kernel = &dispatch.kernel;
        let device = &mut *self.device;
        let completion =
            self.cancellation.run_to_end(kernel, &mut execution, |execution, until| {
                device.advance(execution, &mut Unobserved, until)
            })?;
        self.ended(completion)
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
        let completion = cancellation.run_to_end(&dispatch.kernel, &mut execution, advance)?;
        self.ended(completion).map(Some)
    }
}

/// Number of wave instructions between two calls of the host in [`Device::dispatch_attended`].
const ATTENDED_SLICE: u64 = 1 << 12;
