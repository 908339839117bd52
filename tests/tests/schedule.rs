//! Scheduling: waves and workgroups that wait for others make progress as on hardware, or are ended by the
//! watchdog.

use flipwave_device::{Completion, Device, FaultCause, WaveId};
use flipwave_isa::{Inst, LaneMask, Operation, Pc};
use flipwave_sim::{Compiling, Executed, Interest, Leads, Observer, Policy, Watch, WaveState};
use flipwave_tests::{Machine, TestProgram, compile, compile_for, gpu, gpu_mut, scalar, to_values};

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
fn workgroup_may_wait_for_a_later_resident_workgroup() {
    let mut program = TestProgram::new(&waiting());
    let done = program.input(&[0u32; 8]);
    let out = program.output(&[0u32; 8]);
    program.launch("waits_for_workgroup", [8 * 64, 1, 1], [64, 1, 1], &[done, out]);
    assert_eq!(to_values::<u32>(&program.outputs()[0]), [8, 7, 6, 5, 4, 3, 2, 1]);
}

#[test]
fn endless_wait_ends_at_the_instruction_limit() {
    let mut program = TestProgram::new(&waiting());
    let out = program.output(&[0u32]);
    program.launch("waits_for_ever", [64, 1, 1], [64, 1, 1], &[out]);
    let mut workload = program.workload();
    workload.program.dispatches[0].instruction_limit = 12_345;
    let completion = gpu_mut(&mut workload.device)
        .dispatch(&workload.program.dispatches[0])
        .expect("a dispatch");
    let Completion::Faulted(fault) = completion else { panic!("unexpected end") };
    assert_eq!(fault.cause, FaultCause::Watchdog { executed: 12_345 });
}

/// Outputs of a program with a changed policy, as words.
fn words(program: &TestProgram, change: impl Fn(Policy) -> Policy) -> Vec<u32> {
    let mut workload = program.workload();
    let gpu = gpu_mut(&mut workload.device);
    gpu.set_policy(change(gpu.policy()));
    let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
    to_values::<u32>(&golden.outputs[0].bytes())
}

/// Negative control: a policy that never holds waves back shows the race.
#[test]
fn waves_read_before_the_first_wave_overwrites_without_a_barrier() {
    for machine in [Machine::new("gfx90a", 64), Machine::new("gfx1100", 32)] {
        let mut program = TestProgram::new(&compile_for(machine, "race.cl", &["-O3"]));
        let rounds = program.input(&[100u32]);
        let seen = program.output(&[0u32; 256]);
        program.launch("overwrites_what_all_read", [256, 1, 1], [256, 1, 1], &[rounds, seen]);
        let seen = words(&program, |policy| policy);
        assert_eq!(seen, [seen[0]; 256], "{machine:?}");
        let seen = words(&program, |policy| Policy { leads: Leads::ANY, ..policy });
        assert_ne!(seen, [seen[0]; 256], "{machine:?}");
    }
}

/// Results of `refill.cl` if all waves read a tile before it is refilled.
fn sums_of_tiles(tiles: &[u32], workgroup: usize, rounds: usize) -> Vec<u32> {
    let sum = |item: usize| {
        tiles.chunks(workgroup).take(rounds).fold(0u32, |sum, tile| {
            (0..40).fold(sum, |sum, read| {
                let word = tile[(item + read * (workgroup / 8) + read) % workgroup];
                sum.wrapping_mul(31).wrapping_add(word)
            })
        })
    };
    (0..workgroup).map(sum).collect()
}

#[test]
fn waves_refill_lds_after_all_have_read_it() {
    let machines = ["gfx942", "gfx950", "gfx1100"].map(|name| match name {
        "gfx1100" => Machine::new(name, 32),
        _ => Machine::new(name, 64),
    });
    for machine in machines {
        let by_loads = (machine.lanes == 64).then_some("refills_by_loads");
        for level in ["-O1", "-O3"] {
            let code = compile_for(machine, "refill.cl", &[level]);
            for kernel in ["refills", "refills_unrolled"].into_iter().chain(by_loads) {
                for workgroup in [64_usize, 128, 192, 256, 512, 1024] {
                    let mut program = TestProgram::new(&code);
                    let tiles: Vec<u32> = (0..10 * workgroup as u32)
                        .map(|word| word.wrapping_mul(0x9e37_79b9) >> 7)
                        .collect();
                    let input = program.input(&tiles);
                    let sums = program.output(&vec![0u32; workgroup]);
                    let items = [workgroup as u32, 1, 1];
                    program.launch(kernel, items, items, &[input, sums, scalar(8u32)]);
                    let expected = sums_of_tiles(&tiles, workgroup, 8);
                    let place = format!("{machine:?} {level} {kernel} {workgroup}");
                    for compiling in [Compiling::Never, Compiling::AtOnce] {
                        let sums = words(&program, |policy| Policy { compiling, ..policy });
                        assert!(sums == expected, "{place} {compiling:?}");
                    }
                    let far = words(&program, |policy| Policy { leads: Leads::ANY, ..policy });
                    assert_eq!(far == expected, workgroup <= machine.lanes, "{place}");
                }
            }
        }
    }
}

/// Watches the first wave for the given number of instructions, without changes.
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
fn observing_a_wave_changes_neither_schedule_nor_clock() {
    let mut program = TestProgram::new(&waiting());
    let next = program.input(&[0u32]);
    let places = program.output(&[0u32; 1000]);
    let clocks = program.output(&[0u64; 2]);
    program.launch("sees_order", [128, 1, 1], [128, 1, 1], &[next, places, clocks]);
    let unobserved = program.outputs();
    let places = to_values::<u32>(&unobserved[0]);
    assert!(!places.is_sorted(), "waves do not take turns, so the test is void");
    for watched in [1, 10, 700, 1024, 1025, 2000] {
        let mut workload = program.workload();
        let dispatch = &workload.program.dispatches[0];
        let completion =
            gpu_mut(&mut workload.device).dispatch_observed(dispatch, &mut Onlooker(watched));
        assert!(matches!(completion, Ok(Completion::Completed(_))), "{completion:?}");
        for (output, expected) in workload.program.outputs.iter().zip(&unobserved) {
            let mut bytes = vec![0; output.bytes];
            gpu(&workload.device).read(output.address, &mut bytes).expect("an output");
            assert!(bytes == *expected, "{} after watching {watched} instructions", output.name);
        }
    }
}

/// Records the instructions at which an observer with an interest is called.
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
fn observer_is_called_only_at_instructions_of_interest() {
    let mut program = TestProgram::new(&waiting());
    let next = program.input(&[0u32]);
    let places = program.output(&[0u32; 1000]);
    let clocks = program.output(&[0u64; 2]);
    program.launch("sees_order", [128, 1, 1], [128, 1, 1], &[next, places, clocks]);
    let called = |interest| {
        let mut called = Called { interest, before: Vec::new(), after: Vec::new() };
        let mut workload = program.workload();
        let dispatch = &workload.program.dispatches[0];
        let completion = gpu_mut(&mut workload.device).dispatch_observed(dispatch, &mut called);
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
