//! Single instructions that are specific to gfx11 and gfx12.

use super::generations::{fill, run, run_in, wave};
use crate::dispatch::workgroup_barrier::WorkgroupBarrier;
use crate::execute::control::{BarrierRequest, Step};
use crate::instruction::control::SplitBarrier;
use crate::memory::AddressSpace;
use crate::tests::operations::Random;
use crate::wave::{Level, Mode, RowIndex, ScalarIndex, Wave};
use flipwave_device::FaultCause;
use flipwave_isa::{Lane, LaneMask, Register};

fn scalar(wave: &Wave, index: u8) -> u32 {
    wave.scalar(ScalarIndex(index))
}

#[test]
fn eight_selects_read_zero_from_lanes_that_are_not_active() {
    let moved = |text: &str| {
        let wave = wave("gfx1100", 32, text, |wave| {
            fill(wave, 0, |_| 99);
            fill(wave, 1, |lane| 100 + lane);
            wave.set_exec(LaneMask(0b0111_1111));
        });
        [0, 1, 7].map(|lane: usize| wave.row(RowIndex(0)).0[lane])
    };
    assert_eq!(moved("v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]"), [0, 106, 99]);
    assert_eq!(moved("v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0] fi:1"), [107, 106, 99]);
}

/// From gfx10, FLAT_SCRATCH is not a scalar operand; its old number is an SGPR.
#[test]
fn flat_scratch_is_no_sgpr() {
    for processor in ["gfx1030", "gfx1100", "gfx1201"] {
        let mut wave = wave(processor, 32, "s_mov_b32 s102, 5\ns_mov_b32 s103, 6", |_| {});
        for register in [Register::FlatScratchLo, Register::FlatScratchHi] {
            assert_eq!(wave.read_register(register, Lane(0)), Some(0), "{processor}");
            assert!(wave.write_register(register, Lane(0), 7));
        }
        assert_eq!([102, 103].map(|index| scalar(&wave, index)), [5, 6], "{processor}");
    }
}

#[test]
fn scalar_operations_match_vector_operations() {
    let mut random = Random(17);
    for name in ["add_f32", "sub_f32", "mul_f32", "add_f16", "mul_f16", "cvt_pk_rtz_f16_f32"] {
        for _ in 0..40 {
            let words = [random.next() as u32, random.next() as u32];
            let prepare = |wave: &mut Wave| {
                wave.write_scalar(ScalarIndex(1), words[0]);
                wave.write_scalar(ScalarIndex(2), words[1]);
                fill(wave, 1, |_| words[0]);
                fill(wave, 2, |_| words[1]);
            };
            for processor in ["gfx1150", "gfx1201"] {
                let after = wave(processor, 32, &format!("s_{name} s0, s1, s2"), prepare);
                let form = if name.starts_with("cvt") { "_e64" } else { "_e32" };
                let registers = if name.ends_with("_f16") && !name.starts_with("cvt") {
                    "v0.l, v1.l, v2.l"
                } else {
                    "v0, v1, v2"
                };
                let text = format!("v_{name}{form} {registers}");
                let vector = wave(processor, 32, &text, prepare).row(RowIndex(0)).0[5];
                assert_eq!(scalar(&after, 0), vector, "{name} {words:x?}");
            }
        }
    }
}

#[test]
fn scalar_operations_need_no_active_lane_and_keep_exec() {
    let text = "s_fmac_f32 s0, s1, 2.0\ns_cvt_hi_f32_f16 s4, s2\ns_add_f32 s5, exec_hi, 1.0\n\
                s_cmp_lt_f32 s1, s0\nv_s_rcp_f32 s6, -s1";
    let wave = wave("gfx1201", 32, text, |wave| {
        wave.write_scalar(ScalarIndex(0), 1.0f32.to_bits());
        wave.write_scalar(ScalarIndex(1), 4.0f32.to_bits());
        wave.write_scalar(ScalarIndex(2), 0x3c00_0000);
        wave.set_exec(LaneMask::EMPTY);
    });
    let lane_zero = |index| f32::from_bits(scalar(&wave, index));
    assert_eq!([lane_zero(0), lane_zero(4), lane_zero(5), lane_zero(6)], [9.0, 1.0, 1.0, -0.25]);
    assert!(wave.scc);
    assert_eq!(wave.exec(), LaneMask::EMPTY);
}

#[test]
fn wide_scalar_arithmetic_is_exact() {
    let text = "s_mul_u64 s[4:5], s[0:1], s[2:3]\ns_add_nc_u64 s[6:7], s[0:1], s[2:3]\n\
                s_sub_nc_u64 s[8:9], s[0:1], s[2:3]";
    let mut random = Random(2);
    for _ in 0..100 {
        let [a, b] = [random.next(), random.next()];
        let wave = wave("gfx1201", 32, text, |wave| {
            wave.write_scalar_pair(ScalarIndex(0), a);
            wave.write_scalar_pair(ScalarIndex(2), b);
            wave.scc = true;
        });
        let pair = |index| wave.scalar_pair(ScalarIndex(index));
        let exact = u128::from(a) * u128::from(b);
        assert_eq!(
            [pair(4), pair(6), pair(8)],
            [exact as u64, a.wrapping_add(b), a.wrapping_sub(b)]
        );
        assert!(wave.scc);
    }
}

#[test]
fn removed_mode_bits_read_as_zero() {
    let text = "s_getreg_b32 s0, hwreg(HW_REG_MODE)\n\
                s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 32), 0xf0\n\
                v_max_num_f32_e64 v0, v1, v1 clamp";
    let text = text.replace("hwreg(HW_REG_MODE)", "hwreg(HW_REG_WAVE_MODE)");
    let wave = wave("gfx1201", 32, &text, |wave| {
        wave.mode = Mode(0xf0 | Mode::always_set(wave.machine.generation));
        fill(wave, 1, |_| 0x7fc0_0000);
    });
    assert_eq!(scalar(&wave, 0), 0xf0);
    assert_eq!(wave.row(RowIndex(0)).0[3], 0);
}

#[test]
fn permlane64_swaps_halves_of_the_wave() {
    let swapped = |lanes, exec| {
        let wave = wave("gfx1100", lanes, "v_permlane64_b32 v0, v1", |wave| {
            fill(wave, 0, |_| 99);
            fill(wave, 1, |lane| lane);
            wave.set_exec(LaneMask(exec));
        });
        [0, 5, 31, 32, 63].map(|lane: usize| wave.row(RowIndex(0)).0[lane])
    };
    assert_eq!(swapped(64, u64::MAX), [32, 37, 63, 0, 31]);
    assert_eq!(swapped(64, 0x8000_0001), [32, 99, 63, 99, 99]);
    assert_eq!(swapped(32, u64::MAX), [99; 5]);
}

#[test]
fn each_lane_selects_within_its_row() {
    for (text, distance) in
        [("v_permlane16_var_b32 v0, v1, v2", 0), ("v_permlanex16_var_b32 v0, v1, v2", 16)]
    {
        let wave = wave("gfx1201", 64, text, |wave| {
            fill(wave, 1, |lane| lane);
            fill(wave, 2, |lane| lane * 7 + 3);
        });
        for lane in 0..64_u32 {
            let from = (lane & !15 ^ distance) + (lane * 7 + 3) % 16;
            assert_eq!(wave.row(RowIndex(0)).0[lane as usize], from, "{text}, lane {lane}");
        }
    }
}

#[test]
fn m0_holds_two_relative_distances() {
    let moved = |text: &str, m0: u32| {
        wave("gfx1100", 32, text, |wave| {
            (0..32).for_each(|row| fill(wave, row, |_| u32::from(row)));
            (0..16).for_each(|index| wave.write_scalar(ScalarIndex(index), index.into()));
            wave.write_scalar(ScalarIndex::M0, m0);
        })
    };
    let m0 = 2 << 16 | 3;
    let first_lane = |wave: &Wave, row: u16| wave.row(RowIndex(row)).0[0];
    let wave = moved("v_movrelsd_2_b32 v1, v9", m0);
    assert_eq!([first_lane(&wave, 3), first_lane(&wave, 12)], [12, 12]);
    // Lane 0 reads lane 1.
    let text = "v_movrelsd_2_b32_dpp v1, v9 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf";
    let wave = moved(text, m0);
    assert_eq!(first_lane(&wave, 3), 12);
    let wave = moved("v_swaprel_b32 v1, v9", m0);
    assert_eq!([first_lane(&wave, 3), first_lane(&wave, 12)], [12, 3]);
    assert_eq!(scalar(&moved("s_movrelsd_2_b32 s1, s9", m0), 3), 12);
    // Nothing is exchanged outside the allocation.
    let wave = moved("v_swaprel_b32 v1, v9", 100 << 16);
    assert!((0..32).all(|row| first_lane(&wave, row) == u32::from(row)));
}

#[test]
fn lds_direct_reads_the_type_in_m0() {
    for (m0, expected) in [
        (4 | 2 << 16, 0x8182_8384_u32),
        (4, 0x84),
        (4 | 4 << 16, 0xffff_ff84),
        (4 | 1 << 16, 0x8384),
        (4 | 5 << 16, 0xffff_8384),
    ] {
        let prepare = |wave: &mut Wave, lds: &mut [u8]| {
            wave.write_scalar(ScalarIndex::M0, m0);
            lds[4..8].copy_from_slice(&0x8182_8384_u32.to_le_bytes());
        };
        for (processor, lanes, text) in [
            ("gfx1100", 32, "lds_direct_load v0 wait_vdst:15"),
            ("gfx1201", 32, "ds_direct_load v0 wait_va_vdst:15 wait_vm_vsrc:1"),
            ("gfx906", 64, "v_mov_b32 v0, src_lds_direct"),
        ] {
            let (wave, ..) = run(processor, lanes, text, prepare);
            assert_eq!(wave.row(RowIndex(0)).0[9], expected, "{text}");
        }
    }
}

#[test]
fn byte_sel_selects_the_destination_byte() {
    let text = "v_cvt_sr_fp8_f32 v0, v1, 0 byte_sel:2\nv_cvt_f32_fp8 v2, v0 byte_sel:2\n\
                v_cvt_pk_bf8_f32 v3.h, v1, v1";
    let wave = wave("gfx1201", 32, text, |wave| {
        fill(wave, 0, |_| 0x1111_1111);
        fill(wave, 1, |_| 1.5f32.to_bits());
        fill(wave, 3, |_| 0x2222_2222);
    });
    let result = |row: u16| wave.row(RowIndex(row)).0[7];
    assert_eq!([result(0), result(2), result(3)], [0x113c_1111, 1.5f32.to_bits(), 0x3e3e_2222]);
}

#[test]
fn packed_bytes_keep_the_other_half_from_gfx11_on() {
    let packed = |processor, text: &str| {
        let wave = wave(processor, 32, text, |wave| {
            fill(wave, 0, |_| 0xabcd_ef01);
            fill(wave, 1, |_| 0x0123_8000);
        });
        wave.row(RowIndex(0)).0[0]
    };
    assert_eq!(packed("gfx1100", "v_sat_pk_u8_i16 v0.l, v1"), 0xabcd_ff00);
    assert_eq!(packed("gfx1100", "v_sat_pk_u8_i16 v0.h, v1"), 0xff00_ef01);
    assert_eq!(packed("gfx1030", "v_sat_pk_u8_i16 v0, v1"), 0xff00);
}

/// The product 2 * 3 is added to the half that is written, which holds 1 or 4.
#[test]
fn products_are_added_to_the_half_that_is_written() {
    let added = |text: &str| {
        let wave = wave("gfx1100", 32, text, |wave| {
            fill(wave, 0, |_| 0x4400_3c00);
            fill(wave, 1, |_| 0x4200_4000);
        });
        wave.row(RowIndex(0)).0[0]
    };
    assert_eq!(added("v_fmac_f16_e32 v0.l, v1.l, v1.h"), 0x4400_4700);
    assert_eq!(added("v_fmac_f16_e32 v0.h, v1.l, v1.h"), 0x4900_3c00);
    assert_eq!(added("v_fmac_f16_e64 v0.h, v1.l, v1.h"), 0x4900_3c00);
}

#[test]
fn subvector_loop_skips_inactive_halves() {
    let exec = |text: &str, exec: u64, kept: u32| {
        let wave = wave("gfx1030", 64, text, |wave| {
            wave.set_exec(LaneMask(exec));
            wave.write_scalar(ScalarIndex(0), kept);
            wave.pc = 100;
        });
        (wave.exec().0, scalar(&wave, 0), wave.pc)
    };
    let begin = "s_subvector_loop_begin s0, 4";
    assert_eq!(exec(begin, 0x5_0000_0003, 9), (3, 5, 100));
    assert_eq!(exec(begin, 0x5_0000_0000, 9), (0x5_0000_0000, 0, 100));
    assert_eq!(exec(begin, 0, 9), (0, 9, 116));
    let end = "s_subvector_loop_end s0, -2";
    assert_eq!(exec(end, 3, 5), (0x5_0000_0000, 3, 92));
    assert_eq!(exec(end, 0x5_0000_0000, 3), (0x5_0000_0003, 3, 100));
    assert_eq!(exec(end, 3, 0), (3, 0, 100));
}

#[test]
fn buffer_resources_choose_their_range_check() {
    let loaded = |processor: &str, flags: u32, offset: u32| {
        let text = "buffer_load_b32 v0, v1, s[0:3], null offen";
        let mut space = AddressSpace::default();
        let at = space.allocate(4096).expect("memory").0;
        let words: Vec<u8> = (1..=1024_u32).flat_map(u32::to_le_bytes).collect();
        space.write(flipwave_device::Address(at), &words).expect("memory");
        let prepare = |wave: &mut Wave| {
            // 16 records of 16 bytes.
            for (index, word) in
                [at as u32, (at >> 32) as u32 | 16 << 16, 16, flags].iter().enumerate()
            {
                wave.write_scalar(ScalarIndex(index as u8), *word);
            }
            fill(wave, 1, |_| offset);
        };
        run_in(processor, 32, text, prepare, &mut space).row(RowIndex(0)).0[3]
    };
    for processor in ["gfx1100", "gfx1201"] {
        // Range checks by bytes (16 of them), by record, and none.
        assert_eq!([12, 16].map(|at| loaded(processor, 3 << 28, at)), [4, 0]);
        assert_eq!([12, 16].map(|at| loaded(processor, 0, at)), [4, 0]);
        assert_eq!([16, 400].map(|at| loaded(processor, 1 << 28, at)), [5, 101]);
        assert_eq!([16, 400].map(|at| loaded(processor, 2 << 28, at)), [5, 101]);
    }
}

/// The waves of a two-wave workgroup at its split barrier.
#[test]
fn all_waves_signal_before_any_passes() {
    let request = |operation| BarrierRequest {
        operation,
        barrier: -1,
        members: None,
        destination: ScalarIndex(0),
    };
    let mut barrier = WorkgroupBarrier::new(2);
    let mut waves = [0, 1].map(|_| Wave::new(Level::Plain));
    for round in 0..3 {
        assert!(barrier.request(&mut waves[0], request(SplitBarrier::SignalIsFirst)));
        assert!(waves[0].scc, "round {round}");
        assert!(!barrier.request(&mut waves[0], request(SplitBarrier::Wait)));
        barrier.request(&mut waves[1], request(SplitBarrier::State));
        assert_eq!(scalar(&waves[1], 0), 1 << 16 | 2 << 4 | 1);
        barrier.request(&mut waves[1], request(SplitBarrier::SignalIsFirst));
        assert!(!waves[1].scc);
        assert!(barrier.let_pass(&mut waves[0]));
        assert!(barrier.request(&mut waves[1], request(SplitBarrier::Wait)));
        assert!(!barrier.let_pass(&mut waves[1]));
    }
    // An ended wave is not waited for.
    barrier.request(&mut waves[0], request(SplitBarrier::Signal));
    barrier.leave();
    assert!(barrier.request(&mut waves[0], request(SplitBarrier::Wait)));
    // Other barriers and single-wave workgroups do not wait.
    let other_barrier = BarrierRequest { barrier: 0, ..request(SplitBarrier::Wait) };
    assert!(barrier.request(&mut waves[0], other_barrier));
    assert!(WorkgroupBarrier::new(1).request(&mut waves[0], request(SplitBarrier::Wait)));
}

#[test]
fn graphics_instructions_are_refused_by_type() {
    for (processor, text) in [
        ("gfx1201", "s_alloc_vgpr 64"),
        ("gfx1201", "s_barrier_init m0"),
        ("gfx1100", "ds_add_u32 v0, v1 gds"),
        ("gfx1100", "s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_SAVE_WAVE)"),
        ("gfx1030", "image_load v[0:3], v[0:1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D"),
    ] {
        let (_, _, end) = run(processor, 32, text, |_, _| {});
        assert!(matches!(end, Step::Fault(FaultCause::NotCompute { .. })), "{text}: {end:?}");
    }
    let (_, _, end) = run("gfx1201", 32, "s_prefetch_data s[0:1], 0x10, s2, 3", |_, _| {});
    assert!(matches!(end, Step::Next));
}
