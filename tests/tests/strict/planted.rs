//! Hand-written kernels that break one rule at the label `wrong`, and their mended twins.

use flipwave_device::Completion;
use flipwave_sim::strict::{Rule, Violation};
use flipwave_tests::{Assembly, Machine, TestProgram, assemble_for};

/// Dwords of the buffer: not a whole page.
const BUFFER: usize = 1000;

/// Runs instructions in workgroups of this many work-items, and gives what strict execution finds.
pub fn run(assembly: &Assembly, items: u32) -> (Completion, Vec<Violation>) {
    let mut program = TestProgram::new(&assembly.code_object);
    let buffer = program.output(&[0u32; BUFFER]);
    program.launch("planted", [items, 1, 1], [items, 1, 1], &[buffer]);
    let mut workload = program.workload();
    workload.program.dispatches[0].instruction_limit = 100_000;
    workload.device.dispatch_strict(&workload.program.dispatches[0]).expect("a dispatch")
}

/// Demands that `wrong` breaks one rule at its label `wrong` alone, and that `mended` breaks none.
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

/// Demands that instructions break no rule and run to their end.
pub fn keeps(machine: Machine, items: u32, mended: &str) {
    let (end, found) = run(&assemble_for(machine, mended), items);
    let reports: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert!(found.is_empty(), "{machine}, {mended}:\n{}", reports.join("\n"));
    assert!(matches!(end, Completion::Completed(_)), "{machine}, {mended}:\n{end:?}");
}
