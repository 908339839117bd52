//! The simulated GPU for PTX as a platform of campaigns, which compiles OpenCL C with clang and libclc.

use flipwave_arch::Architecture;
use flipwave_campaigns::{
    Addresses, Argument, Code, Launch, LoadedMachine, Platform, PrepareError, ProgramLoader,
};
use flipwave_device::{Address, DeviceError, Dispatch, ModuleId};
use flipwave_machine::{Machine, Simulator};
use flipwave_ptx::{Ptx, Slot};
use flipwave_ptx_sim::PtxGpu;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The platform.
pub struct PtxPlatform;

impl Platform for PtxPlatform {
    fn architecture(&self, target: &str) -> Option<Arc<dyn Architecture>> {
        Ptx::new(target).map(|ptx| Arc::new(ptx) as Arc<dyn Architecture>)
    }

    fn targets(&self) -> Vec<String> {
        vec!["sm_80".to_owned()]
    }

    fn machine(
        &self,
        architecture: &dyn Architecture,
    ) -> Result<Box<dyn LoadedMachine>, PrepareError> {
        let ptx = architecture.as_any().downcast_ref::<Ptx>().expect("PTX");
        Ok(Box::new(Loader { gpu: PtxGpu::new(ptx.clone()), files: Vec::new() }))
    }
}

struct Loader {
    gpu: PtxGpu,
    /// Files of the loaded modules, in order.
    files: Vec<PathBuf>,
}

/// Compiles OpenCL C to PTX.
pub fn compile(source: &Path, options: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx");
    let mut command = Command::new("clang-22");
    command.args(["-x", "cl", "-Xclang", "-finclude-default-header", "-cl-std=CL2.0"]);
    command.args(["--target=nvptx64-nvidia-nvcl", "-march=sm_80", "-ffp-contract=off", "-O2"]);
    command.args(["-Xclang", "-target-feature", "-Xclang", "+ptx78", "-Wno-linker-warnings"]);
    let library = "/usr/lib/clc/nvptx64--nvidiacl.bc";
    command.args(["-Xclang", "-mlink-builtin-bitcode", "-Xclang", library]);
    command.arg("-include").arg(folder.join("math.h"));
    command.args(options).args(["-S", "-o", "-"]).arg(source);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {messages}");
    String::from_utf8(output.stdout).expect("text")
}

fn path(code: &Code) -> &Path {
    match code {
        Code::Source { path, .. } | Code::Object { path } => path,
    }
}

impl ProgramLoader for Loader {
    fn load(&mut self, code: &Code) -> Result<(), PrepareError> {
        let path = path(code).to_owned();
        if self.files.contains(&path) {
            return Ok(());
        }
        let options = match code {
            Code::Source { options, .. } => options.iter().map(String::as_str).collect(),
            Code::Object { .. } => Vec::new(),
        };
        let failed = |reason| PrepareError::Load { path: path.clone(), reason };
        let is_ptx = path.extension().is_some_and(|end| end == "ptx");
        let text = if is_ptx {
            std::fs::read_to_string(&path).expect("a module")
        } else {
            compile(&path, &options)
        };
        let module = flipwave_ptx::parse(&text)
            .map_err(|error| failed(DeviceError::Load(error.to_string())))?;
        self.gpu.load(&module).map_err(failed)?;
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
        let module = ModuleId(module as u32);
        let program = self.gpu.program(module).expect("a loaded module");
        let unknown = || PrepareError::UnknownKernel {
            path: file.to_owned(),
            wanted: launch.kernel.clone(),
            present: program.code.kernels().map(|kernel| kernel.name.to_string()).collect(),
        };
        let kernel = program.code.function(&launch.kernel).ok_or_else(unknown)?;
        let invalid =
            |reason: &str| PrepareError::Arguments { launch: index, reason: reason.into() };
        if kernel.parameters.len() != launch.arguments.len() {
            return Err(invalid("another number of arguments than the kernel has"));
        }
        let (mut kernarg, mut dynamic) = (Vec::new(), 0);
        for (argument, slot) in launch.arguments.iter().zip(&kernel.parameters) {
            let Slot::Memory { offset, bytes } = *slot else { return Err(invalid("a register")) };
            let value = match argument {
                Argument::Buffer(buffer) => addresses.buffers()[*buffer].0.to_le_bytes().to_vec(),
                Argument::Value(value) => addresses.value(value),
                Argument::LocalMemory(size) => {
                    let start = program.dynamic_shared() + u64::from(dynamic);
                    dynamic += size.next_multiple_of(16);
                    start.to_le_bytes().to_vec()
                }
                _ => return Err(invalid("expected a buffer or a value")),
            };
            if value.len() as u64 != bytes {
                return Err(invalid("an argument of another size than the parameter"));
            }
            kernarg.resize(offset as usize, 0);
            kernarg.extend(value);
        }
        Ok(Dispatch {
            module,
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            workgroup: launch.workgroup,
            kernarg,
            dynamic_lds: dynamic,
            instruction_limit: launch.instruction_limit,
            queued: None,
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
        None
    }
}

impl LoadedMachine for Loader {
    fn into_simulator(self: Box<Self>) -> Simulator {
        Simulator::new(self.gpu)
    }
}
