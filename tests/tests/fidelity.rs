//! Fidelity: reports contain the exactness of each executed operation, and results that no document
//! specifies are tracked to the decisions that depend on them, and to no others.

use flipwave_campaigns::{Campaign, prepare};
use flipwave_device::Completion;
use flipwave_injector::{FidelityRecord, Workload};
use flipwave_machine::{Doubt, Exactness, Fidelity};
use flipwave_sim::{FidelityCheck, Progress, Purpose, Unobserved};
use flipwave_tests::{
    Assembly, MACHINES, Machine, TestProgram, assemble_for, compile_for, examples_folder, gpu,
    gpu_mut, machines, scalar,
};

/// An MI300 instruction with an unsettled result (not specified by any document), in v4.
const UNSETTLED: &str = "v_cvt_sr_fp8_f32 v4, v1, v1\ns_nop 1\n";
/// An instruction with a settled result, as a replacement for [`UNSETTLED`].
const SETTLED: &str = "v_add_f32 v4, v1, v1\ns_nop 1\n";
/// A load that uses v4 as an address.
const AS_ADDRESS: &str = "v_and_b32 v5, 0xfc, v4\nhere: global_load_dword v6, v5, s[2:3]\n\
                          s_waitcnt vmcnt(0)\n";

fn gfx942() -> Machine {
    *MACHINES.iter().find(|machine| machine.target().processor() == "gfx942").expect("a machine")
}

/// Runs instructions in one wave, in the given number of dispatches.
fn run(assembly: &Assembly, dispatches: usize) -> Fidelity {
    let mut program = TestProgram::new(&assembly.code_object);
    let buffer = program.output(&[0u32; 1024]);
    for _ in 0..dispatches {
        program.launch("planted", [64, 1, 1], [64, 1, 1], std::slice::from_ref(&buffer));
    }
    let workload = program.workload();
    let (golden, fidelity) = workload.golden_with_fidelity().expect("a golden run");
    assert_eq!(golden, workload.golden().expect("a golden run"), "tracking changes the results");
    fidelity
}

/// Decisions that depend on unsettled results. Panics if one is not at the label `here`.
fn decided(body: &str, dispatches: usize) -> Vec<String> {
    let assembly = assemble_for(gfx942(), body);
    let fidelity = run(&assembly, dispatches);
    let decisions = fidelity.decisions.iter();
    decisions
        .map(|decision| {
            assert_eq!(decision.pc, assembly.label("here"), "{body}: {decision:?}");
            assert_eq!(decision.kernel, "planted");
            decision.decides.clone()
        })
        .collect()
}

/// Asserts that `way` decides `purpose` if v4 is unsettled, and nothing if v4 is settled.
fn decides(way: &str, purpose: Purpose) {
    assert_eq!(decided(&format!("{UNSETTLED}{way}"), 1), [purpose.to_string()], "{way}");
    assert!(decided(&format!("{SETTLED}{way}"), 1).is_empty(), "{way}");
}

#[test]
fn fidelity_counts_executions_by_exactness() {
    let body = format!("{UNSETTLED}v_rcp_f32 v5, v4\nv_rcp_f32 v5, v5\nv_add_f32 v5, v5, v5\n");
    let fidelity = run(&assemble_for(gfx942(), &body), 3);
    let find = |name: &str| {
        let operation = fidelity.operations.iter().find(|operation| operation.operation == name);
        operation.unwrap_or_else(|| panic!("no {name} in {fidelity:?}"))
    };
    assert!(matches!(find("v_cvt_sr_fp8_f32").exactness, Exactness::NotSettled(_)));
    assert_eq!(find("v_cvt_sr_fp8_f32").executions, 3);
    assert!(matches!(find("v_rcp_f32").exactness, Exactness::WithinError(_)));
    assert_eq!(find("v_rcp_f32").executions, 6);
    let add = find("v_add_f32");
    assert_eq!((&add.exactness, add.executions), (&Exactness::Exact, 3));
    let order: Vec<&str> =
        fidelity.operations.iter().map(|operation| &*operation.operation).take(2).collect();
    assert_eq!(order, ["v_cvt_sr_fp8_f32", "v_rcp_f32"], "the least certain ones are first");
    let executed: u64 = fidelity.operations.iter().map(|operation| operation.executions).sum();
    assert_eq!(executed, 3 * 9, "three dispatches of nine instructions");
}

#[test]
fn data_with_unspecified_bits_makes_no_decision() {
    for way in [
        "global_store_dword v1, v4, s[2:3]",
        "v_and_b32 v5, 0, v4\nglobal_load_dword v6, v5, s[2:3]\ns_waitcnt vmcnt(0)",
        "v_xor_b32 v5, v4, v4\nglobal_load_dword v6, v5, s[2:3]\ns_waitcnt vmcnt(0)",
        "v_mov_b32 v4, v1\nglobal_load_dword v6, v4, s[2:3]\ns_waitcnt vmcnt(0)",
        "v_cmp_lt_u32 vcc, 3, v4\nv_cndmask_b32 v5, v1, v4, vcc\nglobal_store_dword v1, v5, s[2:3]",
    ] {
        assert!(decided(&format!("{UNSETTLED}{way}\nhere: s_nop 0\n"), 1).is_empty(), "{way}");
    }
}

#[test]
fn unsettled_registers_are_tracked_to_decisions() {
    decides(AS_ADDRESS, Purpose::Address);
    decides(
        "v_readfirstlane_b32 s4, v4\ns_cmp_eq_u32 s4, 0\nhere: s_cbranch_scc1 end\n",
        Purpose::Condition,
    );
    decides(
        "v_cmp_lt_u32 vcc, 3, v4\ns_nop 1\nhere: s_and_saveexec_b64 s[4:5], vcc\n",
        Purpose::Exec,
    );
    // Results are also tracked through operations across lanes.
    decides(
        &format!(
            "v_mov_b32_dpp v4, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf\n{AS_ADDRESS}"
        ),
        Purpose::Address,
    );
    decides(
        "v_accvgpr_write_b32 a0, v4\ns_nop 4\nv_accvgpr_read_b32 v5, a0\nv_and_b32 v5, 0xfc, v5\n\
         here: global_load_dword v6, v5, s[2:3]\ns_waitcnt vmcnt(0)\n",
        Purpose::Address,
    );
}

#[test]
fn unsettled_results_are_tracked_through_memory() {
    let lds = ".set lds_bytes, 2048\n";
    let private = ".set private_bytes, 16\n";
    for (way, directives) in [
        ("ds_write_b32 v1, v4\ns_waitcnt lgkmcnt(0)\nds_read_b32 v4, v1\n", lds),
        (
            "ds_write_b32 v1, v4 offset:512\ns_waitcnt lgkmcnt(0)\nds_read_b32 v4, v1 offset:512\n",
            lds,
        ),
        (
            "scratch_store_dword off, v4, off offset:4\ns_waitcnt vmcnt(0)\n\
          scratch_load_dword v4, off, off offset:4\n",
            private,
        ),
        (
            "global_store_dword v1, v4, s[2:3]\ns_waitcnt vmcnt(0)\n\
          global_load_dword v4, v1, s[2:3]\n",
            "",
        ),
        (
            "global_store_short v1, v4, s[2:3]\ns_waitcnt vmcnt(0)\n\
          global_load_ushort v4, v1, s[2:3]\n",
            "",
        ),
        (
            "global_atomic_add v1, v4, s[2:3]\ns_waitcnt vmcnt(0)\n\
          global_load_dword v4, v1, s[2:3]\n",
            "",
        ),
        (
            "global_atomic_add v5, v1, v4, s[2:3] sc0\ns_waitcnt vmcnt(0)\n\
          global_atomic_add v4, v1, v1, s[2:3] sc0\n",
            "",
        ),
        (
            "v_mov_b32 v6, s2\nv_mov_b32 v7, s3\nflat_store_dword v[6:7], v4\n\
          s_waitcnt vmcnt(0) lgkmcnt(0)\nflat_load_dword v4, v[6:7]\n",
            "",
        ),
        (
            "global_store_dword v1, v4, s[2:3]\ns_waitcnt vmcnt(0)\ns_load_dword s4, s[2:3], 0x8\n\
          s_waitcnt lgkmcnt(0)\nv_mov_b32 v4, s4\n",
            "",
        ),
    ] {
        let way = format!("{way}s_waitcnt vmcnt(0) lgkmcnt(0)\n{AS_ADDRESS}{directives}");
        decides(&way, Purpose::Address);
    }
}

/// Unsettled values in one part of memory do not affect other parts.
#[test]
fn unsettled_memory_does_not_affect_other_memory() {
    let lds = ".set lds_bytes, 2048\n";
    for (way, directives) in [
        (
            "ds_write_b32 v1, v4\nds_write_b32 v1, v1 offset:512\ns_waitcnt lgkmcnt(0)\n\
          ds_read_b32 v4, v1 offset:512\n",
            lds,
        ),
        (
            "ds_write_b32 v1, v4\ns_waitcnt lgkmcnt(0)\nds_write_b32 v1, v1\n\
          s_waitcnt lgkmcnt(0)\nds_read_b32 v4, v1\n",
            lds,
        ),
        (
            "global_store_dword v1, v4, s[2:3]\ns_waitcnt vmcnt(0)\n\
          global_load_dword v4, v1, s[2:3] offset:256\n",
            "",
        ),
        (
            "global_store_short v1, v4, s[2:3]\ns_waitcnt vmcnt(0)\n\
          global_load_ushort v4, v1, s[2:3] offset:2\n",
            "",
        ),
        ("global_atomic_add v4, v1, v4, s[2:3] sc0\n", ""),
    ] {
        let way =
            format!("{UNSETTLED}{way}s_waitcnt vmcnt(0) lgkmcnt(0)\n{AS_ADDRESS}{directives}");
        assert!(decided(&way, 1).is_empty(), "{way}");
    }
}

#[test]
fn unsettled_memory_is_tracked_across_dispatches() {
    let body = format!(
        "global_load_dword v4, v1, s[2:3]\ns_waitcnt vmcnt(0)\n{AS_ADDRESS}{UNSETTLED}\
         global_store_dword v1, v4, s[2:3]\ns_waitcnt vmcnt(0)\n"
    );
    assert!(decided(&body, 1).is_empty());
    assert_eq!(decided(&body, 2), [Purpose::Address.to_string()]);
}

/// An instruction whose result is specified within an error bound, in v4.
const WITHIN_ERROR: &str = "v_rcp_f32 v4, v1\ns_nop 1\n";

#[test]
fn decisions_by_results_within_an_error_are_reported() {
    for (way, purposes) in [
        ("here: v_cvt_u32_f32 v5, v4\n", &[Purpose::Integer][..]),
        ("here: v_cmp_lt_f32 vcc, 0, v4\n", &[Purpose::Comparison]),
        (AS_ADDRESS, &[Purpose::Address]),
        (
            "v_add_f32 v5, v4, v4\nv_readfirstlane_b32 s4, v5\ns_cmp_eq_u32 s4, 0\n\
             here: s_cbranch_scc1 end\n",
            &[Purpose::Condition],
        ),
        // Decisions of an integer that was converted from such a result are not tracked.
        (
            "here: v_cvt_u32_f32 v4, v4\nv_and_b32 v5, 0xfc, v4\n\
             global_load_dword v6, v5, s[2:3]\ns_waitcnt vmcnt(0)\n",
            &[Purpose::Integer],
        ),
        // A corrected quotient is exact, unless an operand is not.
        ("v_div_fixup_f32 v4, v4, v1, v1\nv_cmp_lt_f32 vcc, 0, v4\nhere: s_nop 0\n", &[]),
        ("v_div_fixup_f32 v4, v1, v1, v4\nhere: v_cmp_lt_f32 vcc, 0, v4\n", &[Purpose::Comparison]),
        ("global_store_dword v1, v4, s[2:3]\nhere: s_nop 0\n", &[]),
        ("v_mov_b32 v4, v1\nv_cmp_lt_f32 vcc, 0, v4\nhere: s_nop 0\n", &[]),
    ] {
        let purposes: Vec<String> = purposes.iter().map(Purpose::to_string).collect();
        assert_eq!(decided(&format!("{WITHIN_ERROR}{way}"), 1), purposes, "{way}");
        assert!(decided(&format!("{SETTLED}{way}"), 1).is_empty(), "{way}");
    }
    let mask = "v_cmp_lt_f32 vcc, 0, v4\ns_and_saveexec_b64 s[4:5], vcc\n";
    let fidelity = run(&assemble_for(gfx942(), &format!("{WITHIN_ERROR}{mask}")), 3);
    let found: Vec<_> = fidelity
        .decisions
        .iter()
        .map(|decision| (decision.decides.clone(), decision.count))
        .collect();
    assert_eq!(found, [Purpose::Comparison, Purpose::Exec].map(|purpose| (purpose.to_string(), 3)));
    assert!(fidelity.decisions.iter().all(|decision| decision.doubt == Doubt::WithinError));
}

/// Compilers compute quotients of integers from `v_rcp_iflag_f32` and correct them.
#[test]
fn integer_quotients_have_a_separate_purpose() {
    // gfx1250 code sets the high bits of register numbers; tracking ends there.
    let is_gfx1250 = |machine: &Machine| machine.target().processor() == "gfx1250";
    for machine in machines().filter(|machine| !is_gfx1250(machine)) {
        let code = compile_for(machine, "quotients.cl", &["-O3"]);
        let mut program = TestProgram::new(&code);
        let values: Vec<u32> = (1..65).collect();
        let table = program.input(&values);
        let out = program.output(&[0u32; 64]);
        program.launch("quotients", [64, 1, 1], [64, 1, 1], &[out, table, scalar(7u32)]);
        let (_, fidelity) = program.workload().golden_with_fidelity().expect("a fault-free run");
        let decided: Vec<&str> =
            fidelity.decisions.iter().map(|decision| &*decision.decides).collect();
        assert_eq!(decided, [Purpose::Quotient.to_string()], "{machine}: {:?}", fidelity.decisions);
        let line = FidelityRecord::of(&fidelity).to_string();
        let end = "of which a result is the estimate of a quotient of integers at 1 instruction";
        assert!(line.ends_with(end), "{machine}: {line}");
    }
}

/// The quotient of integers as compilers compute it (LLVM, `expandDivRem32`), from a reciprocal with an
/// error of `error` units in the last place.
fn quotient(dividend: u32, divisor: u32, error: i32) -> u32 {
    let high = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
    let reciprocal = f32::from_bits((1.0 / divisor as f32).to_bits().wrapping_add_signed(error));
    // The conversion saturates, as `v_cvt_u32_f32` does.
    let estimate = (reciprocal * f32::from_bits(0x4f7f_fffe)) as u32;
    let lacking = high(estimate, divisor.wrapping_neg().wrapping_mul(estimate));
    let mut quotient = high(dividend, estimate.wrapping_add(lacking));
    let mut rest = dividend.wrapping_sub(quotient.wrapping_mul(divisor));
    for _ in 0..2 {
        if rest >= divisor {
            quotient = quotient.wrapping_add(1);
            rest = rest.wrapping_sub(divisor);
        }
    }
    quotient
}

#[test]
fn integer_quotients_are_exact_for_reciprocals_within_the_error() {
    let ends = [1, 2, 3, 7, 10, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX - 1, u32::MAX];
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 32) as u32 >> (state >> 27 & 31)
    };
    let pairs: Vec<[u32; 2]> = ends
        .into_iter()
        .flat_map(|dividend| ends.map(|divisor| [dividend, divisor]))
        .chain((0..200_000).map(|_| [random(), random().max(1)]))
        .collect();
    // At most one unit from the exact reciprocal.
    let is_within = |divisor: u32, error: i32| {
        let rounded = (1.0 / divisor as f32).to_bits();
        let candidate = |off: i32| f64::from(f32::from_bits(rounded.wrapping_add_signed(off)));
        (candidate(error) - 1.0 / f64::from(divisor)).abs()
            <= candidate(error + 1) - candidate(error)
    };
    let wrong = |error: i32, is_allowed: bool| {
        let selected = pairs.iter().filter(|[_, divisor]| is_within(*divisor, error) == is_allowed);
        selected
            .filter(|[dividend, divisor]| {
                quotient(*dividend, *divisor, error) != dividend / divisor
            })
            .count()
    };
    for error in -1..=1 {
        assert_eq!(wrong(error, true), 0, "{error} units");
    }
    assert!(wrong(1, false) > 0 && wrong(2, false) > 0);
}

/// Returns `true` if static analysis proves that unsettled results decide nothing.
fn has_settled_course(body: &str, memory_may_be_marked: bool) -> bool {
    let mut program = TestProgram::new(&assemble_for(gfx942(), body).code_object);
    let buffer = program.output(&[0u32; 1024]);
    program.launch("planted", [64, 1, 1], [64, 1, 1], std::slice::from_ref(&buffer));
    let Workload { device, program, .. } = program.workload();
    device.has_settled_course(&program.dispatches[0], memory_may_be_marked)
}

#[test]
fn static_analysis_recognises_settled_control_flow() {
    let store = "global_store_dword v1, v4, s[2:3]\n";
    for (way, is_settled) in [
        (store.to_owned(), true),
        (format!("v_mov_b32 v4, v1\n{AS_ADDRESS}"), true),
        (AS_ADDRESS.to_owned(), false),
        // Inactive lanes keep their values until they are active again.
        (format!("s_mov_b64 exec, 1\nv_mov_b32 v4, v1\n{AS_ADDRESS}"), true),
        (format!("s_mov_b64 exec, 1\nv_mov_b32 v4, v1\ns_mov_b64 exec, -1\n{AS_ADDRESS}"), false),
        (format!("s_and_saveexec_b64 s[4:5], vcc\nv_mov_b32 v4, v1\n{AS_ADDRESS}"), true),
        (
            format!(
                "s_and_saveexec_b64 s[4:5], vcc\nv_mov_b32 v4, v1\ns_or_b64 exec, exec, s[4:5]\n\
                 {AS_ADDRESS}"
            ),
            false,
        ),
        // The lanes that were inactive before and keep their values.
        (
            format!(
                "s_mov_b64 exec, 1\nv_mov_b32 v4, v1\ns_andn2_saveexec_b64 s[4:5], vcc\n{AS_ADDRESS}"
            ),
            false,
        ),
        // A loop.
        (
            "again: v_mov_b32 v5, v7\nv_mov_b32 v7, v4\nglobal_load_dword v6, v5, s[2:3]\n\
             s_cbranch_scc1 again\n"
                .to_owned(),
            false,
        ),
        // Through memory and LDS, and from other lanes.
        (
            format!("{store}global_load_dword v4, v1, s[2:3]\ns_waitcnt vmcnt(0)\n{AS_ADDRESS}"),
            false,
        ),
        (
            format!(
                ".set lds_bytes, 1024\nds_write_b32 v1, v4\nds_read_b32 v4, v1\n\
                     s_waitcnt lgkmcnt(0)\n{AS_ADDRESS}"
            ),
            false,
        ),
        (format!("v_readfirstlane_b32 s4, v4\nv_mov_b32 v4, s4\n{AS_ADDRESS}"), false),
        ("v_cmp_lt_u32 vcc, 3, v4\ns_cbranch_vccz end\n".to_owned(), false),
        ("v_cmp_lt_u32 vcc, 3, v4\ns_and_saveexec_b64 s[4:5], vcc\n".to_owned(), false),
    ] {
        assert_eq!(has_settled_course(&format!("{UNSETTLED}{way}"), false), is_settled, "{way}");
        assert!(has_settled_course(&format!("{SETTLED}{way}"), false), "{way}");
    }
    // Register numbers that static analysis does not know.
    let mode = |field: &str| {
        has_settled_course(&format!("s_setreg_imm32_b32 hwreg(HW_REG_MODE, {field}\n"), false)
    };
    assert!(mode("4, 4), 15"));
    assert!(!mode("27, 1), 1"));
    assert!(!has_settled_course("s_set_gpr_idx_on s4, gpr_idx(SRC0)\n", false));
    // Kernel arguments come from the host and are settled, even if memory is not.
    let loads = format!("global_load_dword v4, v1, s[2:3]\ns_waitcnt vmcnt(0)\n{AS_ADDRESS}");
    assert!(has_settled_course(&loads, false));
    assert!(!has_settled_course(&loads, true));
    assert!(has_settled_course("global_load_dword v4, v1, s[2:3]\n", true));
}

#[test]
fn wmma_matrix_product_needs_no_tracking() {
    let file = examples_folder().join("matrix/wmma.yaml");
    let campaign = Campaign::read(&file).expect("a campaign");
    let workload = prepare(&campaign).expect("a workload").workload;
    assert!(gpu(&workload.device).has_settled_course(&workload.program.dispatches[0], true));
}

/// Fidelity records of three dispatches, one each. `renew` is called before each dispatch and may reset
/// the tracking.
fn run_in_parts(assembly: &Assembly, renew: fn(&mut FidelityCheck)) -> Vec<FidelityRecord> {
    let mut program = TestProgram::new(&assembly.code_object);
    let buffer = program.output(&[0u32; 1024]);
    program.launch("planted", [64, 1, 1], [64, 1, 1], std::slice::from_ref(&buffer));
    let Workload { mut device, program, .. } = program.workload();
    let device = gpu_mut(&mut device);
    let [dispatch] = &program.dispatches[..] else { panic!("one dispatch") };
    let mut check = FidelityCheck::new();
    let mut part = || {
        renew(&mut check);
        let mut execution = device.begin(dispatch).expect("a beginning");
        device.begin_fidelity("planted", &execution, &mut check);
        let end =
            device.advance_with_fidelity(&mut execution, &mut Unobserved, &mut check, u64::MAX);
        assert!(matches!(end, Ok(Progress::Ended(Completion::Completed(_)))), "{end:?}");
        FidelityRecord::of(&device.fidelity(&mut check))
    };
    vec![part(), part(), part()]
}

/// Unsettled values in memory are tracked across dispatches that are reported separately.
#[test]
fn fidelity_of_dispatches_adds_up() {
    let body = |first: &str| {
        format!(
            "global_load_dword v4, v1, s[2:3]\ns_waitcnt vmcnt(0)\n{AS_ADDRESS}{first}\
             global_store_dword v1, v4, s[2:3]\ns_waitcnt vmcnt(0)\n"
        )
    };
    let decided = |parts: &[FidelityRecord]| -> Vec<usize> {
        parts.iter().map(|record| record.decisions.len()).collect()
    };
    let assembly = assemble_for(gfx942(), &body(UNSETTLED));
    let parts = run_in_parts(&assembly, |_| {});
    assert_eq!(decided(&parts), [0, 1, 1]);
    let mut sum = FidelityRecord::default();
    parts.into_iter().for_each(|part| sum.add(part));
    assert_eq!(sum, FidelityRecord::of(&run(&assembly, 3)));

    let forgetful = run_in_parts(&assembly, |check| *check = FidelityCheck::new());
    assert_eq!(decided(&forgetful), [0, 0, 0]);
    let settled = run_in_parts(&assemble_for(gfx942(), &body(SETTLED)), |_| {});
    assert_eq!(decided(&settled), [0, 0, 0]);
}

/// The low half of a 16-bit scalar result is settled, and the high half is not.
#[test]
fn only_unsettled_halves_of_results_are_tracked() {
    let machine = MACHINES
        .into_iter()
        .find(|machine| machine.target().processor() == "gfx1151")
        .expect("a machine");
    let body = |mask: &str| {
        format!(
            "s_add_f16 s4, s2, s3\ns_and_b32 s4, s4, {mask}\nv_mov_b32 v5, s4\n\
             v_and_b32 v5, 0xfc, v5\nv_add_nc_u32 v5, v5, v1\n\
             here: global_load_b32 v6, v5, s[2:3]\ns_waitcnt vmcnt(0)\n"
        )
    };
    let masked = |mask| run(&assemble_for(machine, &body(mask)), 1);
    assert!(masked("0xffff").decisions.is_empty(), "{:?}", masked("0xffff"));
    let high = body("0xffff0000").replace("v_and_b32 v5, 0xfc, v5", "v_bfe_u32 v5, v5, 16, 4");
    assert_eq!(run(&assemble_for(machine, &high), 1).decisions.len(), 1);
}
