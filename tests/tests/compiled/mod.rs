//! Kernels compiled at every optimisation level compute the same as plain Rust, also with garbage in dead
//! registers.

mod control;
mod lanes;
mod memory;
mod numbers;
mod pressure;

use flipwave_tests::{TestProgram, cases, compile_for, machines};

/// Optimisation levels. In unoptimised code, locals are in scratch memory and calls are not inlined.
const LEVELS: [&str; 4] = ["-O0", "-O1", "-O3", "-Os"];

/// Machines and levels for which programs also run with garbage in dead registers.
const PROVE_LIVENESS: [(&str, &str); 6] = [
    ("gfx90a with 64 lanes", "-O0"),
    ("gfx90a with 64 lanes", "-O3"),
    ("gfx942 with 64 lanes", "-O0"),
    ("gfx942 with 64 lanes", "-O3"),
    ("gfx1100 with 32 lanes", "-O0"),
    ("gfx1100 with 32 lanes", "-O3"),
];

/// Runs `test` with the kernels of a file compiled for every machine at every level, and prints each
/// combination. Compiled code also violates no rule of the strict level.
fn at_every_level(file: &str, options: &[&str], test: impl Fn(TestProgram)) {
    let machines = machines().filter(|machine| machine.runs_hip() || !file.ends_with(".hip"));
    let all = machines.flat_map(|machine| LEVELS.map(|level| (machine, level)));
    for (machine, level) in cases(all, 5) {
        println!("{file} {level} on {machine}");
        let program = TestProgram::new(&compile_for(machine, file, &[&[level], options].concat()));
        let program = if machine.has_strict_level() { program.strictly() } else { program };
        let proves = PROVE_LIVENESS.contains(&(machine.to_string().as_str(), level));
        test(if proves { program.scribbled() } else { program });
    }
}
