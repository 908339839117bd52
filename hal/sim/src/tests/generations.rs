//! Differences between generations and wave sizes.

use crate::execute::control::Step;
use crate::execute::operations;
use crate::execute::step::step;
use crate::instruction::Run;
use crate::memory::AddressSpace;
use crate::tests::operations::coverage::decoded;
use crate::translate::translate;
use crate::wave::{Level, Machine, Mode, RowIndex, ScalarIndex, Wave};
use flipwave_depth::cases;
use flipwave_device::{FaultCause, WaveId};
use flipwave_isa::{Isa, LaneMask, Pc, Target};
use std::collections::BTreeSet;

/// Executes `text` with registers set by `prepare` and all lanes active. Returns the wave and the
/// result of the last step.
pub(super) fn run(
    processor: &str,
    lanes: u8,
    text: &str,
    prepare: impl Fn(&mut Wave, &mut [u8]),
) -> (Wave, Vec<u8>, Step) {
    let target: Target = processor.parse().expect("a target");
    let isa = Isa::with_wave_size(&target, lanes).expect("LLVM has it");
    let machine = Machine::new(&target, lanes);
    let mut wave = Wave::new(Level::Plain);
    let id = WaveId { workgroup: [0; 3], wave: 0 };
    wave.reset(machine, id, 32, 0);
    wave.mode = Mode(0x3f0);
    wave.set_exec(machine.all_lanes());
    let mut lds = vec![0; 64];
    prepare(&mut wave, &mut lds);
    let mut end = Step::Next;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let inst = isa.decode(&bytes, Pc(0)).unwrap_or_else(|error| panic!("{line}: {error}"));
        let op = translate(inst, Level::Plain, machine);
        end = step(&mut wave, &op, &mut AddressSpace::default(), &mut lds);
        if let Step::Fault(FaultCause::Unimplemented { reason, .. }) = &end {
            panic!("{line}: {reason}");
        }
    }
    (wave, lds, end)
}

/// Executes instructions that access memory. Returns the wave.
pub(super) fn run_in(
    processor: &str,
    lanes: u8,
    text: &str,
    prepare: impl Fn(&mut Wave),
    space: &mut AddressSpace,
) -> Wave {
    let (mut wave, mut lds, _) = run(processor, lanes, "s_nop 0", |wave, _| prepare(wave));
    let target: Target = processor.parse().expect("a target");
    let isa = Isa::with_wave_size(&target, lanes).expect("LLVM has it");
    let bytes = isa.assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let inst = isa.decode(&bytes, Pc(0)).unwrap_or_else(|error| panic!("{text}: {error}"));
    let op = translate(inst, Level::Plain, wave.machine);
    let end = step(&mut wave, &op, space, &mut lds);
    assert!(matches!(end, Step::Next), "{text}: {end:?}");
    wave
}

/// Executes instructions that must not fault. Returns the wave.
pub(super) fn wave(processor: &str, lanes: u8, text: &str, prepare: impl Fn(&mut Wave)) -> Wave {
    let (wave, _, end) = run(processor, lanes, text, |wave, _| prepare(wave));
    assert!(matches!(end, Step::Next), "{text}: {end:?}");
    wave
}

/// Sets register `index` to `word(lane)`.
pub(super) fn fill(wave: &mut Wave, index: u16, word: impl Fn(u32) -> u32) {
    (0..64).for_each(|lane| wave.row_mut(RowIndex(index)).0[lane as usize] = word(lane));
}

const VCC_HI: ScalarIndex = ScalarIndex(ScalarIndex::VCC.0 + 1);
const EXEC_HI: ScalarIndex = ScalarIndex(ScalarIndex::EXEC.0 + 1);

/// An instruction reads and writes exactly the halves it names; the other half of a result is kept.
#[test]
fn halves_of_registers_are_read_and_written_where_they_are_named() {
    let prepare = |wave: &mut Wave| {
        fill(wave, 0, |_| 0x0007_0005);
        fill(wave, 1, |_| 0x0300_0100);
        fill(wave, 2, |_| 0x1111_2222);
        wave.write_scalar(ScalarIndex(0), 0x0040_0020);
    };
    for (text, expected) in [
        ("v_add_nc_u16 v2.l, v0.l, v1.h", 0x1111_0305),
        ("v_add_nc_u16 v2.h, v0.h, v1.l", 0x0107_2222),
        ("v_mul_lo_u16 v2.l, v0.h, v0.h", 0x1111_0031),
        ("v_mov_b16_e32 v2.h, v1.h", 0x0300_2222),
        ("v_mov_b16_e64 v2.l, v1.h", 0x1111_0300),
        ("v_add_nc_u16 v2.h, v0.h, 3", 0x000a_2222),
        // The half of a scalar source is not part of its name.
        ("v_add_nc_u16 v2.l, v0.l, s0 op_sel:[0,1,0]", 0x1111_0045),
        ("v_cvt_f16_u16_e32 v2.h, v0.l", 0x4500_2222),
        ("v_cmp_eq_u16_e64 s2, v0.h, 7\nv_cndmask_b16 v2.h, v0.l, v0.h, s2", 0x0007_2222),
        ("v_cmp_eq_u16_e32 vcc_lo, 5, v0.l\nv_cndmask_b32 v2, v0, v1, vcc_lo", 0x0300_0100),
        ("v_mov_b16_e32 v0.h, 9\nv_swap_b16 v2.l, v0.h", 0x1111_0009),
    ] {
        let end = wave("gfx1100", 32, text, prepare);
        assert_eq!(end.row(RowIndex(2)).0[3], expected, "{text}");
    }
}

#[test]
fn both_halves_of_a_dual_instruction_read_before_either_writes() {
    let prepare = |wave: &mut Wave| {
        fill(wave, 0, |lane| lane);
        fill(wave, 1, |lane| 100 + lane);
    };
    let exchange = "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0";
    let swapped = wave("gfx1100", 32, exchange, prepare);
    assert_eq!([0, 1].map(|row| swapped.row(RowIndex(row)).0[5]), [105, 5]);
    // Executed sequentially, the moves would not exchange the registers.
    let halves = "v_mov_b32 v0, v1\nv_mov_b32 v1, v0";
    let copied = wave("gfx1100", 32, halves, prepare);
    assert_eq!([0, 1].map(|row| copied.row(RowIndex(row)).0[5]), [105, 105]);
}

#[test]
fn halves_of_a_dual_instruction_keep_inactive_lanes_and_find_their_accumulators() {
    let text = "v_dual_fmac_f32 v0, v2, v2 :: v_dual_cndmask_b32 v1, v3, v0";
    let wave = wave("gfx1100", 32, text, |wave| {
        fill(wave, 0, |_| 1.0f32.to_bits());
        fill(wave, 1, |_| 7);
        fill(wave, 2, |_| 3.0f32.to_bits());
        fill(wave, 3, |_| 8);
        wave.set_exec(LaneMask(0b11));
        wave.write_scalar(ScalarIndex::VCC, 0b10);
    });
    let of = |row: u16| wave.row(RowIndex(row)).0;
    assert_eq!(of(0)[..3], [10.0, 10.0, 1.0f32].map(f32::to_bits));
    assert_eq!(of(1)[..3], [8, 1.0f32.to_bits(), 7]);
}

#[test]
fn lane_masks_of_32_lanes_are_one_register() {
    let prepare = |wave: &mut Wave| {
        fill(wave, 0, |lane| lane);
        wave.write_scalar(VCC_HI, 0xdead);
        wave.write_scalar(ScalarIndex(5), 0xdead);
    };
    let text = "v_cmp_gt_u32_e32 vcc_lo, 3, v0\nv_cmp_gt_u32_e64 s4, 3, v0";
    let narrow = wave("gfx1100", 32, text, prepare);
    let words = |wave: &Wave| {
        [ScalarIndex::VCC, VCC_HI, ScalarIndex(4), ScalarIndex(5)].map(|index| wave.scalar(index))
    };
    assert_eq!(words(&narrow), [7, 0xdead, 7, 0xdead]);
    let text = "v_cmp_gt_u32_e32 vcc, 3, v0\nv_cmp_gt_u32_e64 s[4:5], 3, v0";
    for processor in ["gfx1100", "gfx90a"] {
        assert_eq!(words(&wave(processor, 64, text, prepare)), [7, 0, 7, 0], "{processor}");
    }
}

#[test]
fn mask_bits_above_32_lanes_are_ignored() {
    let text = "s_mov_b32 exec_hi, -1\ns_mov_b32 vcc_hi, -1\ns_mov_b32 vcc_lo, 0";
    let narrow = wave("gfx1100", 32, text, |_| {});
    assert_eq!((narrow.exec().0, narrow.scalar(EXEC_HI), narrow.vcc()), (0xffff_ffff, 0, 0));
    let wide = wave("gfx1100", 64, text, |_| {});
    assert_eq!((wide.exec().0, wide.vcc()), (u64::MAX, 0xffff_ffff_0000_0000));

    let text = "s_xor_saveexec_b32 s0, s1\nv_readlane_b32 s2, v0, 33";
    let narrow = wave("gfx1030", 32, text, |wave| {
        fill(wave, 0, |lane| lane);
        wave.write_scalar(ScalarIndex(1), 0xff);
    });
    assert_eq!((narrow.exec().0, narrow.scalar(ScalarIndex(0))), (0xffff_ff00, 0xffff_ffff));
    assert_eq!(narrow.scalar(ScalarIndex(2)), 1);
}

#[test]
fn cmpx_also_writes_a_mask_only_up_to_gfx9() {
    let prepare = |wave: &mut Wave| {
        fill(wave, 0, |lane| lane);
        wave.write_scalar_pair(ScalarIndex::VCC, 0x123);
    };
    let newer = wave("gfx1030", 64, "v_cmpx_gt_u32_e32 3, v0", prepare);
    assert_eq!((newer.exec().0, newer.vcc()), (7, 0x123));
    let older = wave("gfx90a", 64, "v_cmpx_gt_u32_e32 vcc, 3, v0", prepare);
    assert_eq!((older.exec().0, older.vcc()), (7, 7));
}

#[test]
fn half_word_results_keep_the_other_half_from_gfx10_on() {
    let sums = |processor, lanes, name: &str| {
        let text = format!("{name} v0, v1, v1");
        let wave = wave(processor, lanes, &text, |wave| {
            fill(wave, 0, |_| 0xabcd_0000);
            fill(wave, 1, |_| 0x0003);
        });
        wave.row(RowIndex(0)).0[0]
    };
    assert_eq!(sums("gfx1030", 32, "v_add_nc_u16"), 0xabcd_0006);
    assert_eq!(sums("gfx1100", 32, "v_lshlrev_b16"), 0xabcd_0018);
    assert_eq!(sums("gfx1100", 64, "v_add_f16"), 0xabcd_0006);
    assert_eq!(sums("gfx906", 64, "v_add_u16"), 6);
    assert_eq!(sums("gfx90a", 64, "v_add_f16"), 6);
}

#[test]
fn results_to_null_are_discarded() {
    let scalars =
        |wave: &Wave| -> Vec<u32> { (0..128).map(|n| wave.scalar(ScalarIndex(n))).collect() };
    for lanes in [32, 64] {
        let text =
            "v_mad_u64_u32 v[0:1], null, v2, v2, v[4:5]\ns_mov_b64 null, -1\ns_mov_b32 null, -1";
        let before = wave("gfx1100", lanes, "s_nop 0", |_| {});
        let after = wave("gfx1100", lanes, text, |wave| fill(wave, 2, |_| u32::MAX));
        assert_eq!(scalars(&after), scalars(&before));
        let product = u64::from(u32::MAX) * u64::from(u32::MAX);
        assert_eq!(
            [0, 1].map(|row| after.row(RowIndex(row)).0[3]),
            [product as u32, (product >> 32) as u32]
        );
        let zero = wave("gfx1100", lanes, "s_mov_b32 null, -1\ns_mov_b32 s0, null", |_| {});
        assert_eq!(zero.scalar(ScalarIndex(0)), 0);
    }
}

#[test]
fn permutes_reach_32_lanes_on_gfx10_and_gfx11() {
    let fetched = |processor, lanes| {
        let wave = wave(processor, lanes, "ds_bpermute_b32 v0, v1, v2", |wave| {
            fill(wave, 1, |_| 4 * 35);
            fill(wave, 2, |lane| lane);
        });
        [3, 40].map(|lane: usize| wave.row(RowIndex(0)).0[lane])
    };
    assert_eq!(fetched("gfx1100", 64), [3, 35]);
    assert_eq!(fetched("gfx1030", 32)[0], 3);
    assert_eq!(fetched("gfx942", 64), [35, 35]);
}

#[test]
fn rows_are_permuted_by_scalar_selects() {
    let permuted = |text: &str, exec: u64| {
        let wave = wave("gfx1100", 32, text, |wave| {
            fill(wave, 0, |_| 99);
            fill(wave, 1, |lane| lane);
            // Lane i reads lane 15 - i.
            wave.write_scalar(ScalarIndex(0), 0x89ab_cdef);
            wave.write_scalar(ScalarIndex(1), 0x0123_4567);
            wave.set_exec(LaneMask(exec));
        });
        [0, 1, 15, 16].map(|lane: usize| wave.row(RowIndex(0)).0[lane])
    };
    let all = 0xffff_ffff;
    assert_eq!(permuted("v_permlane16_b32 v0, v1, s0, s1", all), [15, 14, 0, 31]);
    assert_eq!(permuted("v_permlanex16_b32 v0, v1, s0, s1", all), [31, 30, 16, 15]);
    // Lane 15 is inactive: not read, read as zero, read normally.
    let most = all & !(1 << 15);
    assert_eq!(permuted("v_permlane16_b32 v0, v1, s0, s1", most), [99, 14, 99, 31]);
    assert_eq!(permuted("v_permlane16_b32 v0, v1, s0, s1 op_sel:[0,1]", most), [0, 14, 99, 31]);
    assert_eq!(permuted("v_permlane16_b32 v0, v1, s0, s1 op_sel:[1,0]", most), [15, 14, 99, 31]);
}

#[test]
fn relative_moves_add_m0_and_stay_in_the_allocation() {
    let moved = |text: &str, m0: u32| {
        wave("gfx1100", 32, text, |wave| {
            (0..32).for_each(|row| fill(wave, row, |_| u32::from(row)));
            wave.write_scalar(ScalarIndex::M0, m0);
        })
    };
    let of = |wave: &Wave, row: u16| wave.row(RowIndex(row)).0[0];
    assert_eq!(of(&moved("v_movrels_b32 v1, v4", 3), 1), 7);
    assert_eq!(of(&moved("v_movrels_b32 v1, v4", 300), 1), 0);
    assert_eq!(of(&moved("v_movreld_b32 v1, v9", 3), 4), 9);
    assert_eq!(of(&moved("v_movrelsd_b32 v1, v9", 3), 4), 12);
    let void = moved("v_movreld_b32 v1, v9", u32::MAX);
    assert!((0..32).all(|row| of(&void, row) == u32::from(row)));
}

#[test]
fn the_compared_value_comes_first_up_to_gfx10_and_second_from_gfx11_on() {
    let swapped = |processor, lanes, text: &str| {
        let (_, lds, _) = run(processor, lanes, text, |wave, lds| {
            lds[0] = 5;
            fill(wave, 1, |_| 5);
            fill(wave, 2, |_| 8);
            wave.set_exec(LaneMask(1));
        });
        lds[0]
    };
    assert_eq!(swapped("gfx1030", 32, "ds_cmpst_b32 v0, v1, v2"), 8);
    assert_eq!(swapped("gfx1100", 32, "ds_cmpstore_b32 v0, v2, v1"), 8);
    assert_eq!(swapped("gfx1100", 32, "ds_cmpstore_b32 v0, v1, v2"), 5);
}

#[test]
fn modes_and_flat_scratch_are_set_as_hardware_registers() {
    let text = "s_denorm_mode 0x5\ns_setreg_b32 hwreg(HW_REG_FLAT_SCR_HI), s0\ns_getreg_b32 s1, hwreg(HW_REG_FLAT_SCR_HI)";
    let newer = wave("gfx1030", 32, text, |wave| wave.write_scalar(ScalarIndex(0), 0x1234));
    assert_eq!(newer.mode, Mode(0x350));
    assert_eq!(newer.scalar_pair(newer.machine.flat_scratch), 0x1234_0000_0000);
    assert_eq!(newer.scalar(ScalarIndex(1)), 0x1234);
    // On newer generations these are ordinary registers, and MODE has no GPR-index mode.
    assert_eq!(newer.scalar(ScalarIndex(103)), 0);
    let text = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1";
    assert!(!wave("gfx1030", 32, text, |_| {}).mode.indexes_vgprs());
    assert!(wave("gfx906", 64, text, |_| {}).mode.indexes_vgprs());
}

#[test]
fn bytes_after_a_program_are_illegal() {
    let (_, _, end) = run("gfx1100", 32, "s_code_end", |_, _| {});
    assert!(matches!(end, Step::Fault(FaultCause::IllegalInstruction { word: 0xbf9f_0000 })));
}

/// Instruction decoder corpora: samples of each target's instructions.
const CORPORA: [(&str, &str, &[&str]); 6] = [
    ("gfx906", include_str!("../../../amdgpu/isa/tests/corpus/gfx906.s"), &[]),
    ("gfx908", include_str!("../../../amdgpu/isa/tests/corpus/gfx908.s"), &[]),
    ("gfx942", include_str!("../../../amdgpu/isa/tests/corpus/gfx942.s"), &[]),
    ("gfx950", include_str!("../../../amdgpu/isa/tests/corpus/gfx942.s"), &[]),
    ("gfx1030", include_str!("../../../amdgpu/isa/tests/corpus/gfx1030.s"), &[]),
    ("gfx1100", include_str!("../../../amdgpu/isa/tests/corpus/gfx1100.s"), &[]),
];

/// Prefixes of instructions that no target executes yet, or that compute programs cannot use.
const EVERYWHERE: &[&str] = &[
    "image_",
    "tbuffer_",
    "buffer_load_format",
    "buffer_store_format",
    "exp",
    "v_interp_",
    "s_store_",
    "s_buffer_store_",
    "s_scratch_",
    "s_atomic_",
    "s_buffer_atomic_",
    "s_atc_probe",
    "s_dcache_discard",
    "s_cbranch_g_fork",
    "s_cbranch_i_fork",
    "s_cbranch_join",
    "s_rfe",
    "ds_read_addtid",
    "ds_write_addtid",
    "ds_wrxchg2",
    "ds_condxchg32",
    "ds_gws_",
    "v_screen_partition",
    "ds_or_src2",
    "s_subvector_loop",
];

/// Returns the instructions in the corpus and the opcode table of a target that are not executed.
/// Read-only destinations, saturation without effect, direct-to-LDS loads and the global data share
/// are excluded.
fn gaps(target: &Target, lanes: u8, corpus: &str) -> BTreeSet<&'static str> {
    let isa = Isa::with_wave_size(target, lanes).expect("LLVM has it");
    let machine = Machine::new(target, lanes);
    let odd = ["src_", " clamp", " lds", " gds", " tfe", "attr"];
    let mut gaps = BTreeSet::new();
    for line in corpus.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let Ok(bytes) = isa.assemble(line) else { continue };
        let Ok(inst) = isa.decode(&bytes, Pc(0)) else { continue };
        let name = inst.operation.name();
        let executed = !matches!(translate(inst, Level::Plain, machine).run, Run::Gap(_));
        if !executed && !odd.iter().any(|word| line.contains(word)) {
            // The half of a dual instruction that causes the gap.
            gaps.extend(
                name.split(" :: ")
                    .filter(|half| !name.contains(" :: ") || half.contains("dot2acc")),
            );
        }
    }
    let machine = Machine::new(target, target.default_wave_size());
    let executed = |name: &&&str| {
        operations::find(&name.replace("v_cmpx_", "v_cmp_")).is_some()
            // Some operations have a row per combination of signs.
            || operations::find_for(name, Some(0), machine).is_some()
            || operations::find_whole(name, machine).is_some()
            || crate::instruction::control::find(name).is_some()
    };
    gaps.extend(decoded(&isa).iter().filter(|name| !executed(name)));
    gaps
}

#[test]
fn every_instruction_of_the_corpora_is_executed_or_listed_as_a_gap() {
    for (processor, corpus, known_gaps) in cases(CORPORA, 3) {
        let target: Target = processor.parse().expect("a target");
        for lanes in target.wave_sizes() {
            let gaps = gaps(&target, *lanes, corpus);
            let known: Vec<&str> = EVERYWHERE.iter().chain(known_gaps).copied().collect();
            let unexpected: Vec<_> = gaps
                .iter()
                .map(|gap| gap.replace("dual_", ""))
                .filter(|gap| !known.iter().any(|known| gap.starts_with(known)))
                .collect();
            assert!(unexpected.is_empty(), "{processor}, {lanes} lanes: {unexpected:?}");
            let closed: Vec<_> = known_gaps
                .iter()
                .filter(|known| !gaps.iter().any(|gap| gap.starts_with(*known)))
                .collect();
            assert!(closed.is_empty(), "{processor} executes what is listed: {closed:?}");
        }
    }
}
