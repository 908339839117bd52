//! Rules that only other generations have, or that differ there.

use super::planted::{breaks, keeps};
use flipwave_isa::Generation;
use flipwave_sim::strict::{Finding, Rule};
use flipwave_tests::{MACHINES, Machine};

fn machines(processor: &str) -> impl Iterator<Item = Machine> {
    MACHINES.into_iter().filter(move |machine| machine.target().processor() == processor)
}

/// Setup, trigger, an insufficient mitigation, a sufficient mitigation, and the victim.
type Case = (&'static str, &'static str, &'static str, &'static str, &'static str);

const SGEMM: &str = "v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, v[4:7]";
const XDL: &str = "v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[0:1], v[4:7]";

const GFX942: &[Case] = &[
    ("", "v_rcp_f32 v2, v0", "", "s_nop 0", "v_mov_b32 v3, v2"),
    ("", "v_cmp_lt_u32 s[4:5], v0, v1", "s_nop 0", "s_nop 1", "v_cndmask_b32 v2, v0, v1, s[4:5]"),
    ("", "v_cmp_lt_u32 vcc, v0, v1", "s_nop 0", "s_nop 1", "v_cndmask_b32 v2, v0, v1, vcc"),
    ("", "v_mov_b32 v2, v0", "", "s_nop 0", "v_readfirstlane_b32 s4, v2"),
    ("", "v_cmpx_ge_u32 vcc, v1, v0", "s_nop 2", "s_nop 3", "v_readfirstlane_b32 s4, v0"),
    (
        "",
        "v_mov_b32_sdwa v2, v0 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0",
        "",
        "s_nop 0",
        "v_mov_b32 v3, v2",
    ),
    ("", "global_store_dwordx4 v1, v[4:7], s[2:3]", "s_nop 0", "s_nop 1", "v_mov_b32 v6, 0"),
    ("s_nop 1", SGEMM, "s_nop 2", "s_nop 3", "v_mov_b32 v2, v4"),
    ("s_nop 1", SGEMM, "s_nop 0", "s_nop 1", SGEMM),
    ("s_nop 1", XDL, "s_nop 5", "s_nop 6", "v_mov_b32 v2, v4"),
    ("s_nop 1", XDL, "s_nop 5", "s_nop 6", "global_store_dword v1, v4, s[2:3]"),
    ("s_nop 1", XDL, "s_nop 5", "s_nop 6", "v_mov_b32 v4, 0"),
    (
        "s_nop 1",
        XDL,
        "s_nop 3",
        "s_nop 4",
        "v_mfma_f32_16x16x16_f16 v[12:15], v[0:1], v[0:1], v[6:9]",
    ),
    (
        "s_nop 1",
        "v_mfma_f32_16x16x16_f16 v[4:7], v[0:1], v[0:1], v[8:11]",
        "s_nop 1",
        "s_nop 2",
        "v_mov_b32 v8, 0",
    ),
];

const GFX1030: &[Case] = &[
    ("", "global_atomic_fmax v1, v0, s[2:3]", "s_nop 1", "s_nop 2", "s_denorm_mode 0xf"),
    ("", "global_atomic_fmax v1, v0, s[2:3]", "", "v_mov_b32 v2, 0", "s_denorm_mode 0xf"),
];

const GFX1100: &[Case] = &[
    ("", "v_rcp_f32 v2, v0", "s_nop 7", "s_waitcnt_depctr 0xfff", "v_mov_b32 v3, v2"),
    (
        "",
        "v_rcp_f32 v2, v0",
        "v_rcp_f32 v3, v0",
        "v_rcp_f32 v3, v0\n v_rcp_f32 v3, v0",
        "v_mov_b32 v4, v2",
    ),
    ("", "v_cmpx_ge_u32 v1, v0", "v_nop", "v_mov_b32 v0, v0", "v_permlane16_b32 v3, v0, s2, s3"),
    ("", "v_mov_b32 v2, 0", "", "s_nop 0", "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)"),
];

/// Hazards in waves of 64 lanes.
const GFX1100_OF_64: &[Case] = &[(
    "v_mov_b32 v2, v0\n s_mov_b64 exec, -1",
    "v_mov_b32 v3, v0",
    "s_nop 7",
    "s_waitcnt_depctr 0xfff",
    "v_add_f32 v4, v2, v3",
)];

/// A mask, an instruction that overwrites it, the counter to wait for, and an instruction that reads it.
const MASKS: &[(&str, &str, &str, &str)] = &[
    ("s[4:5]", "s_mov_b64 s[4:5], 0", "sa_sdst", "s_mov_b64 s[6:7], s[4:5]"),
    ("s[4:5]", "v_readfirstlane_b32 s4, v0", "va_sdst", "v_mov_b32 v3, s4"),
    ("vcc", "v_cmp_eq_u32 vcc, v0, v1", "va_vcc", "s_mov_b32 s6, vcc_lo"),
];

fn hazards(machine: Machine, cases: &[Case]) {
    for (before, trigger, too_little, enough, victim) in cases {
        let with = |between: &str| format!("{before}\n{trigger}\n{between}\nwrong: {victim}\n");
        let violation = breaks(machine, Rule::ManualHazard, 64, &with(too_little), &with(enough));
        assert!(matches!(violation.finding, Finding::TooClose { .. }));
    }
}

#[test]
fn hazards_are_reported_unless_mitigated() {
    for (processor, cases) in [("gfx942", GFX942), ("gfx1030", GFX1030), ("gfx1100", GFX1100)] {
        machines(processor).for_each(|machine| hazards(machine, cases));
    }
    machines("gfx1100").filter(|machine| machine.lanes == 64).for_each(|machine| {
        hazards(machine, GFX1100_OF_64);
    });
}

#[test]
fn missing_waits_for_overwritten_masks_are_reported() {
    for machine in machines("gfx1100").filter(|machine| machine.lanes == 64) {
        for (mask, write, wait, read) in MASKS {
            // The distance to the read does not matter.
            let with = |mask: &str, wait: &str| {
                format!(
                    "s_mov_b64 s[4:5], 0\n s_mov_b64 s[8:9], 0\n s_mov_b64 vcc, 0\n\
                     v_cndmask_b32 v2, v0, v1, {mask}\n .rept 200\n s_nop 0\n .endr\n{write}\n\
                     s_waitcnt_depctr depctr_{wait}(0)\nwrong: {read}\n"
                )
            };
            let (wrong, right) = (with(mask, "va_vdst"), with(mask, wait));
            let violation = breaks(machine, Rule::ManualHazard, 64, &wrong, &right);
            assert!(matches!(violation.finding, Finding::ReadLate { .. }));
            keeps(machine, 64, &with("s[8:9]", "va_vdst"));
        }
    }
    // Waves of 32 lanes need no wait.
    for machine in machines("gfx1100").filter(|machine| machine.lanes == 32) {
        keeps(machine, 64, "v_cndmask_b32 v2, v0, v1, s4\n s_mov_b32 s4, 0\n s_mov_b32 s6, s4\n");
    }
}

#[test]
fn missing_waits_for_results_are_reported() {
    let lds = ".set lds_bytes, 256\n ds_write_b32 v1, v0\n";
    for (before, wait, too_little, after) in [
        ("global_load_dword v2, v1, s[2:3]", "s_waitcnt vmcnt(0)", "s_nop 0", "v_mov_b32 v3, v2"),
        (
            "global_load_dword v2, v1, s[2:3]",
            "s_waitcnt_vmcnt null, 0x0",
            "s_waitcnt_vscnt null, 0x0",
            "v_mov_b32 v3, v2",
        ),
        // Stores have a separate counter, which does not show that a load has completed.
        (
            "global_load_dword v2, v1, s[2:3]\n global_store_dword v1, v0, s[2:3]",
            "s_waitcnt vmcnt(0)",
            "s_waitcnt vmcnt(1)",
            "v_mov_b32 v4, v2",
        ),
        (
            "global_load_dword v2, v1, s[2:3]\n global_load_dword v3, v1, s[2:3]",
            "s_waitcnt vmcnt(1)",
            "s_waitcnt vmcnt(2)",
            "v_mov_b32 v4, v2",
        ),
        (
            "global_atomic_add v2, v1, v0, s[2:3] glc",
            "s_waitcnt vmcnt(0)",
            "s_waitcnt_vscnt null, 0x0",
            "v_mov_b32 v4, v2",
        ),
        (
            "s_load_dword s4, s[2:3], 0x0\n s_load_dword s5, s[2:3], 0x4",
            "s_waitcnt lgkmcnt(0)",
            "s_waitcnt lgkmcnt(1)",
            "s_mov_b32 s6, s4",
        ),
        (
            &format!("{lds} ds_read_b32 v2, v1\n ds_read_b32 v3, v1"),
            "s_waitcnt lgkmcnt(1)",
            "s_waitcnt lgkmcnt(2)",
            "v_mov_b32 v4, v2",
        ),
        // A flat access completes in order with both counters.
        (
            &format!(
                "{lds} v_mov_b32 v6, s2\n v_mov_b32 v7, s3\n ds_read_b32 v2, v1\n \
                 flat_load_dword v3, v[6:7]"
            ),
            "s_waitcnt lgkmcnt(1)",
            "s_waitcnt lgkmcnt(2)",
            "v_mov_b32 v4, v2",
        ),
        (
            "v_mov_b32 v6, s2\n v_mov_b32 v7, s3\n flat_load_dword v3, v[6:7]",
            "s_waitcnt vmcnt(0) lgkmcnt(0)",
            "s_waitcnt vmcnt(0)",
            "v_mov_b32 v4, v3",
        ),
    ] {
        let with = |wait: &str| format!("{before}\n{wait}\nwrong: {after}\n");
        for machine in machines("gfx1030").chain(machines("gfx1100")) {
            breaks(machine, Rule::WaitCounter, 64, &with(too_little), &with(wait));
        }
    }
}

#[test]
fn mixed_clauses_are_reported() {
    let load = "global_load_dword v2, v1, s[2:3]\n";
    let other_load = "global_load_dword v3, v1, s[2:3]\n";
    for machine in machines("gfx1030").chain(machines("gfx1100")) {
        for wrong in ["s_mov_b32 s4, 0", "s_waitcnt vmcnt(7)", "s_branch end", "ds_read_b32 v4, v1"]
        {
            let lds = ".set lds_bytes, 256\n ds_write_b32 v1, v0\n";
            let clause = format!("{lds} s_clause 0x1\n {load}wrong: {wrong}\n {other_load}");
            let mended = format!("{lds} s_clause 0x1\n {load}{other_load}{wrong}\n");
            breaks(machine, Rule::Clause, 64, &clause, &mended);
        }
        keeps(machine, 64, &format!("s_clause 0x2\n {load} s_nop 0\n {other_load}"));
        keeps(machine, 64, &format!("s_clause 0x0\n {load} s_mov_b32 s4, 0\n {other_load}"));
        let begin = format!("s_clause 0x1\nwrong: s_mov_b32 s4, 0\n {load}");
        breaks(machine, Rule::Clause, 64, &begin, &format!("s_mov_b32 s4, 0\n {load}"));
    }
    // On gfx10, a clause may mix loads and stores; on gfx11, it may not.
    let mixed = format!("s_clause 0x1\n {load}wrong: global_store_dword v1, v0, s[2:3]\n");
    let apart = format!("s_clause 0x0\n {load} global_store_dword v1, v0, s[2:3]\n");
    machines("gfx1030").for_each(|machine| keeps(machine, 64, &mixed));
    machines("gfx1100").for_each(|machine| {
        breaks(machine, Rule::Clause, 64, &mixed, &apart);
    });
}

#[test]
fn use_of_deallocated_vgprs_is_reported() {
    let message = "s_nop 0\n s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)\n";
    for machine in machines("gfx1100") {
        let wrong = format!("{message}wrong: v_mov_b32 v2, 0\n");
        let mended = format!("v_mov_b32 v2, 0\n {message}");
        breaks(machine, Rule::RegisterAllocation, 64, &wrong, &mended);
        let store = |wait: &str| {
            format!(
                ".set private_bytes, 16\n scratch_store_dword off, v0, off\n {wait}\n s_nop 0\n\
                 wrong: s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)\n"
            )
        };
        let enough = store("s_waitcnt_vscnt null, 0x0");
        breaks(machine, Rule::Deallocation, 64, &store("s_waitcnt vmcnt(0)"), &enough);
    }
}

/// Rules that all generations share, for both wave sizes.
#[test]
fn undefined_and_unallocated_registers_are_reported_on_every_machine() {
    for machine in MACHINES.into_iter().filter(|machine| machine.has_strict_level()) {
        let gather = "wrong: global_load_dword v3, v21, s[2:3]\n";
        breaks(machine, Rule::UndefinedValue, 64, gather, &format!("v_mov_b32 v21, 0\n{gather}"));
        let branch = "s_cmp_eq_u32 s10, 0\nwrong: s_cbranch_scc1 end\n";
        breaks(machine, Rule::UndefinedValue, 64, branch, &format!("s_mov_b32 s10, 0\n{branch}"));
        let lds = |bytes: u32| {
            format!(".set lds_bytes, {bytes}\n v_xor_b32 v2, 4, v1\nwrong: ds_write_b32 v2, v0\n")
        };
        breaks(machine, Rule::LdsBounds, 64, &lds(192), &lds(256));
        let (instruction, wait) = match machine.target().generation() {
            Generation::Gfx12 | Generation::Gfx125 => {
                ("s_barrier_signal -1\n s_barrier_wait -1", "s_wait_dscnt 0x0")
            }
            _ => ("s_barrier", "s_waitcnt lgkmcnt(0)"),
        };
        let barrier = |wait: &str| {
            format!(
                ".set lds_bytes, 512\n v_xor_b32 v2, 0x100, v1\n ds_write_b32 v1, v0\n {wait}\n \
                 {instruction}\nwrong: ds_read_b32 v3, v2\n"
            )
        };
        let enough = barrier(wait);
        breaks(machine, Rule::LdsAtBarrier, 128, &barrier(""), &enough);
    }
    for machine in machines("gfx1100") {
        let named = |register: u32| format!("wrong: v_mov_b32 v2, v{register}\n");
        breaks(machine, Rule::RegisterAllocation, 64, &named(64), &named(63));
    }
}

#[test]
fn waits_for_register_halves_follow_gfx11_rules() {
    let lds = ".set lds_bytes, 256\n ds_store_b32 v1, v0\n";
    let low = "ds_load_u16_d16 v2, v1\n";
    let high = "ds_load_u16_d16_hi v2, v1\n";
    let device_high = "global_load_d16_hi_b16 v2, v1, s[2:3]\n";
    // Encoded as words, since the assembler has no names for halves: v_mov_b16 v3.l, v2.l; v3.l, v2.h;
    // v2.h, v0.l.
    let [move_low, move_high, move_over] =
        [".long 0x7e063902", ".long 0x7e063982", ".long 0x7f043900"];
    for (processor, wait, wait_device) in [
        ("gfx1100", "s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0)"),
        ("gfx1201", "s_wait_dscnt 0x0", "s_wait_loadcnt 0x0"),
    ] {
        for machine in machines(processor) {
            // Loads of one queue into different halves, and stores of a half that has been loaded.
            keeps(machine, 64, &format!("{lds}{low}{high}{wait}\nv_mov_b32 v3, v2\n"));
            keeps(machine, 64, &format!("{lds}{low}{wait}\n{high}ds_store_b16 v1, v2\n"));
            keeps(machine, 64, &format!("{lds}{low}{wait}\n{high}{wait}\n{move_low}\n"));
            for (before, wait, after) in [
                (high, wait, "v_mov_b32 v3, v2"),
                (high, wait, move_high),
                (high, wait, "ds_store_b16_d16_hi v1, v2"),
                (high, wait, move_over),
                (high, wait, "ds_load_u16_d16_hi v2, v1"),
                (low, wait, "ds_load_u16 v2, v1"),
                // The half that is not being loaded.
                (high, wait, move_low),
                (low, wait, move_high),
                (low, wait, move_over),
                (device_high, wait_device, move_low),
                // Loads of different queues write the register out of order.
                (device_high, wait_device, low.trim()),
            ] {
                let with = |wait: &str| format!("{lds}{before}{wait}\nwrong: {after}\n");
                breaks(machine, Rule::WaitCounter, 64, &with(""), &with(wait));
            }
        }
    }
    for machine in machines("gfx90a") {
        let with = |wait: &str| {
            let first = ".set lds_bytes, 256\n ds_write_b32 v1, v0\n ds_read_u16_d16 v2, v1\n";
            format!("{first}{wait}\nwrong: ds_read_u16_d16_hi v2, v1\n")
        };
        breaks(machine, Rule::WaitCounter, 64, &with(""), &with("s_waitcnt lgkmcnt(0)"));
    }
}
