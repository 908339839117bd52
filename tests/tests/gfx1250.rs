//! Features that only gfx1250 has: kernels assembled by LLVM, compared with plain Rust.

use flipwave_tests::{Machine, TestProgram, assemble_for, to_values};

const GFX1250: Machine = Machine::new("gfx1250", 32);

/// Runs `body` with 600 vector registers on a buffer of 32 words per lane, initialised with `before`.
/// Returns the buffer. The body has the buffer's address in s[2:3], the lane number in v0 and four times
/// the lane number in v1.
fn run(body: &str, before: impl Fn(u32) -> u32) -> Vec<u32> {
    let body = format!(".set vgprs, 600\n.set accum_offset, 4\n{body}\n");
    let assembly = assemble_for(GFX1250, &body);
    let mut program = TestProgram::new(&assembly.code_object);
    let words: Vec<u32> = (0..1024).map(before).collect();
    let buffer = program.output(&words);
    program.launch("planted", [32, 1, 1], [32, 1, 1], &[buffer]);
    to_values(&program.outputs()[0])
}

/// Runs `body` and returns v2 of each lane.
fn stored(body: &str) -> Vec<u32> {
    run(&format!("{body}\ns_set_vgpr_msb 0\nglobal_store_b32 v1, v2, s[2:3]"), |_| 0)[..32].to_vec()
}

/// Each kind of operand can be a register above v255, and other settings give other results.
#[test]
fn mode_bits_select_registers_above_255() {
    // v266 = 7 + lane, v522 = 5, v10 = 1.
    let set = "v_mov_b32 v10, 1\n\
               s_set_vgpr_msb 0x40\nv_add_nc_u32 v10, 7, v0\n\
               s_set_vgpr_msb 0x80\nv_mov_b32 v10, 5\n";
    let expected =
        |add: u32, factor: u32| (0..32).map(|lane| add + factor * lane).collect::<Vec<u32>>();
    for (immediate, add, factor) in [
        // First source, second, third.
        (0b00_00_00_00, 1 + 1, 0),
        (0b00_00_00_01, 7 + 1, 1),
        (0b00_00_00_10, 5 + 1, 0),
        (0b00_00_01_00, 7 + 1, 1),
        (0b00_01_00_00, 1 + 7, 1),
        (0b00_10_00_01, 7 + 5, 1),
    ] {
        let body = format!("{set}s_set_vgpr_msb {immediate}\nv_mad_u32 v2, v10, v10, v10");
        let products = (0..32).map(|lane: u32| {
            let value = |bits: u32| [1, 7 + lane, 5][bits as usize & 3];
            value(immediate) * value(immediate >> 2) + value(immediate >> 4)
        });
        let all: Vec<u32> = products.collect();
        assert_eq!(stored(&body), all, "{immediate:#b}");
        // Check the reference itself against values computed by hand.
        assert_eq!(all, expected(add, factor), "{immediate:#b}");
    }
}

/// The second half writes a register that the first half reads, and does not affect it.
#[test]
fn dual_instruction_writes_64_bit_result() {
    let body = "v_cvt_f64_u32 v[10:11], v0\n\
                v_mov_b64 v[12:13], 0.5\n\
                v_dual_add_f64 v[4:5], v[10:11], -v[12:13] :: v_dual_mov_b32 v10, -2.0\n\
                v_mov_b32 v2, v5";
    let expected = (0..32).map(|lane| ((f64::from(lane) - 0.5).to_bits() >> 32) as u32);
    assert_eq!(stored(body), expected.collect::<Vec<_>>());
    let low = format!("{body}\nv_mov_b32 v2, v4");
    let expected = (0..32).map(|lane| (f64::from(lane) - 0.5).to_bits() as u32);
    assert_eq!(stored(&low), expected.collect::<Vec<_>>());
}

/// The high byte of the immediate names the previous setting and has no effect. MODE contains the setting
/// at other bits.
#[test]
fn mode_reads_and_writes_the_register_bits() {
    let read = "s_getreg_b32 s4, hwreg(HW_REG_WAVE_MODE, 12, 8)\n\
                s_set_vgpr_msb 0\nv_mov_b32 v2, s4";
    assert_eq!(stored(&format!("s_set_vgpr_msb 0xff1b\n{read}"))[0], 0b01_10_11_00);
    // Set by a write to the field, and by the literal of a write to another field.
    let set = "s_mov_b32 s5, 1\ns_setreg_b32 hwreg(HW_REG_WAVE_MODE, 12, 2), s5\n\
               v_mov_b32 v2, 9\ns_set_vgpr_msb 1\nv_mov_b32 v2, v2";
    assert_eq!(stored(set)[5], 9);
    let clobbered = "s_set_vgpr_msb 0x40\n\
                     s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 0x1\nv_mov_b32 v2, 3";
    assert_eq!(stored(clobbered)[5], 3);
}

/// Branches keep the setting, so an instruction in a loop accesses another register in the second
/// iteration.
#[test]
fn instruction_in_a_loop_accesses_another_register_after_a_mode_change() {
    let body = "v_mov_b32 v2, 0\ns_mov_b32 s6, 2\n\
                again: v_add_nc_u32 v2, 1, v2\n\
                s_set_vgpr_msb 0x44\n\
                s_sub_co_u32 s6, s6, 1\ns_cmp_lg_u32 s6, 0\ns_cbranch_scc1 again\n";
    // v2 is 1; v258 becomes 1 in the second iteration.
    assert_eq!(stored(body)[3], 1);
    let high = format!("{body}s_set_vgpr_msb 1\nv_add_nc_u32 v2, v2, v2");
    // v258 + v2, both one.
    assert_eq!(stored(&high)[3], 2);
}

#[test]
fn literals_have_64_bits() {
    let all = run(
        "s_mov_b64 s[4:5], 0x10abcdef12345678\n\
         v_mov_b32 v2, s4\nv_mov_b32 v3, s5\nglobal_store_b64 v1, v[2:3], s[2:3] scale_offset\n\
         v_mov_b64 v[6:7], 1.0\nv_add_f64 v[2:3], 0x3ff8000000000001, v[6:7]\n\
         v_lshlrev_b32 v4, 3, v0\nglobal_store_b64 v4, v[2:3], s[2:3] offset:2048",
        |_| 0,
    );
    // The offset is four times the lane number, in elements of eight bytes.
    assert_eq!([all[0], all[1]], [0x1234_5678, 0x10ab_cdef]);
    assert_eq!([all[8], all[9]], [0x1234_5678, 0x10ab_cdef]);
    let sum = u64::from(all[512]) | u64::from(all[513]) << 32;
    assert_eq!(sum, (f64::from_bits(0x3ff8_0000_0000_0001) + 1.0).to_bits());
}

/// With `scale_offset`, offsets count elements; offsets are signed.
#[test]
fn offsets_are_scaled_and_signed() {
    let load = |body: &str| {
        let body = format!("{body}\ns_wait_loadcnt 0x0\nglobal_store_b32 v1, v2, s[2:3]");
        run(&body, |word| word * 3)[..32].to_vec()
    };
    let expected = |word: fn(u32) -> u32| (0..32).map(|lane| 3 * word(lane)).collect::<Vec<u32>>();
    let scaled = "v_add_nc_u32 v4, 64, v0\n";
    let at = |rest: &str| format!("{scaled}global_load_b32 v2, v4, s[2:3] {rest}");
    assert_eq!(load(&at("scale_offset")), expected(|lane| 64 + lane));
    // Negative control: without the modifier, offsets count bytes.
    assert_ne!(load(&at("")), expected(|lane| 64 + lane));
    let signed = "s_add_nc_u64 s[4:5], s[2:3], 0x400\nv_sub_nc_u32 v4, 0, v0\n\
                  global_load_b32 v2, v4, s[4:5] scale_offset";
    assert_eq!(load(signed), expected(|lane| 256 - lane));
    let scalar = "s_mov_b32 s6, 5\ns_load_b64 s[4:5], s[2:3], s6 offset:0x8 scale_offset\n\
                  s_wait_kmcnt 0x0\nv_mov_b32 v2, s4";
    assert_eq!(load(scalar), expected(|_| 2 * 5 + 2));
}

#[test]
fn wide_integer_instructions_are_exact() {
    let load = |registers: &str, offset: u32| {
        format!("global_load_b64 {registers}, v4, s[2:3] offset:{offset}\n")
    };
    let mut random = 7u64;
    let words: Vec<u32> = (0..1024)
        .map(|_| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 32) as u32
        })
        .collect();
    type Reference = fn(u64, u64, u64) -> u64;
    let cases: [(&str, Reference); 9] = [
        ("v_add_nc_u64 v[2:3], v[6:7], v[8:9]", |a, b, _| a.wrapping_add(b)),
        ("v_sub_nc_u64 v[2:3], v[6:7], v[8:9]", |a, b, _| a.wrapping_sub(b)),
        ("v_mul_u64 v[2:3], v[6:7], v[8:9]", |a, b, _| a.wrapping_mul(b)),
        ("v_min_i64 v[2:3], v[6:7], v[8:9]", |a, b, _| (a as i64).min(b as i64) as u64),
        ("v_max_i64 v[2:3], v[6:7], v[8:9]", |a, b, _| (a as i64).max(b as i64) as u64),
        ("v_min_u64 v[2:3], v[6:7], v[8:9]", |a, b, _| a.min(b)),
        ("v_max_u64 v[2:3], v[6:7], v[8:9]", |a, b, _| a.max(b)),
        ("v_mad_nc_u64_u32 v[2:3], v6, v8, v[10:11]", |a, b, c| {
            (a & 0xffff_ffff).wrapping_mul(b & 0xffff_ffff).wrapping_add(c)
        }),
        ("v_mad_nc_i64_i32 v[2:3], v6, v8, v[10:11]", |a, b, c| {
            (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(c as i64) as u64
        }),
    ];
    for (text, reference) in cases {
        let body = format!(
            "v_lshlrev_b32 v4, 3, v0\n{}{}{}s_wait_loadcnt 0x0\n{text}\n\
             global_store_b64 v4, v[2:3], s[2:3] offset:1024",
            load("v[6:7]", 0),
            load("v[8:9]", 256),
            load("v[10:11]", 512),
        );
        let before = words.clone();
        let after = run(&body, move |word| before[word as usize]);
        let pair = |all: &[u32], at: usize| u64::from(all[at]) | u64::from(all[at + 1]) << 32;
        for lane in 0..32 {
            let [a, b, c] = [0, 64, 128].map(|start| pair(&words, start + 2 * lane));
            assert_eq!(pair(&after, 256 + 2 * lane), reference(a, b, c), "{text}, lane {lane}");
        }
    }
}

/// Results are the bfloat16 numbers nearest to the exact result; their neighbours are not nearer.
#[test]
fn bfloat16_is_rounded_once() {
    let inputs: Vec<u32> = (0..1024u32)
        .map(|word| (word.wrapping_mul(2654435761) & 0x7fff_7fff) | (0x8000 * (word & 1)))
        .map(|pair| pair & 0x9fff_9fff | 0x2000_2000)
        .collect();
    let single = |bits: u32| f32::from_bits(bits << 16);
    for (text, reference) in [
        ("v_pk_add_bf16 v2, v6, v7", (|a, b, _| a + b) as fn(f64, f64, f64) -> f64),
        ("v_pk_mul_bf16 v2, v6, v7", |a, b, _| a * b),
    ] {
        let body = format!(
            "global_load_b32 v6, v1, s[2:3]\nglobal_load_b32 v7, v1, s[2:3] offset:128\n\
             s_wait_loadcnt 0x0\n{text}\nglobal_store_b32 v1, v2, s[2:3] offset:256"
        );
        let before = inputs.clone();
        let after = run(&body, move |word| before[word as usize]);
        for lane in 0..32 {
            for shift in [0, 16] {
                let half = |word: u32| word >> shift & 0xffff;
                let [a, b] =
                    [inputs[lane], inputs[32 + lane]].map(|word| f64::from(single(half(word))));
                let exact = reference(a, b, 0.0);
                let got = half(after[64 + lane]);
                let distance = |bits: u32| (f64::from(single(bits)) - exact).abs();
                let nearest = [got.wrapping_sub(1) & 0xffff, (got + 1) & 0xffff]
                    .into_iter()
                    .all(|code| distance(got) <= distance(code) || single(code).is_nan());
                assert!(nearest, "{text}: {a:e} {b:e} gives {got:#x}");
            }
        }
    }
}

/// Private memory through flat addresses: each lane reads the private memory of the next lane.
#[test]
fn lanes_read_private_memory_of_other_lanes() {
    let body = ".set private_bytes, 16\n\
                v_add_nc_u32 v5, 100, v0\n\
                scratch_store_b32 off, v5, off offset:4\ns_wait_storecnt 0x0\n\
                s_mov_b64 s[4:5], src_flat_scratch_base_lo\n\
                v_add_nc_u32 v6, 1, v0\nv_and_b32 v6, 31, v6\nv_lshlrev_b32 v6, 20, v6\n\
                v_mov_b32 v7, s5\nv_add_nc_u32 v7, v6, v7\nv_mov_b32 v6, s4\n\
                flat_load_b32 v2, v[6:7] offset:4\ns_wait_loadcnt_dscnt 0x0";
    let expected: Vec<u32> = (0..32).map(|lane| 100 + (lane + 1) % 32).collect();
    assert_eq!(stored(body), expected);
}

/// Asynchronous copies to LDS and back, without registers for the data.
#[test]
fn asynchronous_copies_move_data_to_and_from_lds() {
    let body = ".set lds_bytes, 1024\n\
                v_lshlrev_b32 v4, 2, v0\nv_sub_nc_u32 v5, 124, v4\n\
                global_load_async_to_lds_b32 v5, v4, s[2:3] offset:128\ns_wait_asynccnt 0x0\n\
                ds_load_b32 v2, v4 offset:128\ns_wait_dscnt 0x0\n\
                global_store_async_from_lds_b32 v4, v5, s[2:3] offset:128\ns_wait_asynccnt 0x0\n\
                global_store_b32 v1, v2, s[2:3] offset:512";
    let all = run(body, |word| word * 5);
    for lane in 0..32u32 {
        assert_eq!(all[128 + lane as usize], 5 * (32 + 31 - lane), "loaded, lane {lane}");
        assert_eq!(all[32 + lane as usize], 5 * (32 + lane), "stored, lane {lane}");
    }
}
