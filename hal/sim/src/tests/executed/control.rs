//! Forks and joins, skipped vector instructions, halts, and instructions that compute waves cannot
//! execute.

use crate::execute::control::Step;
use crate::tests::bench::Bench;
use crate::tests::operations::Random;
use crate::wave::{Row, RowIndex, ScalarIndex};
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;

/// Runs a fork on random lanes, and the join of the path taken first. `goes_first` returns `true`
/// if the jumping lanes go first, given the numbers of jumping and non-jumping lanes. Returns the
/// number of forks after which the lanes, the PC or the restored lanes differ from this rule.
fn misrouted_forks(goes_first: fn(u32, u32) -> bool) -> usize {
    let mut random = Random(31);
    let mut wrong = 0;
    for round in 0..200 {
        let mut bench = Bench::new();
        let exec = random.next();
        let mask = match round % 4 {
            0 => exec | random.next(),
            1 => !exec & random.next(),
            _ => random.next() & random.next(),
        };
        let target = 0x4000;
        bench.wave.set_exec(LaneMask(exec));
        bench.set_address(40, mask);
        bench.set_address(42, target);
        bench.run("s_cbranch_g_fork s[40:41], s[42:43]").unwrap();
        let (jump, stay) = (exec & mask, exec & !mask);
        let found = (bench.wave.exec().0, bench.wave.pc, bench.wave.mode.branch_depth());
        if stay == 0 || jump == 0 {
            let pc = if stay == 0 { target } else { 4 };
            assert_eq!(found, (exec, pc, 0), "nothing to fork");
            continue;
        }
        let jumps_first = goes_first(jump.count_ones(), stay.count_ones());
        let ways =
            if jumps_first { [(jump, target), (stay, 4)] } else { [(stay, 4), (jump, target)] };
        // The first join takes the other path, the second continues.
        bench.set_scalars(50, &[0]);
        bench.run("s_cbranch_join s50").unwrap();
        let later = (bench.wave.exec().0, bench.wave.pc);
        bench.run("s_cbranch_join s50").unwrap();
        assert_eq!((bench.wave.exec().0, bench.wave.pc), (later.0, later.1 + 4), "joined");
        wrong += usize::from(found != (ways[0].0, ways[0].1, 1) || later != ways[1]);
    }
    wrong
}

#[test]
fn fork_takes_smaller_group_first_and_join_the_other() {
    assert_eq!(misrouted_forks(|jump, stay| stay >= jump), 0);
}

/// Negative control: a fork that takes the larger group first.
#[test]
fn comparison_detects_wrong_fork_order() {
    assert!(misrouted_forks(|jump, stay| stay < jump) > 50);
}

#[test]
fn immediate_fork_offset_is_in_words_from_next_instruction() {
    let mut bench = Bench::new();
    bench.set_address(40, 1);
    bench.run("s_cbranch_i_fork s[40:41], 16").unwrap();
    assert_eq!((bench.wave.exec().0, bench.wave.pc), (1, 4 + 64));
    let entry = [0, 1, 2, 3].map(|register| bench.wave.scalar(ScalarIndex(register)));
    assert_eq!(entry, [!1, !0, 4, 0]);
}

#[test]
fn vskip_skips_only_vector_instructions() {
    let mut bench = Bench::new();
    bench.set_scalars(4, &[0b100]);
    bench.run("s_setvskip s4, 2").unwrap();
    for text in
        ["v_mov_b32 v1, 5", "ds_write_b32 v0, v0 offset:4", "global_load_dword v1, v[2:3], off"]
    {
        bench.run(text).unwrap();
    }
    bench.run("s_mov_b32 s5, 6").unwrap();
    assert_eq!((bench.lanes(1)[0], bench.wave.scalar(ScalarIndex(5))), (0, 6));
    bench.run("s_setvskip s4, 1").unwrap();
    bench.run("v_mov_b32 v1, 5").unwrap();
    assert_eq!(bench.lanes(1)[0], 5);
}

#[test]
fn conditional_kills_and_halts_depend_on_their_operand() {
    let mut bench = Bench::new();
    assert!(matches!(bench.run("s_setkill 0"), Ok(Step::Next)));
    assert!(matches!(bench.run("s_setkill 1"), Ok(Step::Ended)));
    assert!(matches!(bench.run("s_sethalt 0"), Ok(Step::Next)));
    assert!(matches!(bench.run("s_sethalt 1"), Ok(Step::Halted)));
    assert!(matches!(bench.run("s_trap 3"), Err(FaultCause::Trap { id: 3 })));
}

#[test]
fn global_wave_sync_names_its_resource_by_m0_and_offset() {
    let mut bench = Bench::new();
    bench.wave.write_scalar(ScalarIndex::M0, 0xff03_ffff);
    bench.wave.set_exec(LaneMask(0xff00));
    bench.set_lanes(4, |lane| 100 + lane);
    let Ok(Step::Sync(request)) = bench.run("ds_gws_init v4 offset:2 gds") else {
        panic!("no sync")
    };
    assert_eq!((request.resource, request.value), (3 + 2, 108));
}

#[test]
fn non_compute_instructions_are_refused_by_type() {
    let mut bench = Bench::new();
    for text in [
        "image_load v0, v[2:3], s[0:7] dmask:0x1 unorm",
        "s_rfe_b64 s[2:3]",
        "s_endpgm_ordered_ps_done",
        "v_screen_partition_4se_b32 v0, v1",
    ] {
        let fault = bench.run(text).unwrap_err();
        assert!(matches!(fault, FaultCause::NotCompute { .. }), "{text}: {fault}");
    }
    // The message names the targets that lack the instruction.
    for (processor, text, begins) in [
        (
            "gfx90a",
            "image_load v0, v[2:3], s[0:7] dmask:0x1 unorm",
            "no instruction of this processor: ",
        ),
        ("gfx906", "image_load v0, v[2:3], s[0:7] dmask:0x1 unorm", "gap of the embedded GPU: "),
        ("gfx90a", "s_rfe_b64 s[2:3]", "no compute instruction: "),
        ("gfx1201", "s_alloc_vgpr 64", "gap of the embedded GPU: "),
        ("gfx1201", "s_barrier_init m0", "no instruction of this processor: "),
        ("gfx1100", "s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_SAVE_WAVE)", "no compute instruction: "),
    ] {
        let lanes = if processor.starts_with("gfx9") { 64 } else { 32 };
        let fault = Bench::with_lanes(processor, lanes).run(text).unwrap_err().to_string();
        assert!(fault.starts_with(begins), "{processor}: {fault}");
    }
    // v_add_u32 v0, src_lds_direct, v1
    let fault = bench.run_bytes(&0x6800_02fe_u32.to_le_bytes()).unwrap_err();
    assert!(matches!(fault, FaultCause::NotCompute { .. }), "{fault}");
}

#[test]
fn unallocated_registers_read_v0_or_void_the_instruction() {
    let mut bench = Bench::new();
    bench.wave.vgpr_count = 10;
    bench.set_lanes(0, |lane| 1000 + lane);
    bench.set_lanes(2, |_| 0);
    bench.set_lanes(8, |_| 5);
    // Data of four registers from v8, two of which are allocated.
    let base = bench.buffer.0;
    bench.set_scalars(4, &[base as u32, (base >> 32) as u32, 0x100, 0]);
    bench.wave.set_exec(LaneMask(2));
    bench.run("buffer_store_dwordx4 v[8:11], v2, s[4:7], 0 offen").unwrap();
    assert_eq!(bench.memory::<1>(0), [1001]);
    // Both data registers are allocated. The width of the resource operand does not matter.
    bench.run("buffer_store_dwordx2 v[8:9], v2, s[4:7], 0 offen offset:32").unwrap();
    assert_eq!(bench.memory::<1>(32), [5]);
    // An index outside the VGPR file does not reach the AccVGPR file.
    *bench.wave.row_mut(RowIndex(256 + 44)) = Row::splat(77);
    bench.run("s_set_gpr_idx_on s20, gpr_idx(SRC0)").unwrap();
    bench.wave.write_scalar(ScalarIndex::M0, 1 << 12 | 250);
    bench.run("v_mov_b32 v3, v8").unwrap();
    assert_eq!(bench.lanes(3)[1], 1001);
    bench.wave.write_scalar(ScalarIndex::M0, 1 << 15 | 250);
    bench.run("v_mov_b32 v50, 3").unwrap();
    assert_eq!(bench.lanes(256 + 44)[1], 77);
}
