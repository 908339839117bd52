//! A program with known results, to be run on the embedded GPU.

use flipwave_device::ArgumentValue;
use flipwave_sim::{Compiling, Policy};
use flipwave_tests::{Form, Machine, TestProgram, assemble_text, device_c, gpu_mut};
use std::path::Path;

/// Instruction limit of a program.
const INSTRUCTION_LIMIT: u64 = 50_000_000;

/// A C source with its results on the host.
pub struct Case {
    /// Name for messages.
    pub name: String,
    /// The source.
    pub source: String,
    /// Compiler options for the device only.
    pub options: Vec<String>,
    /// Kernels to launch, in order.
    pub kernels: Vec<String>,
    /// Total number of lanes.
    pub lanes: u32,
    /// Lanes of a workgroup.
    pub workgroup: u32,
    /// Arguments of each kernel.
    pub buffers: Vec<Buffer>,
    /// Expected content of the outputs, in order.
    pub expected: Vec<Vec<u8>>,
}

/// An argument.
pub enum Buffer {
    /// An input, or a buffer that is not compared.
    Input(Vec<u8>),
    /// An output, initially zero.
    Output(usize),
}

impl Case {
    /// Compiles the program for a machine.
    pub fn compile(&self, machine: Machine, level: &str, form: Form) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("program.c");
        std::fs::write(&source, &self.source).expect("the source written");
        let options: Vec<&str> =
            [level].into_iter().chain(self.options.iter().map(String::as_str)).collect();
        device_c(machine, &source, &options, form)
    }

    /// Runs a code object of the program, with at most `limit` wave instructions per kernel. Returns the
    /// number of executed instructions.
    ///
    /// # Errors
    /// If the device's results differ from the host's, or the program faults.
    fn check(&self, code_object: &[u8], limit: u64, policy: Policy) -> Result<u64, String> {
        let mut program = TestProgram::new(code_object);
        let arguments: Vec<ArgumentValue> = self
            .buffers
            .iter()
            .map(|buffer| match buffer {
                Buffer::Input(bytes) => program.input(bytes),
                Buffer::Output(bytes) => program.output(&vec![0u8; *bytes]),
            })
            .collect();
        for kernel in &self.kernels {
            program.launch(kernel, [self.lanes, 1, 1], [self.workgroup, 1, 1], &arguments);
        }
        let mut workload = program.workload();
        gpu_mut(&mut workload.device).set_policy(policy);
        for dispatch in &mut workload.program.dispatches {
            dispatch.instruction_limit = limit;
        }
        let golden = workload.golden().map_err(|error| error.to_string())?;
        for (output, (found, expected)) in golden.outputs.iter().zip(&self.expected).enumerate() {
            let words = |bytes: &[u8]| -> Vec<u64> {
                let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes);
                bytes.chunks(8).map(|bytes| word(bytes).expect("whole words")).collect()
            };
            let (found, expected) = (words(&found.bytes()), words(expected));
            assert_eq!(found.len(), expected.len(), "output {output} of {}", self.name);
            if let Some(at) = (0..found.len()).find(|&at| found[at] != expected[at]) {
                return Err(format!(
                    "output {output}, word {at} ({} per lane): {:#x}, on the host {:#x}",
                    found.len() / self.lanes as usize,
                    found[at],
                    expected[at]
                ));
            }
        }
        Ok(golden.statistics.iter().map(|dispatch| dispatch.wave_instructions).sum())
    }

    /// Compiles the program for a machine at a level and runs it.
    ///
    /// # Errors
    /// If the device's results differ from the host's, or the program faults. The message names the program
    /// and the folder that keeps its source and code object.
    pub fn check_at(&self, machine: Machine, level: &str) -> Result<(), String> {
        self.check_in(machine, level, &[Policy::default().compiling])
    }

    /// Like [`Case::check_at`], once for each compilation policy.
    ///
    /// # Errors
    /// See [`Case::check_at`]./
    pub fn check_in(
        &self,
        machine: Machine,
        level: &str,
        tiers: &[Compiling],
    ) -> Result<(), String> {
        let code_object = self.compile(machine, level, Form::CodeObject);
        for &compiling in tiers {
            let policy = Policy { compiling, ..Policy::default() };
            self.check(&code_object, INSTRUCTION_LIMIT, policy).map_err(|error| {
                let name = format!("{} {machine}", self.name);
                let name = name.replace(|c: char| !c.is_alphanumeric(), "_");
                let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name + level);
                std::fs::write(kept.with_extension("c"), &self.source).expect("the source kept");
                std::fs::write(kept.with_extension("co"), &code_object)
                    .expect("the code object kept");
                let (name, kept) = (&self.name, kept.display());
                format!(
                    "{name} {level} on {machine} ({compiling:?}): {error}; see {kept}.c and .co"
                )
            })?;
        }
        Ok(())
    }

    /// Compiles the program to assembly.
    pub fn assembly(&self, machine: Machine, level: &str) -> String {
        String::from_utf8(self.compile(machine, level, Form::Assembly)).expect("a text")
    }

    /// Runs the program from assembly, with at most `limit` wave instructions. Returns the number of executed
    /// instructions.
    ///
    /// # Errors
    /// See [`Case::check_at`]./
    pub fn check_assembly(&self, machine: Machine, text: &str, limit: u64) -> Result<u64, String> {
        self.check(&assemble_text(machine, text), limit, Policy::default())
    }
}
