//! Bit operations of gfx950, checked against bit-by-bit definitions.

use super::{DEFAULT_MODE, Random, Sources, check, operation, samples};

/// Bit by bit through a table of eight entries, shifted bytes, and a shift register.
#[test]
pub fn gfx950_bit_operations_match_reference() {
    let mut random = Random(43);
    let sources: Vec<Sources> =
        (0..2000).map(|_| std::array::from_fn(|_| random.next() & 0xffff_ffff)).collect();
    let bits = |s: &Sources, count: u32| {
        (0..count).fold(0, |result, at| {
            let number = (s[0] >> at & 1) * 4 + (s[1] >> at & 1) * 2 + (s[2] >> at & 1);
            result | (s[3] >> number & 1) << at
        })
    };
    check("v_bitop3_b32", DEFAULT_MODE, &sources, |s| bits(s, 32));
    check("v_bitop3_b16", DEFAULT_MODE, &sources, |s| bits(s, 16));
    for (name, least, most) in [("v_ashr_pk_i8_i32", -128, 127), ("v_ashr_pk_u8_i32", 0, 255)] {
        check(name, DEFAULT_MODE, &samples(operation(name), 3000), |s| {
            let [low, high] = [s[0], s[1]].map(|word| {
                // Floor division.
                let value = i64::from(word as u32 as i32).div_euclid(1 << (s[2] % 32));
                value.clamp(least, most) as u64 & 0xff
            });
            low | high << 8
        });
    }
    check("v_prng_b32", DEFAULT_MODE, &sources, |s| {
        ((s[0] * 2) ^ if s[0] >= 1 << 31 { 0b1100_0101 } else { 0 }) & 0xffff_ffff
    });
}
