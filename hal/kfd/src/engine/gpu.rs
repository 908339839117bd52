//! The GPUs of the compute engines: their devices, and the code that was loaded to them.

use super::host_waits::HostWaits;
use crate::loader::{LoadedObject, LoaderList, loaded_object_at};
use crate::machine::Machine;
use crate::map::GpuAddress;
use crate::memory::Change;
use crate::program_images::find_code_object;
use flipwave_codeobj::{CodeObject, Kernel};
use flipwave_device::{Address, Device, DeviceError, ModuleId};
use flipwave_isa::Pc;
use flipwave_sim::EmbeddedGpu;
use std::ops::Range;
use std::sync::Arc;

/// State shared by all compute engines. The engine that has the turn works with it.
pub struct Gpus {
    /// The GPU of node 1 comes first.
    gpus: Vec<Gpu>,
    /// Number of dispatches so far of kernels from code objects.
    pub dispatches: u32,
    pub host_waits: HostWaits,
}

/// A GPU, and the code of which kernels were dispatched.
pub struct Gpu {
    pub device: EmbeddedGpu,
    /// `true` while a kernel runs, also during the turns of other GPUs.
    pub is_busy: bool,
    code: Vec<LoadedCode>,
}

impl Gpus {
    pub fn new(devices: Vec<EmbeddedGpu>) -> Gpus {
        let gpus = devices.into_iter().map(Gpu::new).collect();
        Gpus { gpus, dispatches: 0, host_waits: HostWaits::default() }
    }

    /// The GPU of a node.
    pub fn at(&mut self, node: u32) -> &mut Gpu {
        &mut self.gpus[node as usize - 1]
    }

    pub fn device(&mut self, node: u32) -> &mut EmbeddedGpu {
        &mut self.at(node).device
    }

    /// Number of GPUs that run a kernel.
    pub fn busy(&self) -> usize {
        self.gpus.iter().filter(|gpu| gpu.is_busy).count()
    }

    /// Applies the changes of memory that were posted.
    pub fn apply_changes(&mut self, machine: &Machine) -> Result<(), DeviceError> {
        let mut result = Ok(());
        machine.apply_changes(|node, change| {
            if let Some(gpu) = self.gpus.get_mut(node as usize - 1) {
                result = std::mem::replace(&mut result, Ok(())).and(gpu.apply(change));
            }
        });
        result
    }
}

/// Code in the memory of a GPU.
pub struct LoadedCode {
    pub module: ModuleId,
    /// Addresses of the code.
    range: Range<u64>,
    /// Load bias of the code object.
    pub bias: u64,
    /// `None` for code of the runtime that has no code object.
    pub code_object: Option<Arc<CodeObject>>,
}

impl LoadedCode {
    /// The kernel whose code starts at an address.
    pub fn kernel_at(&self, entry: u64) -> Option<&Kernel> {
        let entry = Pc(entry.wrapping_sub(self.bias));
        let mut kernels = self.code_object.iter().flat_map(|object| object.kernels());
        kernels.find(|kernel| kernel.descriptor.entry == entry)
    }
}

impl Gpu {
    pub fn new(device: EmbeddedGpu) -> Gpu {
        Gpu { device, is_busy: false, code: Vec::new() }
    }

    /// Applies a change of the GPU's memory map.
    pub fn apply(&mut self, change: Change) -> Result<(), DeviceError> {
        match change {
            Change::Map { range, host } => {
                let range = Address(range.start)..Address(range.end);
                // SAFETY: the memory stays until this engine has applied the unmapping.
                unsafe { self.device.map_host(range, host) }
            }
            Change::Unmap(start) => {
                let Some(range) = self.device.allocation_around(Address(start)) else {
                    return Ok(());
                };
                let is_unmapped =
                    |code: &mut LoadedCode| range.contains(&Address(code.range.start));
                for code in self.code.extract_if(.., is_unmapped) {
                    self.device.forget(code.module)?;
                }
                self.device.unmap(Address(start))
            }
        }
    }

    /// The code around an address; loads it to the device on first use.
    pub fn code_at(
        &mut self,
        pc: u64,
        machine: &Machine,
        node: u32,
    ) -> Result<&LoadedCode, DeviceError> {
        let executable = machine.view(node).check_executable(GpuAddress(pc));
        executable.map_err(|_| DeviceError::NoCode { kernel: Address(pc) })?;
        let known = self.code.iter().position(|code| code.range.contains(&pc));
        let index = match known {
            Some(index) => index,
            None => {
                let code = self.load(pc, machine)?;
                self.code.push(code);
                self.code.len() - 1
            }
        };
        Ok(&self.code[index])
    }

    fn load(&mut self, pc: u64, machine: &Machine) -> Result<LoadedCode, DeviceError> {
        let list = machine.loader_list() as *const LoaderList;
        // SAFETY: the loader adds a code object before its kernels are dispatched. That other
        // threads may load code at the same time is a race that debuggers have with the list as
        // well.
        let loaded = unsafe { loaded_object_at(list, pc) };
        let found = if list.is_null() {
            self.code_object_of_program(pc)
        } else {
            loaded.and_then(|loaded| Some((loaded.bias, self.code_object(&loaded, pc)?)))
        };
        if let Some((bias, code_object)) = found {
            let module = self.device.adopt(&code_object, bias)?;
            let segments = code_object.segments();
            let first = segments.first().map_or(0, |segment| segment.address);
            let last = segments.last().map_or(0, |segment| segment.end());
            let range = bias.wrapping_add(first)..bias.wrapping_add(last);
            let code_object = Some(Arc::new(code_object));
            return Ok(LoadedCode { module, range, bias, code_object });
        }
        let allocation = self.device.allocation_around(Address(pc));
        let allocation = allocation.ok_or(DeviceError::NoCode { kernel: Address(pc) })?;
        let module = self.device.adopt_bare(allocation.clone())?;
        let range = allocation.start.0..allocation.end.0;
        Ok(LoadedCode { module, range, bias: 0, code_object: None })
    }

    /// The code object around an address: the original that was given to the loader, with all its
    /// sections, or, if that is not available any more, the loaded segments.
    fn code_object(&self, loaded: &LoadedObject, pc: u64) -> Option<CodeObject> {
        let is_valid =
            |original: &CodeObject| loaded.is_file() || self.has_code_of(original, loaded.bias);
        loaded.original(pc).filter(is_valid).or_else(|| {
            let end = self.device.allocation_around(Address(pc))?.end.0;
            let mut bytes = vec![0; usize::try_from(end.checked_sub(loaded.bias)?).ok()?];
            self.device.read(Address(loaded.bias), &mut bytes).ok()?;
            let segments = CodeObject::from_memory(bytes).ok()?;
            let is_inside = pc - loaded.bias < segments.span().end;
            is_inside.then_some(segments)
        })
    }

    /// The code object of a program without a loader of which a kernel starts at an address, and its
    /// load bias.
    fn code_object_of_program(&self, pc: u64) -> Option<(u64, CodeObject)> {
        let bias = |code_object: &CodeObject| {
            let kernels = code_object.kernels().iter();
            let mut biases = kernels.map(|kernel| pc.wrapping_sub(kernel.descriptor.entry.0));
            biases.find(|bias| self.has_code_of(code_object, *bias))
        };
        let code_object = find_code_object(|code_object| bias(code_object).is_some())?;
        Some((bias(&code_object)?, code_object))
    }

    /// Returns `true` if memory contains the code of a code object, loaded with a bias.
    fn has_code_of(&self, code_object: &CodeObject, bias: u64) -> bool {
        code_object.segments().iter().filter(|segment| segment.executable).all(|segment| {
            let span = segment.address..segment.end();
            let Ok(expected) = code_object.load_part_with(bias, span, |_| Some(0)) else {
                return false;
            };
            let mut bytes = vec![0; expected.len()];
            let address = Address(bias.wrapping_add(segment.address));
            self.device.read(address, &mut bytes).is_ok() && bytes == expected[..]
        })
    }
}
