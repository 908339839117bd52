//! Liveness, proved by execution: garbage in registers that it calls dead changes nothing. The
//! kernels of `kernels/` are run so by the tests of compiled kernels; here are the examples, and the
//! mistakes that must be noticed.

use flipwave_campaigns::{Campaign, Code, Compiler, prepare};
use flipwave_injector::Workload;
use flipwave_tests::{Overwrites, Program, compile, examples, scribbled, to_values};

/// The workload of an example, and its code object, if it has only one.
fn example(file: &std::path::Path, target: &str, level: &str) -> Option<(Workload, Vec<u8>)> {
    let mut campaign = Campaign::read(file).unwrap_or_else(|error| panic!("{error}"));
    campaign.target = target.parse().expect("a target");
    let mut sources = Vec::new();
    for launch in &mut campaign.launches {
        let Code::Source { path, options } = &mut launch.code else { return None };
        options.push(level.to_owned());
        if !sources.contains(&(path.clone(), options.clone())) {
            sources.push((path.clone(), options.clone()));
        }
    }
    let [(path, options)] = sources.as_slice() else { return None };
    let compiler = Compiler::find().unwrap_or_else(|error| panic!("{error}"));
    let code_object =
        compiler.compile(path, options, &campaign.target).unwrap_or_else(|error| panic!("{error}"));
    let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
    Some((prepared.workload, code_object))
}

#[test]
fn the_examples_do_not_miss_what_is_called_dead() {
    let mut count = 0;
    for target in ["gfx90a", "gfx942", "gfx1100"] {
        for (file, level) in examples().iter().flat_map(|file| [(file, "-O0"), (file, "-O3")]) {
            let Some((workload, code_object)) = example(file, target, level) else { continue };
            println!("{} {level} for {target}", file.display());
            let golden = workload.golden().unwrap_or_else(|error| panic!("{error}")).outputs;
            assert!(scribbled(&workload, &code_object, Overwrites::Dead) == Ok(golden));
            count += 1;
        }
    }
    assert!(count >= 30, "{count} examples");
}

/// A kernel of which lanes leave a loop at different times.
fn divergent() -> Program {
    let mut program = Program::new(&compile("control.cl", &["-O3"]));
    let values: Vec<u32> = (0..256).map(|n| 1 + n * 7 % 61).collect();
    let arguments = [program.input(&values), program.output(&[0u32; 256])];
    program.launch("collatz", [256, 1, 1], [64, 1, 1], &arguments);
    program
}

/// The negative controls: each mistake shows.
#[test]
fn a_live_register_that_is_called_dead_is_missed() {
    let program = divergent();
    let golden = program.outputs();
    assert!(to_values::<u32>(&golden[0]).iter().any(|value| *value > 0));
    let mut workload = program.workload();
    // A loop whose end is gone does not end.
    workload.dispatches.iter_mut().for_each(|own| own.instruction_limit = 1_000_000);
    let run = |overwrites| scribbled(&workload, program.code_object(), overwrites);
    assert_eq!(run(Overwrites::Dead), Ok(golden.clone()));
    assert_ne!(run(Overwrites::DeadAndOneLive), Ok(golden.clone()));
    assert_ne!(run(Overwrites::DeadIfActive), Ok(golden));
}
