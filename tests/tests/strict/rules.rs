//! Each rule, on gfx90a.

use super::planted::{self, run};
use flipwave_device::{Completion, DeviceFault, FaultCause};
use flipwave_isa::hazard::Mitigation;
use flipwave_sim::Purpose;
use flipwave_sim::strict::{Finding, Rule, Violation};
use flipwave_tests::{MACHINES, assemble};

/// [`planted::breaks`] on gfx90a.
fn breaks(rule: Rule, items: u32, wrong: &str, mended: &str) -> Violation {
    planted::breaks(MACHINES[0], rule, items, wrong, mended)
}

fn keeps(items: u32, mended: &str) {
    planted::keeps(MACHINES[0], items, mended);
}

#[test]
fn overwritten_gws_sources_are_reported() {
    let sync = |wait: &str| {
        format!(
            "s_mov_b32 m0, 0\n v_mov_b32 v2, 0\n s_nop 0\n ds_gws_init v2 offset:3 gds\n {wait}\n\
             wrong: v_mov_b32 v2, 1\n s_waitcnt lgkmcnt(0)\n"
        )
    };
    breaks(Rule::WaitCounter, 64, &sync("s_waitcnt lgkmcnt(0)"), &sync("s_waitcnt expcnt(0)"));
}

#[test]
fn missing_waits_for_results_are_reported() {
    let load = "global_load_dword v2, v1, s[2:3]\n";
    let lds = ".set lds_bytes, 256\n ds_write_b32 v1, v0\n";
    for (before, wait, too_little, after) in [
        (load, "s_waitcnt vmcnt(0)", "s_nop 0", "v_add_u32 v3, 1, v2"),
        // A write to a register that is being loaded.
        (load, "s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)", "v_mov_b32 v2, 0"),
        // Loads and stores share a counter and complete in order.
        (
            "global_load_dword v2, v1, s[2:3]\n global_load_dword v3, v1, s[2:3]\n",
            "s_waitcnt vmcnt(1)",
            "s_waitcnt vmcnt(2)",
            "v_mov_b32 v4, v2",
        ),
        (
            "global_load_dword v2, v1, s[2:3]\n global_store_dword v1, v0, s[2:3]\n",
            "s_waitcnt vmcnt(1)",
            "s_waitcnt vmcnt(2)",
            "v_mov_b32 v4, v2",
        ),
        (
            "global_atomic_add v2, v1, v0, s[2:3] glc\n",
            "s_waitcnt vmcnt(0)",
            "s_waitcnt vmcnt(1)",
            "global_store_dword v1, v2, s[2:3]",
        ),
        // Scalar loads complete out of order.
        (
            "s_load_dword s4, s[2:3], 0x0\n s_load_dword s5, s[2:3], 0x4\n",
            "s_waitcnt lgkmcnt(0)",
            "s_waitcnt lgkmcnt(1)",
            "s_mov_b32 s6, s4",
        ),
        // LDS accesses complete in order, but not with scalar loads.
        (
            &format!("{lds} ds_read_b32 v2, v1\n ds_read_b32 v3, v1\n"),
            "s_waitcnt lgkmcnt(1)",
            "s_waitcnt lgkmcnt(2)",
            "v_mov_b32 v4, v2",
        ),
        (
            &format!("{lds} ds_read_b32 v2, v1\n s_load_dword s4, s[2:3], 0x0\n"),
            "s_waitcnt lgkmcnt(0)",
            "s_waitcnt lgkmcnt(1)",
            "v_mov_b32 v4, v2",
        ),
        (
            &format!("{lds} ds_bpermute_b32 v2, v1, v0\n"),
            "s_waitcnt lgkmcnt(0)",
            "s_waitcnt vmcnt(0)",
            "v_mov_b32 v4, v2",
        ),
        // A flat access to LDS increments both counters, and requires waiting for both.
        (
            &format!(
                "{lds} s_mov_b64 s[4:5], src_shared_base\n v_mov_b32 v6, v1\n \
                      v_mov_b32 v7, s5\n flat_load_dword v2, v[6:7]\n"
            ),
            "s_waitcnt vmcnt(0) lgkmcnt(0)",
            "s_waitcnt vmcnt(0)",
            "v_mov_b32 v4, v2",
        ),
    ] {
        let with = |wait: &str| format!("{before}{wait}\nwrong: {after}\n");
        let violation = breaks(Rule::WaitCounter, 64, &with(too_little), &with(wait));
        let text = violation.to_string();
        // The report names the sufficient wait.
        let missing = wait.split_whitespace().skip(1).filter(|word| !too_little.contains(word));
        for word in missing {
            assert!(text.contains(word), "{wait}:\n{text}");
        }
    }
}

#[test]
fn redundant_waits_are_not_required() {
    // Loads into the same register, or into its halves, complete in order.
    keeps(64, "global_load_dword v2, v1, s[2:3]\n global_load_dword v2, v1, s[2:3]\n");
    keeps(64, "global_load_short_d16 v2, v1, s[2:3]\n global_load_short_d16_hi v2, v1, s[2:3]\n");
    // Address and data registers are read at issue.
    keeps(64, "global_store_dword v1, v0, s[2:3]\n v_mov_b32 v0, 0\n v_mov_b32 v1, 0\n");
    // A flat access to device memory does not use LDS.
    keeps(
        64,
        "v_mov_b32 v6, s2\n v_mov_b32 v7, s3\n flat_load_dword v2, v[6:7]\n \
         s_waitcnt vmcnt(0)\n v_mov_b32 v4, v2\n",
    );
}

/// Setup, trigger, required wait states, and victim.
const HAZARDS: &[(&str, &str, u32, &str)] = &[
    (
        "v_mov_b32 v9, s2\n s_nop 1",
        "v_readlane_b32 s2, v9, 0",
        5,
        "global_load_dword v2, v1, s[2:3]",
    ),
    ("", "v_readfirstlane_b32 s4, v0", 4, "v_readlane_b32 s5, v0, s4"),
    ("", "v_cmp_lt_u32 vcc, v0, v1", 4, "v_div_fmas_f32 v2, v0, v1, v1"),
    ("", "v_cmp_lt_u32 vcc, v0, v1", 5, "v_mov_b32 v2, src_vccz"),
    (
        "",
        "v_mov_b32 v2, v0",
        2,
        "v_mov_b32_dpp v3, v2 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
    ),
    (
        "",
        "v_cmpx_ge_u32 vcc, v1, v0",
        5,
        "v_mov_b32_dpp v3, v0 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
    ),
    ("", "global_store_dwordx4 v1, v[4:7], s[2:3]", 1, "v_mov_b32 v6, 0"),
    (
        "",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3",
        2,
        "s_getreg_b32 s4, hwreg(HW_REG_MODE, 4, 2)",
    ),
    (
        "",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3",
        2,
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), 3",
    ),
    ("", "s_mov_b32 m0, 0", 1, "s_movrels_b32 s4, s2"),
    ("s_nop 1", "v_mov_b32 v4, 0", 2, "v_mfma_f32_4x4x1f32 v[8:11], v4, v1, v[12:15]"),
    ("s_nop 1", "v_mfma_f32_4x4x1f32 v[4:7], v0, v1, v[4:7]", 5, "v_mov_b32 v2, v4"),
    ("s_nop 1", "v_mfma_f32_4x4x1f32 v[4:7], v0, v1, v[8:11]", 1, "v_mov_b32 v8, 0"),
    (
        "s_nop 1",
        "v_mfma_f32_4x4x1f32 v[4:7], v0, v1, v[4:7]",
        2,
        "v_mfma_f32_4x4x1f32 v[12:15], v0, v1, v[6:9]",
    ),
    (
        "s_nop 1",
        "v_mfma_f32_4x4x1f32 a[4:7], v0, v1, a[4:7]",
        5,
        "global_store_dword v1, a4, s[2:3]",
    ),
    ("s_nop 1", "v_mfma_f32_16x16x4f32 v[4:7], v0, v1, v[4:7]", 11, "v_mov_b32 v7, 0"),
    (
        "s_nop 1",
        "v_mfma_f32_16x16x4f32 v[4:7], v0, v1, v[4:7]",
        11,
        "v_mfma_f32_4x4x1f32 v[12:15], v4, v1, v[12:15]",
    ),
    (
        "s_nop 1",
        "v_mfma_f32_32x32x2f32 v[4:19], v0, v1, v[4:19]",
        19,
        "global_store_dword v1, v19, s[2:3]",
    ),
    ("s_nop 1", "v_mfma_f64_4x4x4f64 v[4:5], v[0:1], v[0:1], v[4:5]", 6, "v_mov_b32 v2, v4"),
    (
        "s_nop 1",
        "v_mfma_f64_4x4x4f64 v[4:5], v[0:1], v[0:1], v[4:5]",
        9,
        "global_store_dword v1, v4, s[2:3]",
    ),
    (
        "s_nop 1",
        "v_mfma_f64_4x4x4f64 v[4:5], v[0:1], v[0:1], v[4:5]",
        2,
        "v_fma_f64 v[8:9], v[0:1], v[0:1], v[0:1]",
    ),
    (
        "s_nop 1",
        "v_mfma_f64_16x16x4f64 v[4:11], v[0:1], v[0:1], v[4:11]",
        18,
        "global_store_dword v1, v4, s[2:3]",
    ),
    ("", "v_dot2_f32_f16 v4, v0, v1, v4", 3, "v_mov_b32 v2, v4"),
    ("", "v_dot2_f32_f16 v4, v0, v1, v4", 3, "v_dot2_f32_f16 v5, v4, v1, v5"),
];

/// `s_nop` instructions with `states` wait states in total.
fn nops(states: u32) -> String {
    let (eights, rest) = (states / 8, states % 8);
    let rest = if rest > 0 { format!("s_nop {}\n", rest - 1) } else { String::new() };
    "s_nop 7\n".repeat(eights as usize) + &rest
}

#[test]
fn missing_wait_states_are_reported() {
    for (before, trigger, states, victim) in HAZARDS {
        let with = |states: u32| format!("{before}\n{trigger}\n{}wrong: {victim}\n", nops(states));
        let violation = breaks(Rule::ManualHazard, 64, &with(states - 1), &with(*states));
        let Finding::TooClose { distance, needed, .. } = violation.finding else { unreachable!() };
        assert_eq!(u32::from(distance), states - 1);
        assert_eq!(needed, Mitigation::WaitStates(*states as u8));
    }
}

#[test]
fn double_precision_matrices_between_a_write_and_memory_count_as_a_hazard() {
    let matrix = "v_mfma_f64_4x4x4f64 v[4:5], v[0:1], v[0:1], v[4:5]\n";
    let with = |between: &str| {
        format!(
            "s_nop 1\n v_mov_b32 v20, 0\n{between}\nwrong: global_store_dword v1, v20, s[2:3]\n"
        )
    };
    breaks(Rule::ManualHazard, 64, &with(matrix), &with(&format!("{matrix} s_nop 0\n")));
    keeps(64, &with("v_mov_b32 v21, 0\n"));
}

#[test]
fn decisions_by_undefined_values_are_reported() {
    let gather = "wrong: global_load_dword v3, v21, s[2:3]\n";
    let branch = "s_cmp_eq_u32 s10, 0\nwrong: s_cbranch_scc1 end\n";
    let lds = ".set lds_bytes, 256\n";
    let read = "ds_read_b32 v21, v1\n s_waitcnt lgkmcnt(0)\n v_and_b32 v21, 0xfc, v21\n";
    for (purpose, wrong, mended) in [
        (Purpose::Address, gather.to_owned(), format!("v_mov_b32 v21, 0\n{gather}")),
        // Tracked through copies and masks; a mask of zero gives a defined result.
        (
            Purpose::Address,
            format!("v_lshlrev_b32 v21, 2, v20\n v_and_b32 v21, 0xfc, v21\n{gather}"),
            format!("v_lshlrev_b32 v21, 2, v20\n v_and_b32 v21, 3, v21\n{gather}"),
        ),
        (
            Purpose::Address,
            format!("v_add_u32 v21, v20, v20\n v_and_b32 v21, 0xfc, v21\n{gather}"),
            format!("v_xor_b32 v21, v20, v20\n{gather}"),
        ),
        // Lanes that were inactive when the register was written.
        (
            Purpose::Address,
            format!("s_mov_b64 exec, 1\n v_mov_b32 v21, 0\n s_mov_b64 exec, 3\n{gather}"),
            format!("s_mov_b64 exec, 3\n v_mov_b32 v21, 0\n s_mov_b64 exec, 1\n{gather}"),
        ),
        (
            Purpose::Address,
            format!("{lds}{read}{gather}"),
            format!("{lds} ds_write_b32 v1, v0\n{read}{gather}"),
        ),
        (
            Purpose::Exec,
            "wrong: s_and_b64 exec, exec, s[10:11]\n".to_owned(),
            "s_mov_b64 s[10:11], -1\n s_and_b64 exec, exec, s[10:11]\n".to_owned(),
        ),
        (Purpose::Condition, branch.to_owned(), format!("s_mov_b32 s10, 0\n{branch}")),
        (
            Purpose::Condition,
            "v_cmp_eq_u32 vcc, 0, v20\nwrong: s_cbranch_vccz end\n".to_owned(),
            // One defined lane determines the branch.
            "v_cmp_eq_u32 vcc, 0, v20\n s_or_b32 vcc_lo, vcc_lo, 1\n s_cbranch_vccz end\n"
                .to_owned(),
        ),
        (
            Purpose::Index,
            "wrong: s_movrels_b32 s6, s2\n".to_owned(),
            "s_mov_b32 m0, 0\n s_nop 0\n s_movrels_b32 s6, s2\n".to_owned(),
        ),
        // The mode initialises the bits of M0 that it reads.
        (
            Purpose::Index,
            "s_set_gpr_idx_on s10, gpr_idx(SRC0)\nwrong: v_mov_b32 v5, v0\n s_set_gpr_idx_off\n"
                .to_owned(),
            "s_mov_b32 s10, 0\n s_set_gpr_idx_on s10, gpr_idx(SRC0)\n v_mov_b32 v5, v0\n\
             s_set_gpr_idx_off\n"
                .to_owned(),
        ),
        // A scalar load from beyond the kernel arguments.
        (
            Purpose::Condition,
            "s_load_dwordx2 s[10:11], s[0:1], 0x4\n s_waitcnt lgkmcnt(0)\n s_cmp_eq_u32 s11, 0\n\
             wrong: s_cbranch_scc1 end\n"
                .to_owned(),
            "s_load_dwordx2 s[10:11], s[0:1], 0x4\n s_waitcnt lgkmcnt(0)\n s_cmp_eq_u32 s10, 0\n\
             s_cbranch_scc1 end\n"
                .to_owned(),
        ),
    ] {
        let violation = breaks(Rule::UndefinedValue, 64, &wrong, &mended);
        let Finding::Undefined { purpose: found, .. } = violation.finding else { unreachable!() };
        assert_eq!(found, purpose, "{wrong}");
    }
}

#[test]
fn accesses_outside_lds_are_reported() {
    let with = |bytes: u32| {
        format!(".set lds_bytes, {bytes}\n v_add_u32 v2, 4, v1\nwrong: ds_write_b32 v2, v0\n")
    };
    let violation = breaks(Rule::LdsBounds, 64, &with(256), &with(260));
    assert_eq!(violation.lanes.0, 1 << 63);
    // A dword per lane, loaded from memory to the LDS address in M0.
    let moved = |bytes: u32| {
        format!(
            ".set lds_bytes, {bytes}\n s_mov_b32 m0, 0\n s_mov_b64 s[4:5], s[2:3]\n \
             s_mov_b32 s6, 4000\n s_mov_b32 s7, 0x20000\n s_nop 0\n\
             wrong: buffer_load_dword v1, s[4:7], 0 offen lds\n s_waitcnt vmcnt(0)\n"
        )
    };
    let violation = breaks(Rule::LdsBounds, 64, &moved(252), &moved(256));
    assert_eq!(violation.lanes.0, 1 << 63);
}

#[test]
fn accesses_outside_allocations_are_reported() {
    let with = |offset: u32| format!("wrong: global_load_dword v2, v1, s[2:3] offset:{offset}\n");
    let violation = breaks(Rule::MemoryBounds, 64, &with(3752), &with(3744));
    assert_eq!(violation.lanes.0, 0b11 << 62);
}

#[test]
fn misaligned_scalar_addresses_are_reported() {
    let with = |offset: u32| {
        format!(
            "s_add_u32 s4, s2, {offset}\n s_addc_u32 s5, s3, 0\nwrong: s_load_dword s6, s[4:5], 0x0\n"
        )
    };
    breaks(Rule::Alignment, 64, &with(2), &with(4));
}

#[test]
fn unallocated_registers_are_reported() {
    // No AccVGPRs, which would begin at v32.
    let has = ".set vgprs, 32\n .set accum_offset, 32\n";
    let vector = |register: u32| format!("{has}wrong: v_mov_b32 v2, v{register}\n");
    breaks(Rule::RegisterAllocation, 64, &vector(32), &vector(31));
    let shift = |register: u32| format!("{has}wrong: v_lshlrev_b64 v[2:3], v{register}, v[4:5]\n");
    breaks(Rule::RegisterAllocation, 64, &shift(31), &shift(23));
    let scalar = |register: u32| format!("wrong: s_mov_b32 s4, s{register}\n");
    breaks(Rule::RegisterAllocation, 64, &scalar(80), &scalar(79));
}

#[test]
fn missing_lds_wait_before_a_barrier_is_reported() {
    let with = |wait: &str| {
        format!(
            ".set lds_bytes, 512\n v_xor_b32 v2, 0x100, v1\n ds_write_b32 v1, v0\n {wait}\n \
             s_barrier\nwrong: ds_read_b32 v3, v2\n"
        )
    };
    breaks(Rule::LdsAtBarrier, 128, &with(""), &with("s_waitcnt lgkmcnt(0)"));
}

#[test]
fn different_barriers_are_reported() {
    let start = "v_readfirstlane_b32 s4, v0\n s_cmp_eq_u32 s4, 0\n s_cbranch_scc1 first\n";
    breaks(
        Rule::DifferentBarriers,
        128,
        &format!("{start}wrong: s_barrier\n s_branch end\nfirst: s_barrier\n"),
        &format!("{start} s_nop 0\nfirst: s_barrier\n"),
    );
    // Barriers ignore waves that have ended.
    keeps(128, &format!("{start} s_barrier\nfirst: s_nop 0\n"));
}

#[test]
fn a_barrier_that_a_wave_never_reaches_is_reported() {
    let violation = breaks(
        Rule::BarrierNotReached,
        128,
        "v_readfirstlane_b32 s4, v0\n s_cmp_eq_u32 s4, 0\nloop: s_cbranch_scc1 loop\nwrong: s_barrier\n",
        "v_readfirstlane_b32 s4, v0\n s_cmp_eq_u32 s4, 0\n s_cbranch_scc1 next\nnext: s_barrier\n",
    );
    assert_eq!(violation.wave.wave, 1);
}

#[test]
fn violation_in_a_loop_is_reported_once_with_a_count() {
    let assembly = assemble(
        "s_mov_b32 s4, 10\nagain: global_load_dword v2, v1, s[2:3]\nwrong: v_mov_b32 v3, v2\n \
         s_sub_u32 s4, s4, 1\n s_cmp_lg_u32 s4, 0\n s_cbranch_scc1 again\n",
    );
    let (_, found) = run(&assembly, 128);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].count, 20);
}

#[test]
fn device_fault_is_equal_on_the_strict_level() {
    let assembly =
        assemble("v_mov_b32 v2, 0\n v_mov_b32 v3, 0\n global_load_dword v4, v[2:3], off\n");
    let (end, found) = run(&assembly, 64);
    assert!(found.is_empty());
    let Completion::Faulted(DeviceFault { cause, .. }) = end else { panic!("it completed") };
    assert!(matches!(cause, FaultCause::MemoryViolation { .. }));
}
