//! Hooks in compiled kernels.

#[path = "../compiled/control.rs"]
mod control;
#[path = "../compiled/indirect.rs"]
mod indirect;
#[path = "../compiled/lanes.rs"]
mod lanes;
#[path = "../compiled/memory.rs"]
mod memory;
#[path = "../compiled/numbers.rs"]
mod numbers;
#[path = "../compiled/pressure.rs"]
mod pressure;

mod both_versions;
mod everywhere;
mod full_files;
mod live_range_splitting;
mod matrices;
mod preload;
mod registers;
mod shared_registers;
mod trampolines;

use everywhere::touched;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Device, Dispatch};
use flipwave_hooks::rewrite::Rewritten;
use flipwave_injector::Workload;
use flipwave_tests::{
    TestProgram, Twins, assert_lockstep, cases, compile_for, gpu, rewritten_levels,
    rewritten_machines,
};

/// Runs `test` with the kernels of a file compiled for every machine, with a hook before and after every
/// instruction. The kernels of one file also run with hooks in trampolines.
fn at_every_level(file: &str, options: &[&str], test: impl Fn(TestProgram)) {
    for machine in cases(rewritten_machines(), 3) {
        for level in rewritten_levels().iter().copied() {
            println!("{file} {level} on {machine}");
            let code_object = compile_for(machine, file, &[&[level], options].concat());
            let original = CodeObject::parse(&code_object).expect("a code object");
            let rewritten = touched(&original);
            if file == "control.cl" && machine.is_typical() {
                test(TestProgram::new(&code_object).examined(trampolines::examine));
            }
            let program = TestProgram::new(rewritten.object.bytes()).strictly();
            test(program.examined(move |workload| keep_in_step(workload, &original, &rewritten)));
        }
    }
}

/// Runs launches of rewritten code in lockstep with those of the original.
fn keep_in_step(workload: &Workload, original: &CodeObject, rewritten: &Rewritten) {
    let mut device = gpu(&workload.device).clone();
    let module = device.load(original).expect("loads");
    let of_original = |dispatch: &Dispatch| Dispatch { module, ..dispatch.clone() };
    let originals: Vec<Dispatch> = workload.program.dispatches.iter().map(of_original).collect();
    let pairs = originals.iter().zip(&workload.program.dispatches);
    assert_lockstep(
        device,
        pairs.map(|(original, instrumented)| Twins {
            original,
            instrumented,
            rewritten,
            substituted: Default::default(),
        }),
    );
}
