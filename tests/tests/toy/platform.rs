//! The GPU as a platform of campaigns. Its code objects are files of assembly.

use super::isa::{Inst, TARGET, Toy};
use super::machine::{Code, ToyGpu};
use flipwave_arch::Architecture;
use flipwave_campaigns::{
    Addresses, Argument, Launch, LoadedMachine, Platform, PrepareError, ProgramLoader,
};
use flipwave_device::{Address, DeviceError, Dispatch, ModuleId};
use flipwave_machine::{Machine, Simulator};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The platform.
pub struct ToyPlatform;

impl Platform for ToyPlatform {
    fn architecture(&self, target: &str) -> Option<Arc<dyn Architecture>> {
        (target == TARGET).then(|| Arc::new(Toy) as Arc<dyn Architecture>)
    }

    fn targets(&self) -> Vec<String> {
        vec![TARGET.to_owned()]
    }

    fn machine(&self, _: &dyn Architecture) -> Result<Box<dyn LoadedMachine>, PrepareError> {
        Ok(Box::new(Loader { gpu: ToyGpu::new(), files: Vec::new() }))
    }
}

struct Loader {
    gpu: ToyGpu,
    /// Files of the loaded modules, in order.
    files: Vec<PathBuf>,
}

/// The path of a launch's code.
fn path(code: &flipwave_campaigns::Code) -> &Path {
    match code {
        flipwave_campaigns::Code::Source { path, .. } => path,
        flipwave_campaigns::Code::Object { path } => path,
    }
}

/// Assembles lines of instructions; `name:` begins a kernel.
fn assemble(text: &str) -> Result<Code, String> {
    let mut code = Code::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_suffix(':') {
            Some(kernel) => {
                code.kernels.insert(kernel.to_owned(), 4 * code.dwords.len() as u64);
            }
            None => {
                let word = Inst::assemble(line).ok_or_else(|| format!("invalid line `{line}`"))?;
                code.dwords.push(word);
            }
        }
    }
    Ok(code)
}

impl ProgramLoader for Loader {
    fn load(&mut self, code: &flipwave_campaigns::Code) -> Result<(), PrepareError> {
        let path = path(code).to_owned();
        if self.files.contains(&path) {
            return Ok(());
        }
        let load = |reason: String| PrepareError::Load {
            path: path.clone(),
            reason: DeviceError::Load(reason),
        };
        let text = std::fs::read_to_string(&path).map_err(|error| load(error.to_string()))?;
        self.gpu.modules.push(Arc::new(assemble(&text).map_err(load)?));
        self.files.push(path);
        Ok(())
    }

    fn dispatch(
        &self,
        index: usize,
        launch: &Launch,
        addresses: &Addresses,
    ) -> Result<Dispatch, PrepareError> {
        let file = path(&launch.code);
        let module = self.files.iter().position(|known| known == file).unwrap_or(0);
        let mut kernarg = Vec::new();
        for argument in &launch.arguments {
            match argument {
                Argument::Buffer(buffer) => {
                    kernarg.extend((addresses.buffers()[*buffer].0 as u32).to_le_bytes());
                }
                Argument::Value(word) if word.size() == 4 => kernarg.extend(addresses.value(word)),
                _ => {
                    let reason = "expected a buffer or a word".into();
                    return Err(PrepareError::Arguments { launch: index, reason });
                }
            }
        }
        let kernels = &self.gpu.modules[module].kernels;
        if !kernels.contains_key(&launch.kernel) {
            let (path, wanted) = (file.to_owned(), launch.kernel.clone());
            let present = kernels.keys().cloned().collect();
            return Err(PrepareError::UnknownKernel { path, wanted, present });
        }
        Ok(Dispatch {
            module: ModuleId(module as u32),
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            workgroup: launch.workgroup,
            kernarg,
            dynamic_lds: 0,
            instruction_limit: launch.instruction_limit,
            queued: None,
            is_cooperative: false,
        })
    }

    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        Ok(self.gpu.memory.allocate(bytes))
    }

    fn write(&mut self, address: Address, content: &[u8]) -> Result<(), DeviceError> {
        self.gpu.write(address, content)
    }

    fn create_heap(&mut self, _: Option<u64>) -> Result<(), PrepareError> {
        Ok(())
    }

    fn compiler(&self) -> Option<String> {
        None
    }
}

impl LoadedMachine for Loader {
    fn into_simulator(self: Box<Self>) -> Simulator {
        Simulator::new(self.gpu)
    }
}
