//! Programs assembled from buffers and launches on the embedded GPU.

use crate::{Element, Machine, Once, Overwrites, scribbled, to_bytes};
use flipwave_campaigns::Compiler;
use flipwave_codeobj::{CodeObject, Kernel};
use flipwave_device::{Address, ArgumentValue, Device, Dim3, Dispatch, ModuleId, layout};
use flipwave_injector::{Buffer, Golden, Output, Site, SiteError, Workload};
use flipwave_injector_amdgpu::golden_strict;
use flipwave_isa::Target;
use flipwave_machine::Simulator;
use flipwave_sim::strict::{StrictOptions, Violation};
use flipwave_sim::{Amdgpu, EmbeddedGpu};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Instruction limit of fault-free launches.
const INSTRUCTION_LIMIT: u64 = 1_000_000_000;

/// The default target.
pub fn gfx90a() -> Target {
    "gfx90a".parse().expect("a target")
}

/// Compiles a file of the folder `kernels` for gfx90a, as campaigns do.
pub fn compile(file: &str, options: &[&str]) -> Vec<u8> {
    compile_file(&kernel_file(file), options)
}

/// Compiles a source file for gfx90a, as campaigns do.
pub fn compile_file(source: &Path, options: &[&str]) -> Vec<u8> {
    compile_to(source, options, &gfx90a())
}

/// Compiles a file of the folder `kernels` for a machine.
pub fn compile_for(machine: Machine, file: &str, options: &[&str]) -> Vec<u8> {
    compile_at(machine, &kernel_file(file), options)
}

/// Compiles a source file for a machine.
pub fn compile_at(machine: Machine, source: &Path, options: &[&str]) -> Vec<u8> {
    compile_to(source, &[options, machine.options()].concat(), &machine.target())
}

fn kernel_file(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(file)
}

fn compile_to(source: &Path, options: &[&str], target: &Target) -> Vec<u8> {
    // The compiler also has a cache, but preprocesses the source each time to compute the key.
    static COMPILED: Once<(PathBuf, Vec<String>, String), Vec<u8>> = Once::new();
    let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
    COMPILED.get((source.to_owned(), options.clone(), target.to_string()), || {
        static COMPILER: OnceLock<Compiler> = OnceLock::new();
        let find = || Compiler::find().unwrap_or_else(|error| panic!("{error}"));
        COMPILER
            .get_or_init(find)
            .compile(source, &options, target)
            .unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The fault site with a valid text.
pub fn site(text: &str) -> Site {
    Site::parse(text, &Amdgpu::new(gfx90a())).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The error of an invalid fault site.
pub fn site_error(text: &str) -> SiteError {
    Site::parse(text, &Amdgpu::new(gfx90a())).expect_err(text)
}

/// The embedded GPU that a workload runs on.
pub fn gpu(device: &Simulator) -> &EmbeddedGpu {
    device.downcast().expect("the embedded GPU")
}

/// The embedded GPU that a workload runs on.
pub fn gpu_mut(device: &mut Simulator) -> &mut EmbeddedGpu {
    device.downcast_mut().expect("the embedded GPU")
}

/// Runs a workload on the strict level, and asserts that it violates no rule.
pub fn clean(workload: &Workload) -> Golden {
    let (golden, violations) =
        golden_strict(workload, StrictOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let reports: Vec<String> = violations.iter().map(Violation::to_string).collect();
    assert!(reports.is_empty(), "{} violations:\n{}", reports.len(), reports.join("\n"));
    golden
}

/// A scalar argument.
pub fn scalar<T: Element>(value: T) -> ArgumentValue {
    ArgumentValue::Bytes(to_bytes(&[value]))
}

/// An additional check of a program.
type Examine = Box<dyn Fn(&Workload)>;

/// A code object with the buffers and launches of one program.
pub struct TestProgram {
    kernels: Vec<Kernel>,
    module: ModuleId,
    workload: Workload,
    code_object: Vec<u8>,
    is_strict: bool,
    is_scribbled: bool,
    examine: Option<Examine>,
}

impl TestProgram {
    /// A program of `code_object` without buffers and launches.
    pub fn new(code_object: &[u8]) -> TestProgram {
        let object = CodeObject::parse(code_object).expect("a code object");
        let mut device = EmbeddedGpu::new(object.target().clone()).expect("the embedded GPU");
        let module = device.load(&object).expect("a code object that loads");
        let workload = Workload {
            device: Simulator::new(device),
            program: Default::default(),
            cancellation: Default::default(),
        };
        TestProgram {
            kernels: object.kernels().to_vec(),
            module,
            workload,
            code_object: code_object.to_vec(),
            is_strict: false,
            is_scribbled: false,
            examine: None,
        }
    }

    /// Also runs the program on the strict level whenever it is run.
    pub fn strictly(self) -> TestProgram {
        TestProgram { is_strict: true, ..self }
    }

    /// Also runs the program with garbage in all dead registers whenever it is run.
    pub fn scribbled(self) -> TestProgram {
        TestProgram { is_scribbled: true, ..self }
    }

    /// Also calls `examine` with the program whenever it is run.
    pub fn examined(self, examine: impl Fn(&Workload) + 'static) -> TestProgram {
        TestProgram { examine: Some(Box::new(examine)), ..self }
    }

    /// Wave size of the kernels.
    pub fn lanes(&self) -> usize {
        let sizes = self.kernels.iter().map(|kernel| kernel.descriptor.wavefront_size() as usize);
        sizes.max().unwrap_or(64)
    }

    /// Adds a buffer that the program reads.
    pub fn input<T: Element>(&mut self, values: &[T]) -> ArgumentValue {
        ArgumentValue::Buffer(self.allocate(&to_bytes(values)))
    }

    /// Adds an output buffer with initial `values`.
    pub fn output<T: Element>(&mut self, values: &[T]) -> ArgumentValue {
        let bytes = to_bytes(values);
        let address = self.allocate(&bytes);
        let name = format!("output {}", self.workload.program.outputs.len());
        self.workload.program.outputs.push(Buffer { name, address, bytes: bytes.len() });
        ArgumentValue::Buffer(address)
    }

    fn allocate(&mut self, bytes: &[u8]) -> Address {
        let device = &mut self.workload.device;
        let address = device.allocate(bytes.len() as u64).expect("device memory");
        device.write(address, bytes).expect("the memory just allocated");
        address
    }

    /// Adds a launch.
    pub fn launch(
        &mut self,
        kernel: &str,
        grid: Dim3,
        workgroup: Dim3,
        arguments: &[ArgumentValue],
    ) {
        let found = self.kernels.iter().find(|found| *found.name == *kernel).expect("the kernel");
        let layout = layout(found, arguments, grid, workgroup)
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
        self.workload.program.dispatches.push(Dispatch {
            module: self.module,
            kernel: kernel.to_owned(),
            grid,
            workgroup,
            kernarg: layout.kernarg,
            dynamic_lds: layout.dynamic_lds,
            instruction_limit: INSTRUCTION_LIMIT,
            queued: None,
            is_cooperative: false,
        });
    }

    /// The program, ready to run.
    pub fn workload(&self) -> Workload {
        self.workload.clone()
    }

    /// The code object.
    pub fn code_object(&self) -> &[u8] {
        &self.code_object
    }

    /// Runs the program without a fault. Returns the content of each output.
    pub fn outputs(&self) -> Vec<Vec<u8>> {
        let golden = self.workload.golden().unwrap_or_else(|error| panic!("{error}"));
        if self.is_strict {
            assert_eq!(clean(&self.workload), golden, "the strict level changes results");
        }
        if self.is_scribbled {
            let outputs = scribbled(&self.workload, &self.code_object, Overwrites::Dead);
            assert_eq!(
                outputs.as_ref(),
                Ok(&contents(&golden.outputs)),
                "the value of a dead register matters"
            );
        }
        if let Some(examine) = &self.examine {
            examine(&self.workload);
        }
        contents(&golden.outputs)
    }
}

/// Content of outputs.
pub fn contents(outputs: &[Output]) -> Vec<Vec<u8>> {
    outputs.iter().map(|output| output.bytes().into_owned()).collect()
}
