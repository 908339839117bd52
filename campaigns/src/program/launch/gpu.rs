//! GPUs of this machine on which kernels are launched.

use super::error::LaunchError;
use super::injection::LaunchInjection;
use crate::file::campaign::Campaign;
use crate::file::kernels::Kernels;
use crate::platform::{AmdgpuLoader, PtxLoader};
use crate::program::error::PrepareError;
use crate::program::prepare::{LoadedProgram, load_program};
use flipwave_cuda_driver::CudaDevice;
use flipwave_device::{Address, Completion, Device, DeviceError, Dispatch};
use flipwave_injector::Program;
use flipwave_isa::Target;
use flipwave_ptx::Ptx;
use flipwave_rocr::RocrDevice;
use std::sync::Arc;
use std::time::Duration;

/// A GPU on which the kernels of a program are launched.
pub(super) trait LaunchGpu {
    /// Name of the GPU.
    fn name(&self) -> String;

    /// Executes the dispatch with a number.
    ///
    /// # Errors
    /// [`LaunchError`] if the dispatch is invalid.
    fn dispatch(&mut self, number: u32, dispatch: &Dispatch) -> Result<Completion, LaunchError>;

    /// Ends the launches, all of which have completed.
    fn finish(&mut self) {}

    /// Copies bytes from the device.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;
}

/// Opens the first GPU that executes code of the campaign's target, and loads the program.
pub(super) fn load(
    campaign: &Campaign,
    kernels: &Kernels,
) -> Result<(Box<dyn LaunchGpu>, Program), LaunchError> {
    match campaign.target.ptx() {
        Some(ptx) => load_ptx(campaign, kernels, ptx),
        None => {
            let target = campaign.target.amdgpu().map_err(PrepareError::from)?;
            load_amdgpu(campaign, kernels, target)
        }
    }
}

fn load_amdgpu(
    campaign: &Campaign,
    kernels: &Kernels,
    target: &Target,
) -> Result<(Box<dyn LaunchGpu>, Program), LaunchError> {
    let mut device = RocrDevice::open(0)?;
    let (found, wanted) = (device.target().to_string(), campaign.target.to_string());
    if device.target().processor() != target.processor() {
        return Err(LaunchError::OtherTarget { wanted, found });
    }
    // The campaign that waits for this process enforces the time limit.
    device.set_time_limit(Duration::MAX);
    device.set_stopped(Arc::clone(campaign.cancellation.stopped()));
    let mut loader = AmdgpuLoader::new(device, target.clone());
    let LoadedProgram { program, .. } = load_program(campaign, kernels, &mut loader)?;
    Ok((Box::new(loader.device), program))
}

impl LaunchGpu for RocrDevice {
    fn name(&self) -> String {
        self.target().to_string()
    }

    fn dispatch(&mut self, _: u32, dispatch: &Dispatch) -> Result<Completion, LaunchError> {
        Ok(Device::dispatch(self, dispatch).map_err(PrepareError::from)?)
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Device::read(self, address, bytes)
    }
}

fn load_ptx(
    campaign: &Campaign,
    kernels: &Kernels,
    ptx: &Ptx,
) -> Result<(Box<dyn LaunchGpu>, Program), LaunchError> {
    let mut device = CudaDevice::open(0)?;
    let info = device.info().clone();
    info.capability.check(&info.name, ptx)?;
    let injection = LaunchInjection::of_process(ptx).map_err(LaunchError::Injection)?;
    let limit = injection.as_ref().map_or(Duration::MAX, LaunchInjection::time_limit);
    device.set_time_limit(limit);
    device.set_stopped(Arc::clone(campaign.cancellation.stopped()));
    let mut loader = PtxLoader::new(device, ptx.clone());
    let LoadedProgram { program, .. } = load_program(campaign, kernels, &mut loader)?;
    let injection = injection.map(|injection| injection.in_program(&program));
    Ok((Box::new(CudaLauncher { device: loader.gpu, injection }), program))
}

/// A GPU of NVIDIA's driver, and the fault that this process injects, if any.
struct CudaLauncher {
    device: CudaDevice,
    injection: Option<LaunchInjection>,
}

impl LaunchGpu for CudaLauncher {
    fn name(&self) -> String {
        self.device.info().to_string()
    }

    fn dispatch(&mut self, number: u32, dispatch: &Dispatch) -> Result<Completion, LaunchError> {
        let completion = match &mut self.injection {
            Some(injection) => injection.dispatch(&mut self.device, number, dispatch),
            None => self.device.dispatch(dispatch),
        };
        Ok(completion.map_err(PrepareError::from)?)
    }

    fn finish(&mut self) {
        if let Some(injection) = &mut self.injection {
            injection.finish();
        }
    }

    fn read(&self, address: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(address, bytes)
    }
}
