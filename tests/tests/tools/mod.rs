//! Tools with hooks count the same as an observer in the embedded GPU, on every kernel.

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

mod command;
mod compared;
mod controlled;
mod cost;
mod files;
mod live_range_splitting;
mod not_counted;
mod observer;
mod records;

use compared::{
    AddressDivergence, BankConflicts, BranchDivergence, Compared, KernelClock, check, check_file,
    run, shipped,
};
use flipwave_injector::Workload;
use flipwave_isa::{Inst, MemorySpace};
use flipwave_tests::{
    MACHINES, TestProgram, cases, compile_for, examples, examples_folder, rewritten_levels,
    rewritten_machines, workload,
};
use flipwave_tools::{InstructionCount, MemoryTrace, OpcodeHistogram, Options};

/// Runs `test` with the kernels of a file compiled for different machines, and compares tools with the
/// observer in each run.
fn at_every_level(file: &str, options: &[&str], test: impl Fn(TestProgram)) {
    for machine in cases(rewritten_machines(), 3) {
        for level in rewritten_levels().iter().copied() {
            println!("{file} {level} on {machine}");
            let code_object = compile_for(machine, file, &[&[level], options].concat());
            test(TestProgram::new(&code_object).examined(check_all));
            if live_range_splitting::FILES.contains(&file) {
                test(TestProgram::new(&code_object).examined(live_range_splitting::check));
            }
        }
    }
}

fn example(name: &str) -> Workload {
    workload(MACHINES[0], &examples_folder().join(name), &["-O3"])
}

/// Compares all tools with the observer.
pub fn check_all(workload: &Workload) {
    check::<InstructionCount>(workload, &Options::default());
    let each = shipped("instruction-count").with("per", "instruction");
    check_file::<InstructionCount>(workload, &each, &Options::default());
    check::<OpcodeHistogram>(workload, &Options::default());
    check::<MemoryTrace>(workload, &Options { records: 1 << 18, ..Options::default() });
    check::<AddressDivergence>(workload, &Options::default());
    check::<BranchDivergence>(workload, &Options::default());
    check::<BankConflicts>(workload, &Options::default());
    check::<KernelClock>(workload, &Options::default());
}

#[test]
fn tools_agree_with_the_observer_on_every_example() {
    for file in cases(examples(), 3) {
        for level in rewritten_levels().iter().copied() {
            println!("{} {level}", file.display());
            check_all(&workload(MACHINES[0], &file, &[level]));
        }
    }
}

/// Negative control: an observer that misses one execution of one instruction disagrees.
#[test]
fn an_observer_that_misses_one_execution_disagrees() {
    fn agrees<T: Compared>(workload: &Workload, blind: fn(&Inst) -> bool) -> bool {
        let run = run::<T>(workload, &Options::default(), blind);
        run.dispatches.iter().all(|rows| rows.tool == rows.observed)
    }
    fn differs<T: Compared>(blind: fn(&Inst) -> bool) -> bool {
        let workload = example("reduction.yaml");
        agrees::<T>(&workload, |_| false) && !agrees::<T>(&workload, blind)
    }
    fn is_in(inst: &Inst, space: MemorySpace) -> bool {
        inst.memory().is_some_and(|access| access.space == space)
    }
    assert!(differs::<InstructionCount>(|_| true));
    assert!(differs::<OpcodeHistogram>(|_| true));
    assert!(differs::<MemoryTrace>(|inst| inst.memory().is_some()));
    assert!(differs::<AddressDivergence>(|inst| is_in(inst, MemorySpace::Global)));
    assert!(differs::<BranchDivergence>(|inst| inst.operation.name() == "s_and_saveexec_b64"));
    assert!(differs::<BankConflicts>(|inst| is_in(inst, MemorySpace::Lds)));
    assert!(differs::<KernelClock>(|_| true));
}
