//! The embedded GPU keeps as many workgroups resident as real hardware. Workgroups that wait for a
//! workgroup that cannot start end with an error that says so.

use flipwave_device::{DeviceFault, FaultCause, Wait};
use flipwave_injector::{GoldenError, Program, Workload};
use flipwave_sim::Policy;
use flipwave_tests::{MACHINES, Machine, TestProgram, compile_for, gpu, gpu_mut, to_values};

/// Machines, and the number of workgroups of 256 work-items with few registers that they keep resident:
/// 2048 work-items on each of 104 compute units of gfx90a, 1024 on each of 96 of gfx1100.
fn machines() -> [(Machine, u32); 2] {
    [("gfx90a", 64, 8 * 104), ("gfx1100", 32, 4 * 96)].map(|(processor, lanes, most)| {
        let is_it =
            |machine: &Machine| machine.target().processor() == processor && machine.lanes == lanes;
        (MACHINES.into_iter().find(is_it).expect("a machine"), most)
    })
}

fn barrier(machine: Machine, options: &str, workgroups: u32) -> TestProgram {
    let mut program = TestProgram::new(&compile_for(machine, "grid_barrier.cl", &[options, "-g"]));
    let zeros = vec![0u32; workgroups as usize];
    let (arrived, written) = (program.output(&[0u32]), program.input(&zeros));
    let read = program.output(&zeros);
    let grid = [256 * workgroups, 1, 1];
    program.launch("neighbours", grid, [256, 1, 1], &[arrived, written, read]);
    program
}

fn resident(program: &TestProgram) -> u32 {
    let Workload { mut device, program: Program { dispatches, .. }, .. } = program.workload();
    gpu_mut(&mut device).residency(&dispatches[0]).expect("a dispatch").workgroups
}

fn stopped(program: &TestProgram) -> DeviceFault {
    match program.workload().golden() {
        Err(GoldenError::Faulted { fault, .. }) => *fault,
        result => panic!("{result:?}"),
    }
}

#[test]
fn grid_barrier_passes_if_all_workgroups_are_resident() {
    for (machine, most) in machines() {
        for (options, workgroups) in
            [("-O0", 1), ("-O0", 9), ("-O2", 1), ("-O2", 9), ("-O2", 64), ("-O2", most)]
        {
            let outputs = barrier(machine, options, workgroups).outputs();
            let expected: Vec<u32> =
                (0..workgroups).map(|group| (group + 1) % workgroups * 3 + 1).collect();
            assert_eq!(to_values::<u32>(&outputs[0]), [2 * workgroups], "{machine:?}");
            assert_eq!(to_values::<u32>(&outputs[1]), expected, "{machine:?}, {workgroups}");
        }
    }
}

#[test]
fn one_workgroup_too_many_ends_with_a_stall_report() {
    for (machine, most) in machines() {
        for options in ["-O2", "-O0"] {
            // Unoptimised kernels may need more registers.
            let most = match options {
                "-O2" => most,
                _ => resident(&barrier(machine, options, 1)),
            };
            let fault = stopped(&barrier(machine, options, most + 1));
            let FaultCause::Stalled(stall) = &fault.cause else { panic!("{fault}") };
            assert_eq!(fault.cause.name(), "watchdog");
            let counts = [stall.workgroups, stall.ended, stall.resident];
            assert_eq!(counts, [most as u64 + 1, 0, most.into()], "{fault}");
            assert_eq!(stall.residency.workgroups, most, "{fault}");
            // The first wave of each workgroup polls; the others wait at the barrier after it.
            let waves = 256 / machine.lanes as u64;
            let found: Vec<(Wait, u64)> =
                stall.waits.iter().map(|wait| (wait.wait, wait.waves)).collect();
            let expected =
                [(Wait::Barrier, (waves - 1) * u64::from(most)), (Wait::Loop, most.into())];
            assert_eq!(found, expected, "{fault}");
            let polls = &stall.waits[1];
            let accesses = ["load", "atomic"].iter().any(|kind| polls.instruction.contains(kind));
            assert!(accesses, "{fault}");
            let text = fault.to_string();
            let keeps = format!("1 more cannot start, because the device keeps {most} of them");
            assert!(text.contains(&keeps), "{text}");
            // In unoptimised code, the instruction is in a function of the device library, without line
            // information.
            assert_eq!(text.contains("grid_barrier.cl:8"), options == "-O2", "{text}");
        }
    }
}

/// Negative control: a long loop that ends is not taken for a wait.
#[test]
fn counting_loop_is_not_taken_for_a_stall() {
    let (machine, _) = machines()[0];
    let mut program = TestProgram::new(&compile_for(machine, "grid_barrier.cl", &["-O2"]));
    let (arrived, looks) = (program.input(&[0u32]), program.output(&[0u32; 256]));
    program.launch("counts", [256, 1, 1], [256, 1, 1], &[arrived, looks]);
    assert_eq!(to_values::<u32>(&program.outputs()[0]), [1_000_000; 256]);
}

/// Instrumented code may need more registers than the original.
#[test]
fn policy_keeps_instrumented_workgroups_resident() {
    let (machine, most) = machines()[0];
    let mut workload = barrier(machine, "-O2", most + 1).workload();
    let policy = gpu(&workload.device).policy();
    gpu_mut(&mut workload.device).set_policy(Policy { resident_workgroups: most + 1, ..policy });
    let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(to_values::<u32>(&golden.outputs[0].bytes()), [2 * (most + 1)]);
}
