//! Instructions of gfx942 and gfx950 that gfx90a lacks, assembled and executed.

use crate::tests::bench::{Bench, LDS_BYTES};
use crate::tests::operations::Random;
use crate::wave::ScalarIndex;
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;
use half::f16;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns a bench with random bytes in LDS, in memory and in some registers.
fn bench(processor: &str, seed: u64) -> (Bench, Vec<u32>) {
    let mut random = Random(seed);
    let mut bench = Bench::with_processor(processor);
    bench.lds = (0..LDS_BYTES).map(|_| random.next() as u8).collect();
    let memory: Vec<u32> = (0..4096).map(|_| random.next() as u32).collect();
    bench.set_memory(0, &memory);
    (bench, memory)
}

/// Adds two 16-bit floating-point numbers exactly and rounds to nearest even.
fn sum(is_brain: bool, a: u32, b: u32) -> u32 {
    if !is_brain {
        let [x, y] = [a, b].map(|bits| f16::from_bits(bits as u16).to_f64());
        return f16::from_f64(x + y).to_bits().into();
    }
    let [x, y] = [a, b].map(|bits| f64::from(f32::from_bits(bits << 16)));
    let sum = x + y;
    // The two adjacent bfloat16 numbers, and the nearer one.
    let low = (sum as f32).to_bits() >> 16;
    let value = |bits: u32| f64::from(f32::from_bits(bits << 16));
    let candidates = [low.saturating_sub(1), low, low + 1];
    let nearest = candidates.into_iter().min_by(|a, b| {
        let distance = |bits: u32| (value(bits) - sum).abs();
        distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1)))
    });
    nearest.unwrap_or(low)
}

#[test]
fn packed_sums_of_atomics_are_rounded_once() {
    for (kind, is_brain) in [("f16", false), ("bf16", true)] {
        let mut random = Random(3);
        // Finite numbers with a finite sum.
        let mut number = || (random.next() as u32) & 0xbbff_bbff;
        let (mut bench, _) = bench("gfx950", 1);
        let old: Vec<u32> = (0..64).map(|_| number()).collect();
        let data: Vec<u32> = (0..64).map(|_| number()).collect();
        bench.lds[..256]
            .copy_from_slice(&old.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
        bench.set_memory(0, &old);
        let base = bench.buffer.0;
        bench.set_address(8, base);
        bench.set_scalars(4, &[base as u32, (base >> 32) as u32, 0x4000, 0]);
        bench.set_lanes(2, |lane| lane * 4);
        bench.set_lanes(3, |lane| data[lane as usize]);
        bench.wave.set_exec(LaneMask(0x5555_5555_5555_5555));
        bench.run(&format!("ds_pk_add_rtn_{kind} v5, v2, v3")).unwrap();
        bench.run(&format!("global_atomic_pk_add_{kind} v6, v2, v3, s[8:9] sc0")).unwrap();
        bench.run(&format!("buffer_atomic_pk_add_{kind} v3, v2, s[4:7], 0 offen")).unwrap();
        let memory = bench.memory::<64>(0);
        for lane in 0..64 {
            let twice = |first: u32, times: u32| {
                (0..times).fold(first, |word, _| {
                    let half = |shift: u32| {
                        let part = |word: u32| word >> shift & 0xffff;
                        sum(is_brain, part(word), part(data[lane])) << shift
                    };
                    half(0) | half(16)
                })
            };
            let active = u32::from(lane % 2 == 0);
            assert_eq!(word(&bench.lds, 4 * lane), twice(old[lane], active), "{kind} {lane}");
            assert_eq!(memory[lane], twice(old[lane], 2 * active), "{kind} {lane}");
            let returned = if active == 1 { old[lane] } else { 0 };
            assert_eq!([bench.lanes(5)[lane], bench.lanes(6)[lane]], [returned; 2], "{kind}");
        }
    }
    // NaNs become quiet, the one in memory taking precedence; opposite infinities give a NaN.
    for (old, data, wanted) in [
        (0x7f81_7f80, 0x3f80_ff80, 0x7fc1_7fc0),
        (0x3f80_0001, 0xffa0_0001, 0xffe0_0002),
        (0x7f7f_8000, 0x7f7f_0000, 0x7f80_0000),
    ] {
        let (mut bench, _) = bench("gfx942", 2);
        bench.lds[..4].copy_from_slice(&u32::to_le_bytes(old));
        bench.wave.set_exec(LaneMask(1));
        bench.set_lanes(3, |_| data);
        bench.run("ds_pk_add_bf16 v2, v3").unwrap();
        assert_eq!(word(&bench.lds, 0), wanted, "{old:x} {data:x}");
    }
}

#[test]
fn global_loads_write_lds_directly() {
    // Text, bytes per element, sign extension, distance of lanes in bytes.
    for (text, bytes, signed, apart) in [
        ("global_load_lds_dword v2, s[8:9] offset:8", 4, false, 4),
        ("global_load_lds_ubyte v2, s[8:9] offset:8", 1, false, 4),
        ("global_load_lds_sbyte v2, s[8:9] offset:8", 1, true, 4),
        ("global_load_lds_ushort v2, s[8:9] offset:8", 2, false, 4),
        ("global_load_lds_sshort v2, s[8:9] offset:8", 2, true, 4),
        ("global_load_lds_dwordx3 v2, s[8:9] offset:8", 12, false, 16),
        ("global_load_lds_dwordx4 v2, s[8:9] offset:8", 16, false, 16),
        ("buffer_load_dwordx4 v2, s[4:7], 0 offen offset:8 lds", 16, false, 16),
        ("buffer_load_dwordx3 v2, s[4:7], 0 offen offset:8 lds", 12, false, 16),
    ] {
        let (mut bench, memory) = bench("gfx950", 5);
        let base = bench.buffer.0;
        bench.set_address(8, base);
        bench.set_scalars(4, &[base as u32, (base >> 32) as u32, 0x4000, 0]);
        bench.set_lanes(2, |lane| lane * 36);
        bench.wave.write_scalar(ScalarIndex::M0, 0x100);
        bench.wave.set_exec(LaneMask(0xf0f0_f0f0_f0f0_f0f0));
        let mut wanted = bench.lds.clone();
        let source: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
        for lane in (0..64).filter(|lane| lane / 4 % 2 == 1) {
            let element = &source[8 + 36 * lane..][..bytes];
            let sign = if signed && element[bytes - 1] >> 7 != 0 { 0xff } else { 0 };
            let mut whole = vec![sign; bytes.max(4)];
            whole[..bytes].copy_from_slice(element);
            let at = 0x108 + apart * lane;
            wanted[at..at + whole.len()].copy_from_slice(&whole);
        }
        bench.run(text).unwrap();
        assert!(bench.lds == wanted, "{text}");
    }
}

#[test]
fn scratch_loads_write_lds_directly() {
    let (mut bench, memory) = bench("gfx942", 7);
    bench.wave.write_scalar_pair(bench.wave.machine.flat_scratch, bench.buffer.0);
    bench.set_lanes(2, |_| 8);
    bench.wave.write_scalar(ScalarIndex::M0, 0x40);
    bench.run("scratch_load_lds_dword v2, off offset:4").unwrap();
    // Dword 3 of each lane; dwords of consecutive lanes are adjacent.
    for lane in 0..64 {
        assert_eq!(word(&bench.lds, 0x44 + 4 * lane), memory[3 * 64 + lane], "lane {lane}");
    }
}

/// On gfx950, M0 can address all of LDS.
#[test]
fn m0_addresses_all_of_lds() {
    for (processor, reached) in [("gfx942", false), ("gfx950", true)] {
        let (mut bench, memory) = bench(processor, 9);
        bench.lds = vec![0; 160 << 10];
        bench.set_address(8, bench.buffer.0);
        bench.set_lanes(2, |lane| lane * 4);
        bench.wave.write_scalar(ScalarIndex::M0, 0x2_0000);
        bench.run("global_load_lds_dword v2, s[8:9]").unwrap();
        assert_eq!(word(&bench.lds, 0x2_0000) == memory[0], reached, "{processor}");
        assert_eq!(word(&bench.lds, 0) == memory[0], !reached, "{processor}");
    }
}

/// A group of 16 lanes reads a matrix of 16 columns by row; each lane receives one column.
#[test]
fn reads_transpose_among_16_lanes() {
    for (bits, words) in [(16usize, 2usize), (8, 2), (4, 2), (6, 3)] {
        let (mut bench, _) = bench("gfx950", 11);
        // Rows are not adjacent; rows of six-bit elements start at multiples of 16.
        bench.set_lanes(2, |lane| lane * 32);
        let text = format!("ds_read_b{}_tr_b{bits} v[10:{}], v2 offset:16", 32 * words, 9 + words);
        let lds = bench.lds.clone();
        bench.run(&text).unwrap();
        let bit_of = |bytes: &[u8], at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
        let each = 32 * words / bits;
        for lane in 0..64 {
            for row in 0..each {
                let (group, column) = (lane / 16 * 16, lane % 16);
                // The lane that reads this row's element of the column, and the element's position
                // in its words.
                let from = group + (16 * row + column) / each;
                let at = (16 * row + column) % each;
                for bit in 0..bits {
                    let wanted = bit_of(&lds[32 * from + 16..], at * bits + bit);
                    let place = row * bits + bit;
                    let got = bench.lanes(10 + (place / 32) as u16)[lane] >> (place % 32) & 1;
                    assert_eq!(got, wanted, "{text}: lane {lane}, row {row}");
                }
            }
        }
    }
}

/// Parts of registers that a conversion reads and writes.
#[test]
fn op_sel_selects_register_parts() {
    let one = 1f32.to_bits();
    // Text, and the result in v1 = 0xddccbbaa with v2 = 0x38404448 and v3, v4, v8 and v9 = 1.0.
    for (text, wanted) in [
        ("v_cvt_pk_fp8_f32 v1, v3, v4", 0xddcc_3838),
        ("v_cvt_pk_fp8_f32 v1, -v3, v4 op_sel:[0,0,1]", 0x38b8_bbaa),
        ("v_cvt_sr_fp8_f32 v1, v3, v5", 0xddcc_bb38),
        ("v_cvt_sr_fp8_f32 v1, v3, v5 op_sel:[0,0,1,0]", 0xddcc_38aa),
        ("v_cvt_sr_fp8_f32 v1, v3, v5 op_sel:[0,0,0,1]", 0xdd38_bbaa),
        ("v_cvt_sr_bf8_f32 v1, -v3, v5 op_sel:[0,0,1,1]", 0xbccc_bbaa),
        ("v_cvt_f32_fp8_sdwa v1, v2 src0_sel:BYTE_3", 0x3f80_0000),
        ("v_cvt_f32_fp8_sdwa v1, v2 src0_sel:BYTE_2", 0x4000_0000),
        ("v_cvt_scalef32_f32_fp8 v1, v2, v3 op_sel:[1,1,0]", 0x3f80_0000),
        ("v_cvt_scalef32_f32_fp8 v1, v2, v3 op_sel:[0,1,0]", 0x4000_0000),
        ("v_cvt_scalef32_f32_fp8 v1, v2, v3 op_sel:[1,0,0]", 0x4040_0000),
        ("v_cvt_scalef32_f16_fp8 v1, v2, v3 op_sel:[1,1,0]", 0xddcc_3c00),
        ("v_cvt_scalef32_f16_fp8 v1, v2, v3 op_sel:[1,1,1]", 0x3c00_bbaa),
        ("v_cvt_scalef32_pk_fp4_f32 v1, v3, -v4, v3", 0xddcc_bba2),
        ("v_cvt_scalef32_pk_fp4_f32 v1, v3, v4, v3 op_sel:[0,0,1,1]", 0x22cc_bbaa),
        ("v_cvt_scalef32_pk_fp4_f16 v1, -v6, v3 op_sel:[0,0,0,1]", 0xddaa_bbaa),
        ("v_cvt_scalef32_sr_pk_fp4_f32 v1, -v[8:9], v5, v3 op_sel:[0,0,1,0]", 0xddcc_aaaa),
        ("v_cvt_scalef32_pk_bf8_f16 v1, v6, v3 op_sel:[0,0,1]", 0x3c3c_bbaa),
        ("v_cvt_scalef32_pk_f16_fp4 v1, v2, v3 op_sel:[1,1,0]", 0x3e00_8000),
        ("v_cvt_scalef32_pk_bf16_fp8 v1, v2, v3 op_sel:[1,0,0]", 0x3f80_4000),
        ("v_cvt_sr_bf16_f32 v1, v3, v5 op_sel:[0,0,1]", 0x3f80_bbaa),
        ("v_ashr_pk_u8_i32 v1, v2, v7, v7 op_sel:[0,0,0,1]", 0x00ff_bbaa),
        ("v_bitop3_b16 v1, v2, v2, v2 bitop3:0xf0 op_sel:[1,0,0,1]", 0x3840_bbaa),
        ("v_bitop3_b32 v1, v2, v3, v4 bitop3:0xc0", 0x3840_4448 & 0x3f80_0000),
        ("v_cvt_pk_bf16_f32 v1, v3, -v4", 0xbf80_3f80),
        ("v_prng_b32 v1, v3", 0x7f00_0000),
    ] {
        let mut bench = Bench::with_processor("gfx950");
        let registers = [0xddcc_bbaa, 0x3840_4448, one, one, 0, 0x3c00_3c00, 8, one, one];
        for (at, word) in registers.into_iter().enumerate() {
            bench.set_lanes(1 + at as u16, |_| word);
        }
        bench.run(text).unwrap();
        assert_eq!(bench.lanes(1)[5], wanted, "{text}: {:#x}", bench.lanes(1)[5]);
    }
}

/// gfx942 decodes FP8 bytes differently.
#[test]
fn fp8_format_depends_on_target() {
    for (processor, one) in [("gfx942", 0x40), ("gfx950", 0x38)] {
        let mut bench = Bench::with_processor(processor);
        bench.set_lanes(2, |_| 1f32.to_bits());
        bench.run("v_cvt_pk_fp8_f32 v1, v2, v2").unwrap();
        assert_eq!(bench.lanes(1)[0], one | one << 8, "{processor}");
        bench.run("v_cvt_f32_fp8 v3, v1").unwrap();
        assert_eq!(bench.lanes(3)[0], 1f32.to_bits(), "{processor}");
        // 32 products of ones.
        bench.set_lanes(4, |_| one * 0x0101_0101);
        bench.set_lanes(5, |_| one * 0x0101_0101);
        bench.run("v_mfma_f32_16x16x32_fp8_fp8 v[8:11], v[4:5], v[4:5], 1.0").unwrap();
        assert_eq!(bench.lanes(10)[7], 33f32.to_bits(), "{processor}");
    }
}

/// A four-word instruction whose two scales are additional operands.
#[test]
fn scales_are_operands_of_a_matrix_operation() {
    let mut bench = Bench::with_processor("gfx950");
    // Four-bit ones; scales of two and four in the second byte of each register.
    for register in 4..12 {
        bench.set_lanes(register, |_| 0x2222_2222);
    }
    bench.set_lanes(20, |_| 128 << 8);
    bench.set_lanes(21, |_| 129 << 8);
    let text = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], 1.0, v20, v21 \
                op_sel:[1,1,0] op_sel_hi:[0,0,0] cbsz:4 blgp:4";
    bench.run(text).unwrap();
    assert_eq!(bench.lanes(3)[63], (128.0 * 8.0 + 1.0f32).to_bits());
    // Exchanges rows 1 and 3 of one register with rows 0 and 2 of another.
    bench.set_lanes(1, |lane| lane);
    bench.set_lanes(2, |lane| 100 + lane);
    bench.run("v_permlane16_swap_b32 v1, v2").unwrap();
    assert_eq!([bench.lanes(1)[16], bench.lanes(2)[0], bench.lanes(1)[0]], [100, 16, 0]);
    bench.run("v_mfma_ld_scale_b32 v1, v2").unwrap();
    // A reserved format.
    let fault = bench.run_bytes(&[0x00, 0x05, 0xad, 0xd3, 0x04, 0x11, 0x02, 0x04]);
    assert!(matches!(fault, Err(FaultCause::NotCompute { .. })), "{fault:?}");
}
