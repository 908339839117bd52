//! Loading of modules.

use crate::driver::{Driver, Function, LoadedModule, report};
use crate::handles::lock;
use crate::launch::LoadedCode;
use crate::memory::Kind;
use crate::module::{Image, ImageError, module_of};
use crate::status::Status;
use flipwave_device::{Address, DeviceError, ModuleId};
use flipwave_machine::Machine;
use flipwave_ptx_sim::PtxGpu;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex};

impl Driver {
    /// Loads a module.
    ///
    /// # Errors
    /// [`Status`]; the reason is printed.
    pub fn load(&self, context: usize, device: usize, image: &[u8]) -> Result<usize, Status> {
        let found = &self.devices[device];
        let image = Image::read(image, found.number()).map_err(|error| {
            report(&error);
            match error {
                ImageError::MachineCode | ImageError::FatBinary(_) => Status::NO_BINARY_FOR_GPU,
                ImageError::Text(_) => Status::INVALID_PTX,
            }
        })?;
        self.load_image(context, device, &image).map_err(|error| {
            report(&error);
            Status::from(&error)
        })
    }

    fn load_image(
        &self,
        context: usize,
        device: usize,
        image: &Image,
    ) -> Result<usize, DeviceError> {
        let mut placed = BTreeMap::new();
        if !image.managed.is_empty() {
            let code = flipwave_ptx::resolve(&image.module);
            let code = code.map_err(|error| DeviceError::Load(error.to_string()))?;
            for variable in code
                .variables
                .iter()
                .filter(|found| image.managed.contains(&found.name.to_string()))
            {
                let bytes = variable.bytes.max(1);
                let out_of_memory =
                    |_| DeviceError::OutOfMemory { bytes, reason: "no host memory".into() };
                let added = self.allocations.add_host(device, context, bytes, Kind::Managed);
                let added = added.map_err(out_of_memory)?;
                self.map_host(&added);
                placed.insert(variable.name.to_string(), Address(added.start));
            }
        }
        let mut gpu = self.devices[device].gpu();
        let id = gpu.load_with_variables(&image.module, &placed)?;
        let variables = gpu.program(id).into_iter().flat_map(|program| program.variables());
        let text = image.text_with(variables.map(|(name, address, _)| (name, address)));
        drop(gpu);
        let code = Arc::new(LoadedCode { text });
        let managed = placed.values().map(|address| address.0).collect();
        let functions = Mutex::default();
        Ok(self.modules.add(LoadedModule { device, context, id, code, functions, managed }))
    }

    /// Frees the memory of a module and forgets its functions.
    pub fn unload(&self, handle: usize) -> bool {
        let Some(module) = self.modules.get(handle) else { return false };
        // Work that uses the module.
        self.queue.wait(self.queue.last());
        self.print_output(&self.devices[module.device]);
        self.modules.remove(handle);
        for function in lock(&module.functions).values() {
            self.functions.remove(*function);
        }
        let mut launcher = lock(&self.launcher);
        let mut gpu = self.devices[module.device].gpu();
        launcher.unload(module.device, &mut gpu, module.id);
        drop(launcher);
        let addresses: Vec<Address> = gpu.program(module.id).map_or(Vec::new(), |program| {
            program.variables().map(|(_, address, _)| address).collect()
        });
        for address in addresses {
            // Managed variables are host memory.
            let _ = gpu.free(address);
        }
        drop(gpu);
        for start in &module.managed {
            self.free_host(*start);
        }
        true
    }

    /// The function of a module with a name.
    pub fn function(&self, module_handle: usize, name: &str) -> Option<usize> {
        let module = self.modules.get(module_handle)?;
        if let Some(known) = lock(&module.functions).get(name) {
            return Some(*known);
        }
        let gpu = self.devices[module.device].gpu();
        let program = gpu.program(module.id)?;
        let kernel = program.code.kernels().find(|kernel| *kernel.name == *name)?;
        let parameters = kernel.parameters.iter().map(|slot| match slot {
            flipwave_ptx::Slot::Memory { offset, bytes } => (*offset, *bytes),
            flipwave_ptx::Slot::Register(_) => (0, 0),
        });
        let limits = kernel.directives.iter();
        let limits = limits.filter(|(name, _)| matches!(&**name, "maxntid" | "reqntid"));
        let most_threads = limits.map(|(_, values)| values.iter().product()).min();
        let function = Function {
            module_handle,
            name: name.to_owned(),
            parameters: parameters.collect(),
            shared_bytes: program.shared_bytes(),
            local_bytes: kernel.frame_bytes,
            most_threads: most_threads.map_or(1024, |most: u64| most.min(1024)),
            registers: u32::from(kernel.words.end - kernel.words.start).min(255),
            most_dynamic_bytes: AtomicU32::new(0),
            module: Arc::clone(&module),
        };
        drop(gpu);
        let handle = self.functions.add(function);
        Some(*lock(&module.functions).entry(name.to_owned()).or_insert(handle))
    }
}

/// Loads code of another process, whose variables are at the same addresses as there. Their memory and content
/// are up to the caller.
///
/// # Errors
/// [`DeviceError::Load`].
pub fn load_again(gpu: &mut PtxGpu, text: &str) -> Result<ModuleId, DeviceError> {
    let (module, variables) = module_of(text)?;
    gpu.load_with_variables(&module, &variables)
}
