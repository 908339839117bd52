//! Work that waits for other work goes on as it would on hardware, or is ended by the watchdog.

use flipwave_device::{Completion, Device, FaultCause};
use flipwave_tests::{Program, compile, to_values};

fn waiting() -> Vec<u8> {
    compile("waiting.cl", &["-O3"])
}

#[test]
fn a_wave_may_wait_for_another_wave_of_its_workgroup() {
    let mut program = Program::new(&waiting());
    let out = program.output(&[0u32; 256]);
    program.launch("waits_for_wave", [256, 1, 1], [256, 1, 1], &[out]);
    assert_eq!(to_values::<u32>(&program.outputs()[0])[..64], [7; 64]);
}

#[test]
fn a_workgroup_may_wait_for_a_later_one_that_hardware_would_run_beside_it() {
    let mut program = Program::new(&waiting());
    let done = program.input(&[0u32; 8]);
    let out = program.output(&[0u32; 8]);
    program.launch("waits_for_workgroup", [8 * 64, 1, 1], [64, 1, 1], &[done, out]);
    assert_eq!(to_values::<u32>(&program.outputs()[0]), [8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn waiting_for_ever_ends_at_the_instruction_limit() {
    let mut program = Program::new(&waiting());
    let out = program.output(&[0u32]);
    program.launch("waits_for_ever", [64, 1, 1], [64, 1, 1], &[out]);
    let mut workload = program.workload();
    workload.dispatches[0].instruction_limit = 12_345;
    let completion = workload.device.dispatch(&workload.dispatches[0]).expect("a dispatch");
    let Completion::Faulted(fault) = completion else { panic!("it ended by itself") };
    assert_eq!(fault.cause, FaultCause::Watchdog { executed: 12_345 });
}
