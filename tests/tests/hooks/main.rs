//! Hooks in compiled kernels.

#[path = "../compiled/control.rs"]
mod control;
#[path = "../compiled/lanes.rs"]
mod lanes;
#[path = "../compiled/memory.rs"]
mod memory;
#[path = "../compiled/numbers.rs"]
mod numbers;
#[path = "../compiled/pressure.rs"]
mod pressure;

mod everywhere;
mod full_files;
mod registers;

use everywhere::touched;
use flipwave_tests::{MACHINES, Program, compile_for, rewritten_levels};

/// Runs `test` with the kernels of a file compiled for every machine, with a hook before and after
/// every instruction.
fn at_every_level(file: &str, options: &[&str], test: impl Fn(Program)) {
    for machine in MACHINES.into_iter().filter(|machine| {
        let processor = machine.target().processor();
        machine.options().is_empty() && matches!(processor, "gfx90a" | "gfx942" | "gfx1100")
    }) {
        for level in rewritten_levels().iter().copied() {
            println!("{file} {level} on {machine}");
            let code_object = compile_for(machine, file, &[&[level], options].concat());
            let program = Program::new(&touched(&code_object));
            test(if machine.has_strict_level() { program.strictly() } else { program });
        }
    }
}

/// Words that look random and are the same on every run (xorshift, G. Marsaglia 2003).
fn random_words(count: usize) -> Vec<u64> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(next).take(count).collect()
}
