//! The strict level: each rule reports its violations and nothing else, and compiled code violates none.

mod chip_bugs;
mod clean;
mod deletion;
mod expert;
mod generations;
mod gfx12;
mod planted;
mod private;
mod races;
mod report;
mod rules;

use flipwave_injector::Workload;
use flipwave_tests::TestProgram;

/// A program that launches the kernels of `hazards.cl`.
fn hazards(code: &[u8]) -> Workload {
    let mut program = TestProgram::new(code);
    for kernel in ["matrices", "lanes", "dots"] {
        let out = program.output(&[0u32; 64]);
        program.launch(kernel, [64, 1, 1], [64, 1, 1], &[out]);
    }
    for kernel in ["double_matrices", "quotients"] {
        let out = program.output(&[0.0f64; 64]);
        program.launch(kernel, [64, 1, 1], [64, 1, 1], &[out]);
    }
    program.workload()
}
