//! Instructions that compilers do not emit, in handwritten kernels.

use flipwave_device::{Completion, Device, DeviceFault, FaultCause, Wait};
use flipwave_sim::{Compiling, Policy};
use flipwave_tests::{TestProgram, assemble, gpu, gpu_mut, to_values};

/// A program that launches `workgroups` workgroups of one wave on a buffer of 64 zeros.
fn planted(instructions: &str, workgroups: u32) -> TestProgram {
    let kernel = assemble(instructions);
    let mut program = TestProgram::new(&kernel.code_object);
    let buffer = program.output(&[0u32; 64]);
    program.launch("planted", [64 * workgroups, 1, 1], [64, 1, 1], &[buffer]);
    program
}

fn fault(program: &TestProgram) -> DeviceFault {
    let mut workload = program.workload();
    match gpu_mut(&mut workload.device)
        .dispatch(&workload.program.dispatches[0])
        .expect("a dispatch")
    {
        Completion::Faulted(fault) => fault,
        Completion::Completed(_) => panic!("it completed"),
    }
}

/// Each workgroup draws a number, waits for the others at a global barrier of `waves` waves, and then
/// stores how many numbers have been drawn.
fn meeting(barrier: &str, waves: u32) -> String {
    format!(
        "
        v_mov_b32 v4, 0
        v_mov_b32 v5, 1
        s_mov_b64 exec, 1
        global_atomic_add v6, v4, v5, s[2:3] glc
        s_waitcnt vmcnt(0)
        v_readfirstlane_b32 s5, v6
        v_mov_b32 v10, {}
        s_mov_b32 m0, 0
        s_cmp_lg_u32 s5, 0
        s_cbranch_scc1 meet
        ds_gws_init v10 offset:3 gds
    meet:
        {barrier}
        s_waitcnt lgkmcnt(0)
        global_load_dword v8, v4, s[2:3] glc
        s_waitcnt vmcnt(0)
        v_lshlrev_b32 v9, 2, v6
        global_store_dword v9, v8, s[2:3] offset:4
        ",
        waves - 1
    )
}

const BARRIER: &str = "ds_gws_barrier v10 offset:3 gds";

#[test]
fn workgroups_that_run_side_by_side_meet_at_a_global_barrier() {
    let program = planted(&meeting(BARRIER, 8), 8);
    let counts: Vec<u32> = to_values(&program.outputs()[0]);
    assert_eq!(counts[..9], [8; 9]);
    // Negative control: without the barrier, and with a barrier of another resource that every wave
    // passes.
    for barrier in ["s_nop 0", "ds_gws_barrier v4 offset:4 gds"] {
        let counts: Vec<u32> = to_values(&planted(&meeting(barrier, 8), 8).outputs()[0]);
        assert_eq!(counts[..3], [8, 1, 2], "{barrier}");
    }
}

#[test]
fn global_barrier_out_of_reach_ends_in_the_watchdog() {
    // More workgroups than can be resident, and a wave that never arrives.
    for (waves, workgroups, resident) in [(3329, 3329, 32 * 104), (3, 2, 2)] {
        let fault = fault(&planted(&meeting(BARRIER, waves), workgroups));
        let FaultCause::Stalled(stall) = &fault.cause else { panic!("{fault}") };
        assert!(stall.executed < 20 * u64::from(workgroups), "{fault}");
        let [waiting] = &stall.waits[..] else { panic!("{fault}") };
        assert_eq!((waiting.wait, waiting.waves), (Wait::GlobalSync, resident), "{fault}");
        assert!(waiting.instruction.starts_with("ds_gws_barrier"), "{fault}");
    }
}

#[test]
fn a_wave_that_halts_itself_ends_in_the_watchdog() {
    let fault = fault(&planted("s_sethalt 1", 1));
    let FaultCause::Stalled(stall) = &fault.cause else { panic!("{fault}") };
    let [waiting] = &stall.waits[..] else { panic!("{fault}") };
    let found = (stall.executed, waiting.wait, waiting.instruction.as_str());
    assert_eq!(found, (4, Wait::Halted, "s_sethalt 1"), "{fault}");
}

/// The barrier is executed often enough to be compiled. Finally, one wave does not arrive.
#[test]
fn stall_report_names_the_barrier_that_a_wave_never_reaches() {
    let kernel = assemble(
        "
        s_mov_b32 s10, 100
    meet:
        s_barrier
        s_sub_u32 s10, s10, 1
        s_cmp_lg_u32 s10, 0
        s_cbranch_scc1 meet
        v_readfirstlane_b32 s11, v0
        s_cmp_lg_u32 s11, 0
        s_cbranch_scc1 others
    stay:
        s_sethalt 1
    others:
        s_mov_b32 s10, 1
    wait:
        s_barrier
        ",
    );
    let mut program = TestProgram::new(&kernel.code_object);
    let buffer = program.output(&[0u32; 64]);
    program.launch("planted", [256, 1, 1], [256, 1, 1], &[buffer]);
    let mut workload = program.workload();
    for compiling in [Compiling::Never, Compiling::AtOnce] {
        let policy = Policy { compiling, ..gpu(&workload.device).policy() };
        gpu_mut(&mut workload.device).set_policy(policy);
        let end = gpu_mut(&mut workload.device)
            .dispatch(&workload.program.dispatches[0])
            .expect("a dispatch");
        let Completion::Faulted(fault) = end else { panic!("{compiling:?}: it completed") };
        let FaultCause::Stalled(stall) = &fault.cause else { panic!("{compiling:?}: {fault}") };
        let waits: Vec<_> =
            stall.waits.iter().map(|wait| (wait.wait, wait.pc, wait.waves)).collect();
        let expected =
            [(Wait::Barrier, kernel.label("wait"), 3), (Wait::Halted, kernel.label("stay"), 1)];
        assert_eq!(waits, expected, "{compiling:?}: {fault}");
    }
}

#[test]
fn nested_forks_reconverge() {
    let program = planted(
        "
        s_mov_b64 s[40:41], s[2:3]
        s_mov_b64 s[44:45], exec
        v_and_b32 v2, 3, v0
        v_mov_b32 v3, 0
        s_getreg_b32 s30, hwreg(HW_REG_MODE, 29, 3)
        v_cmp_lt_u32 vcc, 2, v2
        s_mov_b64 s[42:43], vcc
        s_cbranch_i_fork s[42:43], three
        s_getreg_b32 s31, hwreg(HW_REG_MODE, 29, 3)
        s_mov_b64 s[46:47], exec
        v_cmp_eq_u32 vcc, 1, v2
        s_mov_b64 s[42:43], vcc
        s_cbranch_i_fork s[42:43], one
        v_add_u32 v3, 100, v3
        s_branch inner
    one:
        v_add_u32 v3, 10, v3
    inner:
        s_cbranch_join s31
        s_mov_b64 exec, s[46:47]
        v_add_u32 v3, 1000, v3
        s_branch outer
    three:
        v_add_u32 v3, 1, v3
    outer:
        s_cbranch_join s30
        s_mov_b64 exec, s[44:45]
        v_add_u32 v3, v3, v2
        global_store_dword v1, v3, s[40:41]
        ",
        1,
    );
    let values: Vec<u32> = to_values(&program.outputs()[0]);
    let wanted = |lane: u32| match lane % 4 {
        3 => 1 + 3,
        1 => 1010 + 1,
        other => 1100 + other,
    };
    assert_eq!(values, (0..64).map(wanted).collect::<Vec<_>>());
}

#[test]
fn indirect_call_returns_behind_itself() {
    let program = planted(
        "
        s_getpc_b64 s[20:21]
    here:
        s_add_u32 s20, s20, twice-here
        s_addc_u32 s21, s21, 0
        v_mov_b32 v3, v0
        s_swappc_b64 s[22:23], s[20:21]
        s_call_b64 s[22:23], twice
        global_store_dword v1, v3, s[2:3]
        s_endpgm
    twice:
        v_add_u32 v3, v3, v3
        s_setpc_b64 s[22:23]
        ",
        1,
    );
    let values: Vec<u32> = to_values(&program.outputs()[0]);
    assert_eq!(values, (0..64).map(|lane| 4 * lane).collect::<Vec<_>>());
}
