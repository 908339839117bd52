//! Devices that replay captures.

use crate::platform::CampaignTarget;
use flipwave_capture::{RecordedCode, RecordedDispatch};
use flipwave_codeobj::{CodeObject, CodeObjectError};
use flipwave_device::{Address, DeviceError, Dispatch, KernelPacket, ModuleId};
use flipwave_injector::instruction_limit;
use flipwave_machine::{Machine, Simulator};
use flipwave_ptx_sim::PtxGpu;
use flipwave_sim::EmbeddedGpu;

/// Errors returned when loading code of a capture.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The code object is invalid.
    #[error(transparent)]
    CodeObject(#[from] CodeObjectError),
    /// The text of the module is not UTF-8.
    #[error("not a PTX module: its text is not UTF-8")]
    Text,
    /// The device refuses the code.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A simulated GPU without memory.
pub(super) enum ReplayDevice {
    /// A GPU of AMD.
    Amdgpu(Box<EmbeddedGpu>),
    /// A GPU for PTX.
    Ptx(Box<PtxGpu>),
}

impl ReplayDevice {
    /// A device of a target; of another platform than those of applications, the error is that of AMD's.
    pub fn new(target: &CampaignTarget) -> Result<ReplayDevice, DeviceError> {
        if let Some(ptx) = target.ptx() {
            return Ok(ReplayDevice::Ptx(Box::new(PtxGpu::new(ptx.clone()))));
        }
        let amdgpu =
            target.amdgpu().map_err(|error| DeviceError::Unsupported(error.to_string().into()))?;
        Ok(ReplayDevice::Amdgpu(Box::new(EmbeddedGpu::new(amdgpu.clone())?)))
    }

    /// Loads recorded code. Its memory is allocated and written by the recorded steps.
    pub fn load(&mut self, code: &RecordedCode) -> Result<ModuleId, CodeError> {
        match self {
            ReplayDevice::Amdgpu(gpu) => Ok(gpu.adopt(&CodeObject::parse(&code.elf)?, code.bias)?),
            ReplayDevice::Ptx(gpu) => {
                let text = str::from_utf8(&code.elf).map_err(|_| CodeError::Text)?;
                Ok(flipwave_cuda::load_again(gpu, text)?)
            }
        }
    }

    /// The dispatch that was recorded.
    pub fn dispatch(&self, module: ModuleId, recorded: &RecordedDispatch) -> Dispatch {
        let KernelPacket { grid, workgroup, lds_bytes, .. } = recorded.packet;
        let (declared, queued) = match self {
            ReplayDevice::Amdgpu(gpu) => {
                let object = gpu.code_object(module);
                let kernel = object.and_then(|object| object.kernel(&recorded.kernel));
                let declared = kernel.map(|kernel| kernel.descriptor.group_segment_fixed_size);
                (declared.unwrap_or(0), Some(recorded.queued))
            }
            ReplayDevice::Ptx(_) => (0, None),
        };
        Dispatch {
            module,
            kernel: recorded.kernel.clone(),
            grid,
            workgroup,
            kernarg: recorded.arguments.clone(),
            dynamic_lds: lds_bytes.saturating_sub(declared),
            instruction_limit: instruction_limit(recorded.instructions),
            queued,
            is_cooperative: recorded.is_cooperative,
        }
    }

    /// Allocates memory at an address.
    pub fn allocate_at(&mut self, address: Address, bytes: u64) -> Result<(), DeviceError> {
        match self {
            ReplayDevice::Amdgpu(gpu) => gpu.allocate_at(address, bytes),
            ReplayDevice::Ptx(gpu) => gpu.allocate_at(address, bytes),
        }
    }

    pub fn into_simulator(self) -> Simulator {
        match self {
            ReplayDevice::Amdgpu(gpu) => Simulator::new(*gpu),
            ReplayDevice::Ptx(gpu) => Simulator::new(*gpu),
        }
    }
}
