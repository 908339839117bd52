//! Liveness analysis, checked by execution: garbage in dead registers does not change results. These tests
//! run the examples, and negative controls; tests of compiled kernels run the kernels of `kernels/`.

use flipwave_depth::Depth;
use flipwave_tests::{
    Overwrites, TestProgram, cases, compile, contents, examples, gpu, rewritten_machines,
    scribbled, to_values, workload,
};

#[test]
fn garbage_in_dead_registers_changes_no_example() {
    let mut count = 0;
    let examples = examples();
    let all = rewritten_machines().flat_map(|machine| {
        let levels = move |file| [(machine, file, "-O0"), (machine, file, "-O3")];
        examples.iter().flat_map(levels)
    });
    for (machine, file, level) in cases(all, 5) {
        let workload = workload(machine, file, &[level]);
        let module = workload.program.dispatches[0].module;
        // Only workloads with a single code object are supported.
        if workload.program.dispatches.iter().any(|dispatch| dispatch.module != module) {
            continue;
        }
        println!("{} {level} on {machine}", file.display());
        let object = gpu(&workload.device).code_object(module).expect("a loaded module");
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}")).outputs;
        assert!(scribbled(&workload, object.bytes(), Overwrites::Dead) == Ok(contents(&golden)));
        count += 1;
    }
    let least = if Depth::asked() == Depth::Sample { 8 } else { 30 };
    assert!(count >= least, "{count} examples");
}

/// A program in which lanes leave a loop at different times.
fn divergent() -> TestProgram {
    let mut program = TestProgram::new(&compile("control.cl", &["-O3"]));
    let values: Vec<u32> = (0..256).map(|n| 1 + n * 7 % 61).collect();
    let arguments = [program.input(&values), program.output(&[0u32; 256])];
    program.launch("collatz", [256, 1, 1], [64, 1, 1], &arguments);
    program
}

/// Negative controls: each intentional mistake is detected.
#[test]
fn garbage_in_a_live_register_is_detected() {
    let program = divergent();
    let golden = program.outputs();
    assert!(to_values::<u32>(&golden[0]).iter().any(|value| *value > 0));
    let mut workload = program.workload();
    // A loop whose exit condition is overwritten may not end.
    workload
        .program
        .dispatches
        .iter_mut()
        .for_each(|dispatch| dispatch.instruction_limit = 1_000_000);
    let run = |overwrites| scribbled(&workload, program.code_object(), overwrites);
    assert_eq!(run(Overwrites::Dead), Ok(golden.clone()));
    assert_ne!(run(Overwrites::DeadAndOneLive), Ok(golden.clone()));
    assert_ne!(run(Overwrites::DeadIfActive), Ok(golden));
}
