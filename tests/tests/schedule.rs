//! Work that waits for other work goes on as it would on hardware, or is ended by the watchdog.

use flipwave_device::{Completion, Device, FaultCause, WaveId};
use flipwave_isa::{Inst, LaneMask, Operation, Pc};
use flipwave_sim::{Executed, Interest, Observer, Policy, Watch, WaveState};
use flipwave_tests::{Machine, TestProgram, compile, compile_for, to_values};

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

/// With turns that are long from the start it shows: the negative control.
#[test]
fn waves_after_a_barrier_have_read_what_the_first_one_then_overwrites() {
    for machine in [Machine::new("gfx90a", 64), Machine::new("gfx1100", 32)] {
        let mut program = TestProgram::new(&compile_for(machine, "race.cl", &["-O3"]));
        let rounds = program.input(&[100u32]);
        let seen = program.output(&[0u32; 256]);
        program.launch("overwrites_what_all_read", [256, 1, 1], [256, 1, 1], &[rounds, seen]);
        let of_all = |first_turn| {
            let mut workload = program.workload();
            workload.device.set_policy(Policy { first_turn, ..workload.device.policy() });
            let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
            to_values::<u32>(&golden.outputs[0].bytes())
        };
        let seen = of_all(Some(1));
        assert_eq!(seen, [seen[0]; 256], "{machine:?}");
        let seen = of_all(None);
        assert_ne!(seen, [seen[0]; 256], "{machine:?}");
    }
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

/// What an observer with an interest is called at.
struct Called {
    interest: Interest,
    before: Vec<(WaveId, Pc)>,
    after: Vec<(WaveId, Pc, Operation, LaneMask)>,
}

impl Observer for Called {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn interest(&self) -> Interest {
        self.interest
    }

    fn before(&mut self, inst: &Inst, wave: WaveId, _: &mut WaveState<'_>) {
        self.before.push((wave, inst.pc));
    }

    fn after(&mut self, executed: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        let Executed { inst, wave, lanes } = *executed;
        self.after.push((wave, inst.pc, inst.operation, lanes));
        Watch::On
    }
}

#[test]
fn an_observer_sees_of_all_instructions_those_that_it_is_interested_in() {
    let mut program = TestProgram::new(&waiting());
    let next = program.input(&[0u32]);
    let places = program.output(&[0u32; 1000]);
    let clocks = program.output(&[0u64; 2]);
    program.launch("sees_order", [128, 1, 1], [128, 1, 1], &[next, places, clocks]);
    let called = |interest| {
        let mut called = Called { interest, before: Vec::new(), after: Vec::new() };
        let mut workload = program.workload();
        let dispatch = &workload.program.dispatches[0];
        let completion = workload.device.dispatch_observed(dispatch, &mut called);
        assert!(matches!(completion, Ok(Completion::Completed(_))), "{completion:?}");
        let places: Vec<_> = called.after.iter().map(|(wave, pc, ..)| (*wave, *pc)).collect();
        assert_eq!(called.before, places, "{interest:?}");
        called.after
    };
    let all = called(Interest::Every);
    let first = all[0].0;
    let of_one_wave = all.iter().filter(|event| event.0 == first);
    let (mut addresses, mut operations) = (Vec::new(), Vec::new());
    for (_, pc, operation, _) in of_one_wave {
        if !addresses.contains(pc) {
            addresses.push(*pc);
        }
        if !operations.contains(operation) {
            operations.push(*operation);
        }
    }
    assert!(addresses.len() > operations.len() && operations.len() > 5, "{operations:?}");
    for address in addresses {
        let expected: Vec<_> = all.iter().copied().filter(|event| event.1 == address).collect();
        assert_eq!(called(Interest::Address(address)), expected, "{address}");
    }
    for operation in operations {
        let expected: Vec<_> = all.iter().copied().filter(|event| event.2 == operation).collect();
        assert_eq!(called(Interest::Operation(operation)), expected, "{operation:?}");
    }
    assert!(called(Interest::Address(Pc(u64::MAX))).is_empty());
}
