//! AMD GPUs.

use super::amdgpu_emulation::AmdgpuEmulation;
use super::amdgpu_hardening::AmdgpuHardening;
use super::amdgpu_hooks::AmdgpuHooks;
use super::amdgpu_strict::AmdgpuStrict;
use super::amdgpu_tools::AmdgpuTools;
use super::other_platform::OtherPlatformError;
use super::{
    Addresses, EmulationMethod, HardeningMethod, HookMethod, LoadedMachine, Platform,
    ProgramLoader, StrictMethod, ToolMethod,
};
use crate::file::kernels::{Argument, Code, Launch};
use crate::program::compile::Compiler;
use crate::program::error::PrepareError;
use crate::program::heap::{self, HeapUse, allocates, make_heap, may_allocate};
use crate::program::object_file::{ObjectFileError, read_code_object};
use flipwave_arch::Architecture;
use flipwave_codeobj::{CodeObject, Kernel};
use flipwave_device::{
    Address, ArgumentValue, Device, DeviceError, Dispatch, LaunchMemory, ModuleId,
    demangled_kernel, kernel_is_called, layout_with_memory,
};
use flipwave_host::output::printable;
use flipwave_isa::Target;
use flipwave_machine::Simulator;
use flipwave_sim::{Amdgpu, EmbeddedGpu};
use std::sync::Arc;

/// The embedded GPU with AMD's instruction sets.
pub(super) struct AmdgpuPlatform;

impl Platform for AmdgpuPlatform {
    fn architecture(&self, target: &str) -> Option<Arc<dyn Architecture>> {
        let target: Target = target.parse().ok()?;
        Some(Arc::new(Amdgpu::new(target)))
    }

    fn targets(&self) -> Vec<String> {
        Target::names().map(str::to_owned).collect()
    }

    fn machine(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn LoadedMachine>, PrepareError> {
        let other = || OtherPlatformError { target: architecture.target().to_owned() };
        let amdgpu = architecture.as_any().downcast_ref::<Amdgpu>().ok_or_else(other)?;
        let target = amdgpu.target();
        let device = EmbeddedGpu::new(target.clone())?;
        Ok(Box::new(AmdgpuLoader::new(device, target.clone())))
    }

    fn hooks(&self, _: &dyn Architecture) -> Result<Box<dyn HookMethod>, OtherPlatformError> {
        Ok(Box::new(AmdgpuHooks::default()))
    }

    fn emulation(
        &self,
        _: &dyn Architecture,
    ) -> Result<Box<dyn EmulationMethod>, OtherPlatformError> {
        Ok(Box::new(AmdgpuEmulation))
    }

    fn strict(&self, _: &dyn Architecture) -> Result<Box<dyn StrictMethod>, OtherPlatformError> {
        Ok(Box::new(AmdgpuStrict))
    }

    fn tools(&self, _: &dyn Architecture) -> Result<Box<dyn ToolMethod>, OtherPlatformError> {
        Ok(Box::new(AmdgpuTools))
    }

    fn hardening(
        &self,
        _: &dyn Architecture,
    ) -> Result<Box<dyn HardeningMethod>, OtherPlatformError> {
        Ok(Box::new(AmdgpuHardening::default()))
    }
}

/// Loads code objects and their sources to an AMD GPU.
pub(crate) struct AmdgpuLoader<D> {
    /// The GPU.
    pub device: D,
    /// Target that code is compiled for. The device's own target can have more features set.
    target: Target,
    /// Set when the first source is compiled.
    compiler: Option<Compiler>,
    loaded: Vec<Module>,
    /// Heap of device-side `malloc`; null until it is created.
    heap: Address,
}

/// A loaded code object.
struct Module {
    code: Code,
    object: CodeObject,
    id: ModuleId,
    heap: HeapUse,
}

impl<D: Device> AmdgpuLoader<D> {
    /// Wraps a GPU that has loaded nothing. Code is compiled for `target`.
    pub fn new(device: D, target: Target) -> AmdgpuLoader<D> {
        AmdgpuLoader { device, target, compiler: None, loaded: Vec::new(), heap: Address(0) }
    }

    fn find(&self, code: &Code) -> Option<&Module> {
        self.loaded.iter().find(|module| module.code == *code)
    }

    fn kernel(&self, launch: &Launch) -> Result<(&Module, &Kernel), PrepareError> {
        let module = self.find(&launch.code);
        let kernel = module.and_then(|module| {
            let exact = module.object.kernel(&launch.kernel);
            let is_called = |kernel: &&Kernel| kernel_is_called(&kernel.name, &launch.kernel);
            let mut called = module.object.kernels().iter().filter(is_called);
            // An ambiguous source name matches no kernel.
            let only = called.next().filter(|_| called.next().is_none());
            Some((module, exact.or(only)?))
        });
        kernel.ok_or_else(|| PrepareError::UnknownKernel {
            path: match &launch.code {
                Code::Source { path, .. } | Code::Object { path } => path.clone(),
            },
            wanted: launch.kernel.clone(),
            present: module
                .map_or(&[][..], |module| module.object.kernels())
                .iter()
                .map(|kernel| printable(&demangled_kernel(&kernel.name)).into_owned())
                .collect(),
        })
    }
}

impl<D: Device> ProgramLoader for AmdgpuLoader<D> {
    fn load(&mut self, code: &Code) -> Result<(), PrepareError> {
        if self.find(code).is_some() {
            return Ok(());
        }
        let target = &self.target;
        let (path, object, heap) = match code {
            Code::Source { path, options } => {
                let compiler = match self.compiler.take() {
                    Some(compiler) => compiler,
                    None => Compiler::find()?,
                };
                let compiler = self.compiler.insert(compiler);
                let failed = |reason| ObjectFileError::CodeObject { path: path.clone(), reason };
                let bytes = compiler.compile(path, options, target)?;
                let object = CodeObject::parse(&bytes).map_err(failed)?;
                if allocates(&object) {
                    let bytes = compiler.compile_with_heap(path, options, target)?;
                    (path, CodeObject::parse(&bytes).map_err(failed)?, HeapUse::Arena)
                } else {
                    (path, object, HeapUse::None)
                }
            }
            Code::Object { path } => {
                let object = read_code_object(path, Some(target))?;
                let allocates = may_allocate(&object);
                (path, object, if allocates { HeapUse::InitialSlabs } else { HeapUse::None })
            }
        };
        let id = self
            .device
            .load(&object)
            .map_err(|reason| PrepareError::Load { path: path.clone(), reason })?;
        self.loaded.push(Module { code: code.clone(), object, id, heap });
        Ok(())
    }

    fn dispatch(
        &self,
        index: usize,
        launch: &Launch,
        addresses: &Addresses,
    ) -> Result<Dispatch, PrepareError> {
        let (module, kernel) = self.kernel(launch)?;
        let heap = if module.heap == HeapUse::None { Address(0) } else { self.heap };
        let values: Vec<ArgumentValue> = launch
            .arguments
            .iter()
            .map(|argument| match argument {
                Argument::Buffer(buffer) => ArgumentValue::Buffer(addresses.buffers()[*buffer]),
                Argument::Null => ArgumentValue::Null,
                Argument::Pointer(pointer) => ArgumentValue::Buffer(addresses.pointers()[*pointer]),
                Argument::Value(image) => ArgumentValue::Bytes(addresses.value(image)),
                Argument::LocalMemory(bytes) => ArgumentValue::DynamicLds(*bytes),
            })
            .collect();
        let Launch { grid, workgroup, local_memory, .. } = *launch;
        let memory = LaunchMemory { dynamic_lds: local_memory, heap };
        let layout =
            layout_with_memory(kernel, &values, grid, workgroup, memory).map_err(|reason| {
                PrepareError::Arguments { launch: index, reason: Box::new(reason) }
            })?;
        Ok(Dispatch {
            module: module.id,
            kernel: kernel.name.to_string(),
            grid,
            workgroup,
            kernarg: layout.kernarg,
            dynamic_lds: layout.dynamic_lds,
            instruction_limit: launch.instruction_limit,
            queued: None,
            is_cooperative: false,
        })
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.device.allocate(bytes)
    }

    fn write(&mut self, address: Address, content: &[u8]) -> Result<(), DeviceError> {
        self.device.write(address, content)
    }

    fn create_heap(&mut self, bytes: Option<u64>) -> Result<(), PrepareError> {
        let uses = self.loaded.iter().map(|module| module.heap);
        if uses.clone().any(|heap| heap != HeapUse::None) {
            self.heap = make_heap(&mut self.device, bytes.unwrap_or(heap::DEFAULT_BYTES), uses)?;
        }
        Ok(())
    }

    fn compiler(&self) -> Option<String> {
        self.compiler.as_ref().map(|compiler| compiler.version().to_owned())
    }
}

impl LoadedMachine for AmdgpuLoader<EmbeddedGpu> {
    fn into_simulator(self: Box<Self>) -> Simulator {
        Simulator::new(self.device)
    }
}
