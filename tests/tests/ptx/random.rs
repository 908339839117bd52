//! Random programs of integers and of floating-point numbers, compiled to PTX: each lane reports what the host computes.

use crate::programs::LEVELS;
use crate::programs::case::{Buffer, Case};
use crate::programs::{float, integer};
use flipwave_device::{Completion, Dispatch};
use flipwave_jit::Compiling;
use flipwave_machine::{Machine, Progress, Unobserved};
use flipwave_ptx::{Module, Ptx, parse};
use flipwave_ptx_sim::PtxGpu;
use flipwave_tests::{cases, device_ptx};
use std::sync::Arc;

/// Runs a program at an optimisation level, in the interpreter and in compiled code.
///
/// # Errors
/// If a result differs from the host's, or the program faults.
fn check(case: &Case, level: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("program.c");
    std::fs::write(&source, &case.source).expect("the source written");
    // Options of LLVM concern AMD's code generator.
    let options = case.options.iter().map(String::as_str).filter(|option| option.starts_with("-D"));
    let text = device_ptx(&source, &[level].into_iter().chain(options).collect::<Vec<_>>());
    let failed = |error: &dyn std::fmt::Display| format!("{} {level}: {error}", case.name);
    let module = parse(&text).map_err(|error| failed(&error))?;
    for compiling in [Compiling::Never, Compiling::AtOnce] {
        let found = run(case, &module, compiling);
        found.map_err(|error| format!("{} {level} {compiling:?}: {error}", case.name))?;
    }
    Ok(())
}

/// Runs a program.
///
/// # Errors
/// See [`check`].
fn run(case: &Case, module: &Module, compiling: Compiling) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let mut gpu = PtxGpu::new(Ptx::new("sm_80").expect("a target"));
    gpu.set_compiling(compiling);
    let module = gpu.load(module).map_err(|error| failed(&error))?;
    let (mut kernarg, mut outputs) = (Vec::new(), Vec::new());
    for buffer in &case.buffers {
        let (bytes, is_output) = match buffer {
            Buffer::Input(bytes) => (bytes.clone(), false),
            Buffer::Output(size) => (vec![0; *size], true),
        };
        let address = gpu.allocate(bytes.len() as u64).map_err(|error| failed(&error))?;
        gpu.write(address, &bytes).map_err(|error| failed(&error))?;
        kernarg.extend(address.0.to_le_bytes());
        outputs.extend(is_output.then_some(address));
    }
    for kernel in &case.kernels {
        let dispatch = Dispatch {
            module,
            kernel: kernel.clone(),
            grid: [case.lanes, 1, 1],
            workgroup: [case.workgroup, 1, 1],
            kernarg: kernarg.clone(),
            dynamic_lds: 0,
            instruction_limit: 50_000_000,
            queued: None,
            is_cooperative: false,
        };
        let mut execution = gpu.begin(&dispatch).map_err(|error| failed(&error))?;
        match gpu.advance(&mut execution, &mut Unobserved, u64::MAX) {
            Ok(Progress::Ended(Completion::Completed(_))) => {}
            Ok(Progress::Ended(Completion::Faulted(fault))) => return Err(failed(&fault)),
            other => return Err(format!("{other:?}")),
        }
    }
    for (address, expected) in outputs.into_iter().zip(&case.expected) {
        let mut found = vec![0; expected.len()];
        gpu.read(address, &mut found).map_err(|error| failed(&error))?;
        if let Some(at) = (0..found.len()).find(|at| found[*at] != expected[*at]) {
            return Err(failed(&format!("byte {at} differs from the host's")));
        }
    }
    Ok(())
}

/// Runs the programs of some seeds, each at one level.
fn compare(
    seeds: impl Iterator<Item = u32>,
    level: impl Fn(u32) -> &'static str,
    case: impl Fn(u32) -> Option<Arc<Case>>,
) {
    let (mut run, mut wrong) = (0, Vec::new());
    for seed in seeds {
        if let Some(case) = case(seed) {
            run += 1;
            wrong.extend(check(&case, level(seed)).err());
        }
    }
    println!("{run} programs are of use");
    assert!(run >= 5, "{run}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn random_integer_programs_agree_with_the_host_on_ptx() {
    compare(cases(0..48, 5), |seed| LEVELS[seed as usize / 4 % 4], integer::case);
}

#[test]
fn random_expressions_agree_with_the_host_on_ptx() {
    compare(cases(0..16, 3), |seed| LEVELS[seed as usize % 4], |seed| Some(float::case(seed)));
}
