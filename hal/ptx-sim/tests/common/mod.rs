//! Kernels on the simulated GPU.

pub mod forms;
pub mod host;

use flipwave_arch::SourceLines as _;
use flipwave_device::{Address, Completion, Dispatch, FaultCause, ModuleId, Statistics};
use flipwave_jit::Compiling;
use flipwave_machine::{Machine, Progress, Unobserved};
use flipwave_ptx::{Ptx, parse};
use flipwave_ptx_sim::PtxGpu;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Path of a source file of the tests.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources").join(name)
}

/// Compiles CUDA to PTX for a target with clang-22. Panics if the compiler fails.
pub fn compile(source: &Path, target: &str, options: &[&str]) -> String {
    let mut command = Command::new("clang-22");
    command.args(["-x", "cuda", "-nocudainc", "-nocudalib", "--cuda-device-only"]);
    command.arg(format!("--cuda-gpu-arch={target}"));
    // The version of PTX; without a CUDA toolkit, clang would choose a too old one.
    command.args(["-Xclang", "-target-feature", "-Xclang", "+ptx78", "-ffp-contract=off"]);
    command.args(options).args(["-S", "-o", "-"]).arg(source);
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started ({error}): install LLVM 22"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {messages}");
    String::from_utf8(output.stdout).expect("text")
}

/// A GPU with one module.
pub struct Bench {
    pub gpu: PtxGpu,
    pub module: ModuleId,
}

impl Bench {
    /// Loads a module.
    pub fn new(text: &str) -> Bench {
        let module = parse(text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        let mut gpu = PtxGpu::new(Ptx::new("sm_80").expect("a target"));
        let module = gpu.load(&module).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        Bench { gpu, module }
    }

    /// Allocates a buffer with this content.
    pub fn buffer(&mut self, bytes: &[u8]) -> Address {
        let address = self.gpu.allocate(bytes.len() as u64).expect("memory");
        self.gpu.write(address, bytes).expect("memory");
        address
    }

    /// Reads a buffer.
    pub fn read(&self, address: Address, bytes: usize) -> Vec<u8> {
        let mut content = vec![0; bytes];
        self.gpu.read(address, &mut content).expect("memory");
        content
    }

    /// A dispatch of one-dimensional workgroups.
    pub fn dispatch(&self, kernel: &str, grid: u32, workgroup: u32, arguments: &[u8]) -> Dispatch {
        Dispatch {
            module: self.module,
            kernel: kernel.to_owned(),
            grid: [grid, 1, 1],
            workgroup: [workgroup, 1, 1],
            kernarg: arguments.to_vec(),
            dynamic_lds: 0,
            instruction_limit: 200_000,
            queued: None,
            is_cooperative: false,
        }
    }

    /// Executes a dispatch in the interpreter and as compiled code, which must be in the same state whenever
    /// both pause.
    pub fn complete(&mut self, dispatch: &Dispatch) -> Completion {
        let mut compiled = self.gpu.clone();
        self.gpu.set_compiling(Compiling::Never);
        compiled.set_compiling(Compiling::AtOnce);
        let begin =
            |gpu: &mut PtxGpu| gpu.begin(dispatch).unwrap_or_else(|error| panic!("{error}"));
        let mut executions = [begin(&mut self.gpu), begin(&mut compiled)];
        let mut until = 0;
        loop {
            until += 1 + until / 2;
            let [first, second] = &mut executions;
            let ends = [
                self.gpu.advance(first, &mut Unobserved, until),
                compiled.advance(second, &mut Unobserved, until),
            ];
            let [Ok(first_end), Ok(second_end)] = ends else { panic!("{ends:?}") };
            assert_eq!(first_end, second_end, "after {until} instructions");
            assert!(first.continues_like(second), "after {until} instructions");
            assert!(self.gpu.is_in_state_of(&compiled), "after {until} instructions");
            if let Progress::Ended(completion) = first_end {
                return completion;
            }
        }
    }

    /// Executes a dispatch that must complete.
    pub fn run(&mut self, dispatch: &Dispatch) -> Statistics {
        match self.complete(dispatch) {
            Completion::Completed(statistics) => statistics,
            Completion::Faulted(fault) => {
                let line =
                    self.gpu.program(self.module).map(|found| found.code.lookup(fault.place.pc));
                panic!("{fault} ({line:?})")
            }
        }
    }

    /// Executes a dispatch that must fault.
    pub fn fault(&mut self, dispatch: &Dispatch) -> FaultCause {
        match self.complete(dispatch) {
            Completion::Completed(_) => panic!("no fault"),
            Completion::Faulted(fault) => fault.cause,
        }
    }
}

/// Arguments of eight bytes each.
pub fn arguments(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Bytes of words.
pub fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Words in bytes.
pub fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
