//! Rules that differ on gfx12.

use super::planted::{breaks, keeps};
use flipwave_isa::{Generation, Isa};
use flipwave_sim::strict::{Finding, Rule};
use flipwave_tests::{MACHINES, Machine};

/// gfx1201 with both wave sizes.
fn gfx1201() -> impl Iterator<Item = Machine> {
    MACHINES.into_iter().filter(|machine| machine.target().processor() == "gfx1201")
}

#[test]
fn missing_waits_for_results_are_reported() {
    let lds = ".set lds_bytes, 256\n ds_store_b32 v1, v0\n";
    let load = "global_load_b32 v2, v1, s[2:3]";
    let flat = "v_mov_b32 v6, s2\n v_mov_b32 v7, s3\n flat_load_b32 v3, v[6:7]";
    for (before, wait, too_little, after) in [
        (load, "s_wait_loadcnt 0x0", "s_wait_storecnt 0x0", "v_mov_b32 v3, v2"),
        (load, "s_wait_idle", "s_wait_loadcnt_dscnt 0x3f00", "v_mov_b32 v3, v2"),
        (
            &format!("{load}\n global_load_b32 v3, v1, s[2:3]"),
            "s_wait_loadcnt 0x1",
            "s_wait_loadcnt 0x2",
            "v_mov_b32 v4, v2",
        ),
        // A wait for stores does not show that a load has completed.
        (
            &format!("{load}\n global_store_b32 v1, v0, s[2:3]"),
            "s_wait_loadcnt 0x0",
            "s_wait_loadcnt 0x1",
            "v_mov_b32 v4, v2",
        ),
        // Loads are counted in order but write out of order.
        (load, "s_wait_loadcnt 0x0", "s_nop 0", "global_load_b32 v2, v1, s[2:3]"),
        (
            "global_atomic_add_u32 v2, v1, v0, s[2:3] th:TH_ATOMIC_RETURN",
            "s_wait_loadcnt 0x0",
            "s_wait_storecnt 0x0",
            "v_mov_b32 v4, v2",
        ),
        (
            "s_load_b32 s4, s[2:3], 0x0\n s_load_b32 s5, s[2:3], 0x4",
            "s_wait_kmcnt 0x0",
            "s_wait_kmcnt 0x1",
            "s_mov_b32 s6, s4",
        ),
        (
            &format!("{lds} ds_load_b32 v2, v1\n ds_load_b32 v3, v1"),
            "s_wait_storecnt_dscnt 0x3f01",
            "s_wait_storecnt_dscnt 0x2",
            "v_mov_b32 v4, v2",
        ),
        (flat, "s_wait_loadcnt_dscnt 0x0", "s_wait_loadcnt 0x0", "v_mov_b32 v4, v3"),
        ("s_get_barrier_state s4, -1", "s_wait_kmcnt 0x0", "s_nop 0", "s_mov_b32 s5, s4"),
        // The result is available after the barrier.
        (
            "s_barrier_signal_isfirst -1",
            "s_barrier_wait -1",
            "s_wait_dscnt 0x0",
            "s_cbranch_scc1 end",
        ),
    ] {
        let with = |wait: &str| format!("{before}\n{wait}\nwrong: {after}\n");
        for machine in gfx1201() {
            breaks(machine, Rule::WaitCounter, 64, &with(too_little), &with(wait));
        }
    }
}

#[test]
fn missing_waits_for_scalar_registers_are_reported() {
    for machine in gfx1201() {
        let vcc = if machine.lanes == 32 { "vcc_lo" } else { "vcc" };
        let compare = format!("v_cmp_eq_u32 {vcc}, v0, v1");
        // The register read first, the write, an insufficient wait, a sufficient wait, and the second
        // read.
        for (first, write, too_little, enough, second) in [
            ("s4", "s_mov_b32 s4, 1", "va_sdst", "sa_sdst", "v_mov_b32 v3, s4"),
            ("s4", "s_mov_b32 s4, 1", "va_sdst", "sa_sdst", "s_mov_b32 s6, s4"),
            // The hardware tracks registers in pairs.
            ("s4", "s_mov_b32 s5, 1", "va_vcc", "sa_sdst", "v_mov_b32 v3, s5"),
            ("s4", "v_readfirstlane_b32 s4, v0", "sa_sdst", "va_sdst", "v_mov_b32 v3, s4"),
            ("vcc_lo", "s_mov_b32 vcc_lo, 1", "va_vcc", "sa_sdst", "v_mov_b32 v3, vcc_lo"),
            ("vcc_lo", &compare, "va_sdst", "va_vcc", "v_mov_b32 v3, vcc_lo"),
        ] {
            // The distance to the read does not matter.
            let read = format!(
                "s_mov_b32 {first}, 0\n v_mov_b32 v2, {first}\n .rept 200\n s_nop 0\n .endr"
            );
            let with = |field: &str| {
                format!("{read}\n{write}\n s_wait_alu depctr_{field}(0)\nwrong: {second}\n")
            };
            let violation =
                breaks(machine, Rule::ManualHazard, 64, &with(too_little), &with(enough));
            assert!(matches!(violation.finding, Finding::ReadLate { .. }));
            // A wait for scalar memory is sufficient, and so is a register that was not read before.
            keeps(
                machine,
                64,
                &format!("{read}\n{write}\n s_load_b32 s8, s[2:3], 0x0\n {second}\n"),
            );
            keeps(machine, 64, &format!("s_mov_b32 {first}, 0\n{write}\n{second}\n"));
        }
        keeps(
            machine,
            64,
            "s_mov_b32 s4, 0\n v_mov_b32 v2, s4\n v_readfirstlane_b32 s4, v0\n s_mov_b32 s6, s4\n",
        );
    }
}

#[test]
fn hazards_are_reported_unless_mitigated() {
    for (trigger, too_little, enough, victim) in [
        ("v_cmpx_ge_u32 v1, v0", "v_nop", "v_mov_b32 v0, v0", "v_permlane16_b32 v3, v0, s2, s3"),
        ("v_mov_b32 v2, 0", "", "s_nop 0", "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)"),
    ] {
        let with = |between: &str| format!("{trigger}\n{between}\nwrong: {victim}\n");
        for machine in gfx1201() {
            breaks(machine, Rule::ManualHazard, 64, &with(too_little), &with(enough));
        }
    }
    // The hardware waits for the results of transcendental operations.
    gfx1201().for_each(|machine| keeps(machine, 64, "v_rcp_f32 v2, v0\n v_mov_b32 v3, v2\n"));
}

#[test]
fn split_barrier_does_not_order_accesses_after_the_signal() {
    let exchange = |before: &str, between: &str| {
        format!(
            ".set lds_bytes, 512\n v_xor_b32 v2, 0x100, v1\n {before}\n s_barrier_signal -1\n \
             {between}\n s_barrier_wait -1\nwrong: ds_load_b32 v3, v2\n"
        )
    };
    let store = "ds_store_b32 v1, v0";
    let enough = exchange(&format!("{store}\n s_wait_dscnt 0x0"), "");
    let late = exchange(store, "s_nop 0");
    for machine in gfx1201() {
        breaks(machine, Rule::LdsAtBarrier, 128, &late, &enough);
    }
}

#[test]
fn waits_at_different_barriers_are_reported() {
    let wrong = "v_readfirstlane_b32 s4, v0\n s_cmp_lt_u32 s4, 64\n s_barrier_signal -1\n \
                 s_cbranch_scc1 low\nwrong: s_barrier_wait -1\n s_branch end\nlow: \
                 s_barrier_wait -1\n";
    let mended = "s_barrier_signal -1\n s_barrier_wait -1\n";
    for machine in gfx1201() {
        breaks(machine, Rule::DifferentBarriers, 128, wrong, mended);
    }
}

/// The invalid instruction is given as words, because assemblers refuse it: those of the valid instruction,
/// with another source.
#[test]
fn bank_conflicts_of_dual_instructions_are_reported() {
    let before = "v_mov_b32 v8, v0\n";
    let mended = "v_dual_add_f32 v4, v0, v1 :: v_dual_mul_f32 v7, v1, v0\n";
    for machine in
        MACHINES.into_iter().filter(|machine| machine.lanes == 32 && machine.has_strict_level())
    {
        if machine.target().generation() < Generation::Gfx11 {
            continue;
        }
        let isa = Isa::new(&machine.target()).expect("a target");
        let bytes = isa.assemble(mended.trim()).expect("a dual instruction");
        let words: Vec<u32> =
            bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        // The second half multiplies v8, which is in the same bank as v0, which the first half adds.
        let second = words[1] & !511 | (256 + 8);
        let wrong = format!("{before}wrong: .long {:#x}, {second:#x}\n", words[0]);
        breaks(machine, Rule::DualBanks, 64, &wrong, &format!("{before}{mended}"));
    }
}
