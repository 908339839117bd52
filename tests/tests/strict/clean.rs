//! Compiled code violates no rule, at any optimisation level.

use super::hazards;
use flipwave_isa::Generation;
use flipwave_tests::{
    MACHINES, Machine, TestProgram, cases, clean, compile_for, examples, machines, scalar, workload,
};

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O3", "-Os"];

#[test]
fn examples_violate_no_rule_and_strictness_changes_no_result() {
    let all = examples().into_iter().flat_map(|file| LEVELS.map(|level| (file.clone(), level)));
    for (file, level) in cases(all, 3) {
        // Unoptimised, this example takes minutes.
        if file.ends_with("matmul.yaml") && level == "-O0" {
            continue;
        }
        println!("{} {level}", file.display());
        let workload = workload(MACHINES[0], &file, &[level]);
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(clean(&workload), golden);
    }
}

/// Machines with known rules, except gfx90a.
fn others() -> impl Iterator<Item = Machine> {
    machines().skip(1).filter(|machine| machine.has_strict_level())
}

#[test]
fn examples_violate_no_rule_on_other_machines() {
    let examples = examples();
    let all = others().flat_map(|machine| examples.iter().map(move |file| (machine, file)));
    for (machine, file) in cases(all, 3) {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !machine.runs_hip() && name == "saxpy.yaml" || name == "matmul.yaml" {
            continue;
        }
        println!("{} on {machine}", file.display());
        let workload = workload(machine, file, &["-O3"]);
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(clean(&workload), golden);
    }
}

#[test]
fn compiled_kernels_with_hazards_violate_no_rule() {
    for machine in machines() {
        if !["gfx90a", "gfx942"].contains(&machine.target().processor()) {
            continue;
        }
        for level in LEVELS {
            println!("{level} on {machine}");
            clean(&hazards(&compile_for(machine, "hazards.cl", &[level])));
        }
    }
}

#[test]
fn kernels_with_pointers_and_waits_violate_no_rule() {
    let levels = ["-O0", "-O3"].into_iter();
    let machines = machines().filter(|machine| machine.has_strict_level());
    let all = machines.flat_map(|machine| levels.clone().map(move |level| (machine, level)));
    for (machine, level) in cases(all, 3) {
        println!("{level} on {machine}");
        let mut program = TestProgram::new(&compile_for(machine, "chase.cl", &[level]));
        let next: Vec<u32> = (0..256).map(|place| (place * 7 + 3) % 256).collect();
        let arguments =
            [program.input(&next), program.input(&next), program.output(&next), scalar(20u32)];
        program.launch("chase", [256, 1, 1], [128, 1, 1], &arguments);
        clean(&program.workload());

        // From gfx11 on, there is no s_memtime.
        if machine.target().generation() >= Generation::Gfx11 {
            continue;
        }
        let mut program = TestProgram::new(&compile_for(machine, "waiting.cl", &[level]));
        let out = program.output(&[0u32; 256]);
        program.launch("waits_for_wave", [256, 1, 1], [256, 1, 1], &[out]);
        let next = program.input(&[0u32]);
        let places = program.output(&[0u32; 1000]);
        let clocks = program.output(&[0u64; 2]);
        program.launch("sees_order", [128, 1, 1], [128, 1, 1], &[next, places, clocks]);
        clean(&program.workload());
    }
}
