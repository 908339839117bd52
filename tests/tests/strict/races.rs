//! Data races are reported with both instructions; ordered accesses are not reported.

use flipwave_injector_amdgpu::golden_strict;
use flipwave_sim::strict::{Finding, Rule, StrictOptions, Violation};
use flipwave_tests::{Machine, TestProgram, compile_for};
use std::collections::BTreeSet;
use std::path::Path;

const MACHINES: [Machine; 4] = [
    Machine::new("gfx90a", 64),
    Machine::new("gfx942", 64),
    Machine::new("gfx1100", 32),
    Machine::new("gfx1201", 32),
];

const RACES: [&str; 10] = [
    "no_barrier",
    "refill",
    "two_writers",
    "reduction",
    "bytes",
    "late_barrier",
    "in_memory",
    "between_workgroups",
    "one_result",
    "user_barrier",
];

const ORDERED: [&str; 10] = [
    "tile",
    "two_tiles",
    "reduction",
    "histogram",
    "last_workgroup",
    "same_value",
    "waits_for_workgroup",
    "bytes",
    "waits_for_wave",
    "in_place",
];

/// Violations in four workgroups of a kernel.
fn found(machine: Machine, file: &str, kernel: &str, options: StrictOptions) -> Vec<Violation> {
    let code = compile_for(machine, file, &["-O1", "-gline-tables-only"]);
    let mut program = TestProgram::new(&code);
    let data = program.output(&(0..1024).collect::<Vec<u32>>());
    let out = program.output(&[0u32; 1024]);
    program.launch(kernel, [1024, 1, 1], [256, 1, 1], &[data, out]);
    let workload = program.workload();
    let (_, violations) = golden_strict(&workload, options).unwrap_or_else(|e| panic!("{e}"));
    violations
}

/// Numbers of the lines that end with a comment naming the kernel.
fn marked(file: &str, kernel: &str) -> BTreeSet<u32> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels").join(file);
    let text = std::fs::read_to_string(path).expect("the source");
    let end = format!("// {kernel}");
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.ends_with(&end))
        .map(|numbered| numbered.0)
        .collect()
}

fn reports(violations: &[Violation]) -> String {
    violations.iter().map(|violation| format!("{violation}\n")).collect()
}

#[test]
fn data_races_are_reported_with_both_lines() {
    let races = StrictOptions { races: true };
    for machine in MACHINES {
        for kernel in RACES {
            let place = format!("{machine:?} {kernel}");
            let violations = found(machine, "races.cl", kernel, races);
            assert!(!violations.is_empty(), "{place}: no race was found");
            let mut lines = BTreeSet::new();
            for violation in &violations {
                assert_eq!(violation.rule(), Rule::DataRace, "{place}:\n{violation}");
                let Finding::Race { earlier_line, wave, .. } = &violation.finding else {
                    panic!("{place}: {violation}");
                };
                assert_ne!(*wave, violation.wave, "{place}: {violation}");
                let both = [&violation.line, earlier_line];
                lines.extend(both.into_iter().flatten().map(|line| line.line));
            }
            assert_eq!(lines, marked("races.cl", kernel), "{place}:\n{}", reports(&violations));
            let without = found(machine, "races.cl", kernel, StrictOptions::default());
            assert!(without.is_empty(), "{place}:\n{}", reports(&without));
        }
    }
}

#[test]
fn ordered_accesses_are_no_race() {
    for machine in MACHINES {
        for kernel in ORDERED {
            let violations = found(machine, "ordered.cl", kernel, StrictOptions { races: true });
            assert!(violations.is_empty(), "{machine:?} {kernel}:\n{}", reports(&violations));
        }
    }
}
