//! Handwritten kernels that violate one rule at the label `wrong`, and their corrected versions.

use flipwave_device::Completion;
use flipwave_sim::strict::{Rule, Violation};
use flipwave_tests::{Assembly, Machine, TestProgram, assemble_for, gpu_mut};

/// Size of the buffer in dwords: less than a page.
const BUFFER: usize = 1000;

/// Runs instructions in workgroups of `items` work-items on the strict level. Returns how the dispatch ends
/// and the violations.
pub fn run(assembly: &Assembly, items: u32) -> (Completion, Vec<Violation>) {
    let mut program = TestProgram::new(&assembly.code_object);
    let buffer = program.output(&[0u32; BUFFER]);
    program.launch("planted", [items, 1, 1], [items, 1, 1], &[buffer]);
    let mut workload = program.workload();
    workload.program.dispatches[0].instruction_limit = 100_000;
    gpu_mut(&mut workload.device)
        .dispatch_strict(&workload.program.dispatches[0])
        .expect("a dispatch")
}

/// Asserts that `wrong` violates `rule` only at its label `wrong`, and that `mended` violates no rule.
pub fn breaks(machine: Machine, rule: Rule, items: u32, wrong: &str, mended: &str) -> Violation {
    let assembly = assemble_for(machine, wrong);
    let (_, mut found) = run(&assembly, items);
    let reports: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert_eq!(found.len(), 1, "{machine}, {wrong}:\n{}", reports.join("\n"));
    let violation = found.remove(0);
    assert_eq!(violation.rule(), rule, "{machine}, {wrong}:\n{violation}");
    assert_eq!(violation.place.pc, assembly.label("wrong"), "{machine}, {wrong}:\n{violation}");
    keeps(machine, items, mended);
    violation
}

/// Asserts that instructions violate no rule and complete.
pub fn keeps(machine: Machine, items: u32, mended: &str) {
    let (end, found) = run(&assemble_for(machine, mended), items);
    let reports: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert!(found.is_empty(), "{machine}, {mended}:\n{}", reports.join("\n"));
    assert!(matches!(end, Completion::Completed(_)), "{machine}, {mended}:\n{end:?}");
}
