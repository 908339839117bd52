//! Encodings of waits, compared with the assembler, and the counters that instructions increment.

use super::*;
use crate::{Isa, Pc};

/// Targets with a combined `s_waitcnt`.
const COMBINED: [&str; 4] = ["gfx90a", "gfx942", "gfx1030", "gfx1100"];

fn isa(target: &str) -> Isa {
    Isa::new(&target.parse().unwrap()).unwrap()
}

fn counters(isa: &Isa) -> Counters {
    Counters::of(isa.target().generation())
}

/// The lowest count for each counter that the instructions of a text wait for.
fn all_waited(isa: &Isa, text: &str) -> Vec<(Counter, u8)> {
    let bytes = isa.assemble(text).unwrap();
    let mut counts = [None; Counter::ALL.len()];
    let mut at = 0;
    while at < bytes.len() {
        let inst = isa.decode(&bytes[at..], Pc(0)).unwrap();
        at += usize::from(inst.size);
        let waited = counters(isa).wait_counts(&inst).unwrap();
        for (count, counter) in counts.iter_mut().zip(Counter::ALL) {
            *count = [*count, waited.at_most(counter)].into_iter().flatten().min();
        }
    }
    let known = counts.into_iter().zip(Counter::ALL);
    known.filter_map(|(count, counter)| Some((counter, count?))).collect()
}

/// The counts of vmcnt, lgkmcnt, expcnt and vscnt that a text waits for.
fn waited(isa: &Isa, text: &str) -> [Option<u8>; 4] {
    let waited = all_waited(isa, text);
    [Counter::Vmcnt, Counter::Lgkmcnt, Counter::Expcnt, Counter::Vscnt]
        .map(|counter| waited.iter().find(|(found, _)| *found == counter).map(|(_, count)| *count))
}

#[test]
fn gfx12_wait_instructions_give_their_counts() {
    use Counter::*;
    let isa = isa("gfx1201");
    for (line, expected) in [
        ("s_wait_loadcnt 0x3", &[(Loadcnt, 3)][..]),
        ("s_wait_samplecnt 0x4", &[(Samplecnt, 4)]),
        ("s_wait_bvhcnt 0x2", &[(Bvhcnt, 2)]),
        ("s_wait_storecnt 0x0", &[(Storecnt, 0)]),
        ("s_wait_expcnt 0x1", &[(Expcnt, 1)]),
        ("s_wait_dscnt 0x3f", &[(Dscnt, 63)]),
        ("s_wait_kmcnt 0x1f", &[(Kmcnt, 31)]),
        ("s_wait_loadcnt_dscnt 0x1203", &[(Loadcnt, 18), (Dscnt, 3)]),
        ("s_wait_storecnt_dscnt 0x3f01", &[(Storecnt, 63), (Dscnt, 1)]),
    ] {
        assert_eq!(all_waited(&isa, line), expected, "{line}");
    }
    let idle = all_waited(&isa, "s_wait_idle");
    assert!(idle.len() == 7 && idle.iter().all(|(_, count)| *count == 0), "{idle:?}");
    // The `s_waitcnt` of older generations decodes on gfx12 but does not wait for its counters.
    let bytes = isa.assemble("s_waitcnt 0").unwrap();
    assert_eq!(counters(&isa).wait_counts(&isa.decode(&bytes, Pc(0)).unwrap()), None);
}

#[test]
fn gfx1250_counters_have_their_waits_and_operations() {
    use Counter::*;
    let isa = isa("gfx1250");
    for (line, expected) in [
        ("s_wait_xcnt 0x3", &[(Xcnt, 3)][..]),
        ("s_wait_asynccnt 0x1", &[(Asynccnt, 1)]),
        ("s_wait_tensorcnt 0x0", &[(Tensorcnt, 0)]),
        ("s_wait_loadcnt_dscnt 0x1203", &[(Loadcnt, 18), (Dscnt, 3)]),
    ] {
        assert_eq!(all_waited(&isa, line), expected, "{line}");
    }
    for (line, expected) in [
        ("global_load_b32 v0, v1, s[2:3]", &[Loadcnt, Xcnt][..]),
        ("global_store_b32 v1, v0, s[2:3]", &[Storecnt, Xcnt]),
        ("flat_load_b32 v0, v[2:3]", &[Loadcnt, Dscnt, Xcnt]),
        ("flat_store_b32 v[2:3], v0", &[Storecnt, Dscnt, Xcnt]),
        ("scratch_store_b32 off, v0, s0", &[Storecnt, Xcnt]),
        ("s_load_b32 s4, s[2:3], 0x0", &[Kmcnt, Xcnt]),
        ("ds_load_b32 v0, v1", &[Dscnt]),
        ("global_inv scope:SCOPE_SYS", &[Loadcnt]),
        ("global_load_async_to_lds_b32 v1, v[2:3], off", &[Asynccnt]),
        ("global_store_async_from_lds_b32 v[2:3], v1, off", &[Asynccnt]),
        ("cluster_load_async_to_lds_b32 v1, v[2:3], off", &[Asynccnt]),
        ("cluster_load_b32 v1, v[2:3], off", &[Loadcnt, Xcnt]),
        ("ds_atomic_async_barrier_arrive_b64 v0", &[Asynccnt]),
        ("tensor_load_to_lds s[0:3], s[4:11]", &[Tensorcnt]),
        ("s_barrier_leave", &[Kmcnt]),
    ] {
        let bytes = isa.assemble(line).unwrap();
        let inst = isa.decode(&bytes, Pc(0)).unwrap();
        let counted = counters(&isa).incremented_by(&inst).iter().map(|(counter, _)| *counter);
        assert_eq!(counted.collect::<Vec<_>>(), expected, "{line}");
    }
    // Text that waits is understood again.
    let counts = [(Xcnt, 1), (Asynccnt, 2), (Tensorcnt, 0), (Loadcnt, 0), (Dscnt, 0)];
    let mut expected = counts.to_vec();
    expected.sort();
    assert_eq!(all_waited(&isa, &counters(&isa).wait_instructions(&counts)), expected);
}

#[test]
fn gfx12_wait_text_is_short_and_waits_for_the_given_counts() {
    use Counter::*;
    let isa = isa("gfx1201");
    for (counts, lines) in [
        (vec![(Loadcnt, 0)], 1),
        (vec![(Loadcnt, 5), (Dscnt, 3)], 1),
        (vec![(Storecnt, 0), (Dscnt, 0)], 1),
        (vec![(Loadcnt, 0), (Storecnt, 0), (Dscnt, 0)], 2),
        (vec![(Kmcnt, 0), (Bvhcnt, 1), (Samplecnt, 2), (Expcnt, 0)], 4),
        (vec![(Kmcnt, 31)], 0),
        (vec![(Vmcnt, 0), (Lgkmcnt, 0)], 0),
    ] {
        let text = counters(&isa).wait_instructions(&counts);
        assert_eq!(text.lines().count(), lines, "{text}");
        let found = all_waited(&isa, &text);
        let mut expected: Vec<_> = counts
            .into_iter()
            .filter(|(counter, count)| *count < counters(&isa).max_count(*counter))
            .collect();
        expected.sort();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn gfx12_memory_instructions_increment_their_counters() {
    use Counter::*;
    for (line, expected) in [
        ("global_load_b32 v0, v1, s[2:3]", &[Loadcnt][..]),
        ("global_store_b32 v1, v0, s[2:3]", &[Storecnt]),
        ("global_atomic_add_u32 v1, v0, s[2:3]", &[Storecnt]),
        ("global_atomic_add_u32 v2, v1, v0, s[2:3] th:TH_ATOMIC_RETURN", &[Loadcnt]),
        ("buffer_atomic_add_u32 v0, off, s[4:7], null", &[Storecnt]),
        ("buffer_atomic_add_u32 v0, off, s[4:7], null th:TH_ATOMIC_RETURN", &[Loadcnt]),
        ("scratch_store_b32 off, v0, s0", &[Storecnt]),
        ("flat_load_b32 v0, v[2:3]", &[Loadcnt, Dscnt]),
        ("flat_store_b32 v[2:3], v0", &[Storecnt, Dscnt]),
        ("global_inv scope:SCOPE_SYS", &[Loadcnt]),
        ("global_wb scope:SCOPE_SYS", &[Storecnt]),
        ("global_wbinv scope:SCOPE_SYS", &[Storecnt]),
        ("ds_store_b32 v0, v1", &[Dscnt]),
        ("ds_direct_load v0", &[Expcnt]),
        ("ds_param_load v0, attr0.x", &[Expcnt]),
        ("s_load_b32 s4, s[2:3], 0x0", &[Kmcnt]),
        ("s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_TMA)", &[Kmcnt]),
        ("s_get_barrier_state s0, -1", &[Kmcnt]),
        ("s_barrier_signal_isfirst -1", &[Kmcnt]),
        ("s_barrier_signal -1", &[]),
        ("s_barrier_wait -1", &[]),
        ("image_load v[0:3], [v0, v1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D", &[Loadcnt]),
        ("image_store v[0:3], [v0, v1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D", &[Storecnt]),
        (
            "image_sample v[0:3], [v0, v1], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D",
            &[Samplecnt],
        ),
        (
            "image_msaa_load v[0:3], [v0, v1, v2], s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_2D_MSAA",
            &[Samplecnt],
        ),
        (
            "image_bvh64_intersect_ray v[0:3], [v[0:1], v2, v[3:5], v[6:8], v[9:11]], s[4:7]",
            &[Bvhcnt],
        ),
    ] {
        assert_eq!(incremented("gfx1201", line), expected, "{line}");
    }
}

#[test]
fn s_waitcnt_fields_match_the_assembler() {
    for target in COMBINED {
        let isa = isa(target);
        let lgkmcnt_max = if isa.target().generation() < Generation::Gfx10 { 15 } else { 63 };
        for (line, counts) in [
            ("s_waitcnt vmcnt(37) expcnt(5) lgkmcnt(9)", [37, 9, 5]),
            ("s_waitcnt vmcnt(0)", [0, lgkmcnt_max, 7]),
            ("s_waitcnt lgkmcnt(1)", [63, 1, 7]),
            ("s_waitcnt expcnt(3)", [63, lgkmcnt_max, 3]),
        ] {
            let [vmcnt, lgkmcnt, expcnt] = counts.map(Some);
            let expected = [vmcnt, lgkmcnt, expcnt, None];
            assert_eq!(waited(&isa, line), expected, "{target} {line}");
        }
        assert_eq!(counters(&isa).max_count(Counter::Vmcnt), 63);
        assert_eq!(counters(&isa).max_count(Counter::Expcnt), 7);
    }
    let nop = isa("gfx90a").decode(&[0, 0, 0x80, 0xbf], Pc(0)).unwrap();
    assert_eq!(counters(&isa("gfx90a")).wait_counts(&nop), None);
}

#[test]
fn single_counter_waits_from_gfx10_on_give_their_count() {
    for target in ["gfx1030", "gfx1100"] {
        let isa = isa(target);
        for (line, expected) in [
            ("s_waitcnt_vmcnt null, 0x3", [Some(3), None, None, None]),
            ("s_waitcnt_lgkmcnt null, 0x3", [None, Some(3), None, None]),
            ("s_waitcnt_expcnt null, 0x3", [None, None, Some(3), None]),
            ("s_waitcnt_vscnt null, 0x3", [None, None, None, Some(3)]),
        ] {
            assert_eq!(waited(&isa, line), expected, "{target} {line}");
        }
    }
    // The content of a register is unknown.
    assert_eq!(waited(&isa("gfx1030"), "s_waitcnt_vscnt s4, 0x0"), [None; 4]);
}

#[test]
fn wait_text_assembles_and_waits_for_the_given_counts() {
    use Counter::{Expcnt, Lgkmcnt, Vmcnt, Vscnt};
    for target in COMBINED {
        let isa = isa(target);
        let has_vscnt = counters(&isa).max_count(Vscnt) > 0;
        for counts in [
            vec![(Vmcnt, 0)],
            vec![(Lgkmcnt, 3), (Vmcnt, 40)],
            vec![(Vscnt, 2)],
            vec![(Vmcnt, 0), (Lgkmcnt, 0), (Expcnt, 0), (Vscnt, 0)],
            vec![(Lgkmcnt, 5), (Lgkmcnt, 2)],
        ] {
            let text = counters(&isa).wait_instructions(&counts);
            let found = waited(&isa, &text);
            for (counter, count) in counts {
                let all = [Vmcnt, Lgkmcnt, Expcnt, Vscnt];
                let index = all.iter().position(|listed| *listed == counter).unwrap();
                if counter == Vscnt && !has_vscnt {
                    assert_eq!(found[index], None, "{target} {text}");
                } else {
                    assert!(found[index].is_some_and(|found| found <= count), "{target} {text}");
                }
            }
        }
        assert_eq!(counters(&isa).wait_instructions(&[(Vmcnt, 63), (Expcnt, 7)]), "");
    }
}

fn incremented(target: &str, line: &str) -> Vec<Counter> {
    let isa = isa(target);
    let bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{target} {line}: {error}"));
    let inst = isa.decode(&bytes, Pc(0)).unwrap();
    counters(&isa).incremented_by(&inst).iter().map(|(counter, _)| *counter).collect()
}

#[test]
fn gfx9_memory_instructions_increment_their_counters() {
    use Counter::{Expcnt, Lgkmcnt, Vmcnt};
    for (line, expected) in [
        ("global_load_dword v0, v1, s[2:3]", &[Vmcnt][..]),
        ("global_store_dword v1, v0, s[2:3]", &[Vmcnt]),
        ("buffer_wbl2", &[Vmcnt]),
        ("buffer_invl2", &[]),
        ("flat_load_dword v0, v[2:3]", &[Vmcnt, Lgkmcnt]),
        ("ds_write_b32 v0, v1", &[Lgkmcnt]),
        ("ds_gws_barrier v0 gds", &[Lgkmcnt, Expcnt]),
        ("s_load_dword s4, s[2:3], 0x0", &[Lgkmcnt]),
        ("s_sendmsg sendmsg(MSG_INTERRUPT)", &[Lgkmcnt]),
        ("v_mov_b32 v0, v1", &[]),
    ] {
        assert_eq!(incremented("gfx90a", line), expected, "{line}");
    }
    for (line, expected) in [
        ("global_store_dword v1, v0, s[2:3]", &[Vmcnt][..]),
        ("buffer_wbl2 sc0 sc1", &[Vmcnt]),
        ("buffer_inv sc0 sc1", &[]),
    ] {
        assert_eq!(incremented("gfx942", line), expected, "{line}");
    }
}

#[test]
fn stores_increment_vscnt_from_gfx10_on() {
    use Counter::{Expcnt, Lgkmcnt, Vmcnt, Vscnt};
    for (line, expected) in [
        ("global_load_b32 v0, v1, s[2:3]", &[Vmcnt][..]),
        ("global_store_b32 v1, v0, s[2:3]", &[Vscnt]),
        ("scratch_store_b32 off, v0, s0", &[Vscnt]),
        ("global_atomic_add_u32 v1, v0, s[2:3]", &[Vscnt]),
        ("global_atomic_add_u32 v2, v1, v0, s[2:3] glc", &[Vmcnt]),
        ("buffer_atomic_add_u32 v0, off, s[4:7], 0", &[Vscnt]),
        ("buffer_atomic_add_u32 v0, off, s[4:7], 0 glc", &[Vmcnt]),
        ("buffer_store_b32 v0, off, s[4:7], 0", &[Vscnt]),
        ("flat_load_b32 v0, v[2:3]", &[Vmcnt, Lgkmcnt]),
        ("flat_store_b32 v[2:3], v0", &[Vscnt, Lgkmcnt]),
        ("buffer_gl0_inv", &[]),
        ("ds_store_b32 v0, v1", &[Lgkmcnt]),
        ("s_load_b32 s4, s[2:3], 0x0", &[Lgkmcnt]),
        ("s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_TMA)", &[Lgkmcnt]),
        ("lds_direct_load v0", &[Expcnt]),
        ("lds_param_load v0, attr0.x", &[Expcnt]),
        ("image_load v[0:3], v[0:1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D", &[Vmcnt]),
    ] {
        assert_eq!(incremented("gfx1100", line), expected, "{line}");
    }
    for (line, expected) in [
        ("buffer_load_dword v0, s[4:7], 0 offen lds", &[Vmcnt][..]),
        ("buffer_gl1_inv", &[]),
        ("global_store_dword v1, v0, s[2:3]", &[Vscnt]),
    ] {
        assert_eq!(incremented("gfx1030", line), expected, "{line}");
    }
}
