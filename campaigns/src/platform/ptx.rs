//! Simulated GPUs that execute PTX.

use super::other_platform::OtherPlatformError;
use super::ptx_device::PtxDevice;
use super::ptx_emulation::PtxEmulation;
use super::ptx_hardening::PtxHardening;
use super::ptx_hooks::PtxHooks;
use super::ptx_strict::PtxStrict;
use super::ptx_tools::PtxTools;
use super::{
    Addresses, EmulationMethod, HardeningMethod, HookMethod, LoadedMachine, Platform,
    ProgramLoader, StrictMethod, ToolMethod,
};
use crate::file::kernels::{Argument, Code, Launch};
use crate::program::compile::Compiler;
use crate::program::error::PrepareError;
use flipwave_arch::Architecture;
use flipwave_device::{Address, DeviceError, Dispatch, ModuleId};
use flipwave_machine::Simulator;
use flipwave_ptx::{Ptx, Slot};
use flipwave_ptx_sim::PtxGpu;
use std::path::Path;
use std::sync::Arc;

/// Targets for error messages; others of the form `sm_80` and `sm_90a` are accepted.
const TARGETS: [&str; 7] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];

/// Alignment of each array in dynamic shared memory, in bytes: the largest of PTX's types.
const DYNAMIC_ALIGNMENT: u32 = 16;

/// The platform of PTX.
pub(super) struct PtxPlatform;

impl Platform for PtxPlatform {
    fn architecture(&self, target: &str) -> Option<Arc<dyn Architecture>> {
        Some(Arc::new(Ptx::new(target)?))
    }

    fn targets(&self) -> Vec<String> {
        TARGETS.map(str::to_owned).into()
    }

    fn machine(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn LoadedMachine>, PrepareError> {
        let ptx = ptx_of(architecture)?;
        Ok(Box::new(PtxLoader::new(PtxGpu::new(ptx.clone()), ptx.clone())))
    }

    fn hooks(&self, _: &dyn Architecture) -> Result<Box<dyn HookMethod>, OtherPlatformError> {
        Ok(Box::new(PtxHooks::default()))
    }

    fn emulation(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn EmulationMethod>, OtherPlatformError> {
        Ok(Box::new(PtxEmulation::new(ptx_of(architecture)?.clone())))
    }

    fn strict(&self, _: &dyn Architecture) -> Result<Box<dyn StrictMethod>, OtherPlatformError> {
        Ok(Box::new(PtxStrict))
    }

    fn tools(&self, _: &dyn Architecture) -> Result<Box<dyn ToolMethod>, OtherPlatformError> {
        Ok(Box::new(PtxTools))
    }

    fn hardening(
        &self,
        _: &dyn Architecture,
    ) -> Result<Box<dyn HardeningMethod>, OtherPlatformError> {
        Ok(Box::new(PtxHardening))
    }
}

/// The instruction set of a target of this platform.
fn ptx_of(architecture: &dyn Architecture) -> Result<&Ptx, OtherPlatformError> {
    let other = || OtherPlatformError { target: architecture.target().to_owned() };
    architecture.as_any().downcast_ref::<Ptx>().ok_or_else(other)
}

/// Loads PTX modules and their sources.
pub(crate) struct PtxLoader<D> {
    /// The GPU.
    pub gpu: D,
    ptx: Ptx,
    /// Set when the first source is compiled.
    compiler: Option<Compiler>,
    /// The loaded code.
    loaded: Vec<(Code, ModuleId)>,
}

fn path(code: &Code) -> &Path {
    match code {
        Code::Source { path, .. } | Code::Object { path } => path,
    }
}

impl<D: PtxDevice> PtxLoader<D> {
    /// A loader without code for a GPU. Sources are compiled for `ptx`.
    pub fn new(gpu: D, ptx: Ptx) -> Self {
        PtxLoader { gpu, ptx, compiler: None, loaded: Vec::new() }
    }

    fn find(&self, code: &Code) -> Option<ModuleId> {
        self.loaded.iter().find(|(loaded, _)| loaded == code).map(|(_, id)| *id)
    }

    fn compile(&mut self, path: &Path, options: &[String]) -> Result<Vec<u8>, PrepareError> {
        let compiler = match self.compiler.take() {
            Some(compiler) => compiler,
            None => Compiler::find()?,
        };
        Ok(self.compiler.insert(compiler).compile_ptx(path, options, &self.ptx)?)
    }

    /// The parameters of a launch, laid out as in the kernel's parameter space, and the bytes of dynamic shared
    /// memory, which begins at the address `first_dynamic`.
    fn arguments(
        &self,
        first_dynamic: u64,
        slots: &[Slot],
        launch: &Launch,
        addresses: &Addresses,
    ) -> Result<(Vec<u8>, u32), String> {
        let (given, expected) = (launch.arguments.len(), slots.len());
        if given != expected {
            return Err(format!(
                "the kernel has {expected} parameters, {given} arguments are given"
            ));
        }
        let (mut kernarg, mut dynamic) = (Vec::new(), launch.local_memory);
        for (number, (argument, slot)) in launch.arguments.iter().zip(slots).enumerate() {
            let Slot::Memory { offset, bytes } = *slot else {
                return Err(format!(
                    "parameter {number} is in a register, which PTX kernels do not have"
                ));
            };
            let value = match argument {
                Argument::Buffer(buffer) => addresses.buffers()[*buffer].0.to_le_bytes().to_vec(),
                Argument::Pointer(pointer) => {
                    addresses.pointers()[*pointer].0.to_le_bytes().to_vec()
                }
                Argument::Null => 0u64.to_le_bytes().to_vec(),
                Argument::Value(value) => addresses.value(value),
                Argument::LocalMemory(size) => {
                    let start = first_dynamic + u64::from(dynamic);
                    dynamic = size
                        .checked_next_multiple_of(DYNAMIC_ALIGNMENT)
                        .and_then(|size| dynamic.checked_add(size))
                        .ok_or("more than 4 GiB of local memory")?;
                    start.to_le_bytes().to_vec()
                }
            };
            let found = value.len() as u64;
            if found != bytes {
                return Err(format!(
                    "argument {number} has {found} bytes, the parameter has {bytes}"
                ));
            }
            kernarg.resize(offset as usize, 0);
            kernarg.extend(value);
        }
        Ok((kernarg, dynamic))
    }
}

impl<D: PtxDevice> ProgramLoader for PtxLoader<D> {
    fn load(&mut self, code: &Code) -> Result<(), PrepareError> {
        if self.find(code).is_some() {
            return Ok(());
        }
        let failed = |reason: String| PrepareError::Load {
            path: path(code).to_owned(),
            reason: DeviceError::Load(reason),
        };
        let bytes = match code {
            Code::Source { path, options } => self.compile(path, options)?,
            Code::Object { path } => flipwave_host::input::read(path, flipwave_host::input::BINARY)
                .map_err(|reason| failed(reason.to_string()))?,
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| failed("not a PTX module: its text is not UTF-8".to_owned()))?;
        let module = flipwave_ptx::parse(&text).map_err(|error| failed(error.to_string()))?;
        let id = self
            .gpu
            .load(&module)
            .map_err(|reason| PrepareError::Load { path: path(code).to_owned(), reason })?;
        self.loaded.push((code.clone(), id));
        Ok(())
    }

    fn dispatch(
        &self,
        index: usize,
        launch: &Launch,
        addresses: &Addresses,
    ) -> Result<Dispatch, PrepareError> {
        let missing = || DeviceError::Internal(format!("launch {index}: its code is not loaded"));
        let module = self.find(&launch.code).ok_or_else(missing)?;
        let code = self.gpu.code(module).ok_or_else(missing)?;
        let mut kernels = code.kernels();
        let kernel = kernels.find(|kernel| *kernel.name == *launch.kernel).ok_or_else(|| {
            PrepareError::UnknownKernel {
                path: path(&launch.code).to_owned(),
                wanted: launch.kernel.clone(),
                present: code.kernels().map(|kernel| kernel.name.to_string()).collect(),
            }
        })?;
        let first_dynamic = self.gpu.dynamic_shared(module, &kernel.name)?;
        let laid_out = self.arguments(first_dynamic, &kernel.parameters, launch, addresses);
        let (kernarg, dynamic_lds) = laid_out
            .map_err(|reason| PrepareError::Arguments { launch: index, reason: reason.into() })?;
        Ok(Dispatch {
            module,
            kernel: kernel.name.to_string(),
            grid: launch.grid,
            workgroup: launch.workgroup,
            kernarg,
            dynamic_lds,
            instruction_limit: launch.instruction_limit,
            queued: None,
            is_cooperative: false,
        })
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.gpu.allocate(bytes)
    }

    fn write(&mut self, address: Address, content: &[u8]) -> Result<(), DeviceError> {
        self.gpu.write(address, content)
    }

    fn create_heap(&mut self, _: Option<u64>) -> Result<(), PrepareError> {
        Ok(())
    }

    fn compiler(&self) -> Option<String> {
        self.compiler.as_ref().map(|compiler| compiler.version().to_owned())
    }
}

impl LoadedMachine for PtxLoader<PtxGpu> {
    fn into_simulator(self: Box<Self>) -> Simulator {
        Simulator::new(self.gpu)
    }
}
