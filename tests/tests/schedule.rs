//! Work that waits for other work goes on as it would on hardware, or is ended by the watchdog.

use flipwave_device::{Completion, Device, FaultCause, WaveId};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use flipwave_tests::{TestProgram, compile, to_values};

fn waiting() -> Vec<u8> {
    compile("waiting.cl", &["-O3"])
}

#[test]
fn a_wave_may_wait_for_another_wave_of_its_workgroup() {
    let mut program = TestProgram::new(&waiting());
    let out = program.output(&[0u32; 256]);
    program.launch("waits_for_wave", [256, 1, 1], [256, 1, 1], &[out]);
    assert_eq!(to_values::<u32>(&program.outputs()[0])[..64], [7; 64]);
}

#[test]
fn a_workgroup_may_wait_for_a_later_one_that_hardware_would_run_beside_it() {
    let mut program = TestProgram::new(&waiting());
    let done = program.input(&[0u32; 8]);
    let out = program.output(&[0u32; 8]);
    program.launch("waits_for_workgroup", [8 * 64, 1, 1], [64, 1, 1], &[done, out]);
    assert_eq!(to_values::<u32>(&program.outputs()[0]), [8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn waiting_for_ever_ends_at_the_instruction_limit() {
    let mut program = TestProgram::new(&waiting());
    let out = program.output(&[0u32]);
    program.launch("waits_for_ever", [64, 1, 1], [64, 1, 1], &[out]);
    let mut workload = program.workload();
    workload.program.dispatches[0].instruction_limit = 12_345;
    let completion = workload.device.dispatch(&workload.program.dispatches[0]).expect("a dispatch");
    let Completion::Faulted(fault) = completion else { panic!("it ended by itself") };
    assert_eq!(fault.cause, FaultCause::Watchdog { executed: 12_345 });
}

/// Watches the first wave for this many instructions, and changes nothing.
struct Onlooker(u32);

impl Observer for Onlooker {
    fn watches(&mut self, wave: WaveId) -> bool {
        wave.wave == 0
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        self.0 -= 1;
        if self.0 == 0 { Watch::Off } else { Watch::On }
    }
}

#[test]
fn watching_a_wave_changes_neither_the_order_of_execution_nor_its_clock() {
    let mut program = TestProgram::new(&waiting());
    let next = program.input(&[0u32]);
    let places = program.output(&[0u32; 1000]);
    let clocks = program.output(&[0u64; 2]);
    program.launch("sees_order", [128, 1, 1], [128, 1, 1], &[next, places, clocks]);
    let unobserved = program.outputs();
    let places = to_values::<u32>(&unobserved[0]);
    assert!(!places.is_sorted(), "the waves do not take turns: the kernel shows no order");
    for watched in [1, 10, 700, 1024, 1025, 2000] {
        let mut workload = program.workload();
        let dispatch = &workload.program.dispatches[0];
        let completion = workload.device.dispatch_observed(dispatch, &mut Onlooker(watched));
        assert!(matches!(completion, Ok(Completion::Completed(_))), "{completion:?}");
        for (output, expected) in workload.program.outputs.iter().zip(&unobserved) {
            let mut bytes = vec![0; output.bytes];
            workload.device.read(output.address, &mut bytes).expect("an output");
            assert!(bytes == *expected, "{} after watching {watched} instructions", output.name);
        }
    }
}
