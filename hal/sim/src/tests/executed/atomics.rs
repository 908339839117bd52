//! LDS and vector memory atomics.

use super::{atomic_reference, value};
use crate::tests::bench::Bench;
use crate::tests::operations::Random;
use flipwave_isa::LaneMask;

/// LDS atomics with an exact reference, by name without `rtn`.
const LDS: [&str; 37] = [
    "add_u32",
    "sub_u32",
    "rsub_u32",
    "inc_u32",
    "dec_u32",
    "min_i32",
    "max_i32",
    "min_u32",
    "max_u32",
    "and_b32",
    "or_b32",
    "xor_b32",
    "mskor_b32",
    "cmpst_b32",
    "cmpst_f32",
    "min_f32",
    "max_f32",
    "add_f32",
    "add_u64",
    "sub_u64",
    "rsub_u64",
    "inc_u64",
    "dec_u64",
    "min_i64",
    "max_i64",
    "min_u64",
    "max_u64",
    "and_b64",
    "or_b64",
    "xor_b64",
    "mskor_b64",
    "cmpst_b64",
    "cmpst_f64",
    "min_f64",
    "max_f64",
    "add_f64",
    "wrap_b32",
];

/// Runs an LDS atomic on random values, one word per lane, with half of the lanes active. Returns
/// the number of lanes that differ from the reference.
fn differences(name: &str, returns: bool, reference: fn(&str, u64, u64, u64) -> u64) -> usize {
    let wide = name.ends_with("64");
    let bits = if wide { 64 } else { 32 };
    let bytes = bits as usize / 8;
    let two = ["cmpst", "mskor", "wrap"].iter().any(|prefix| name.starts_with(prefix));
    let mut random = Random(name.len() as u64);
    let mut bench = Bench::new();
    let lanes: Vec<[u64; 3]> = (0..64)
        .map(|lane| {
            let old = value(&mut random, bits);
            let second = value(&mut random, bits);
            [old, value(&mut random, bits), if lane % 2 == 0 { old } else { second }]
        })
        .collect();
    let active = LaneMask(random.next());
    bench.wave.set_exec(active);
    for (place, [old, ..]) in bench.lds[16..].chunks_mut(bytes).zip(&lanes) {
        place.copy_from_slice(&old.to_le_bytes()[..bytes]);
    }
    bench.set_lanes(2, |lane| lane * bytes as u32);
    // LDS takes the comparison value first.
    let order = if two { [2, 1] } else { [1, 2] };
    for (register, which) in [4, 6].into_iter().zip(order) {
        bench.set_lanes(register, |lane| lanes[lane as usize][which] as u32);
        bench.set_lanes(register + 1, |lane| (lanes[lane as usize][which] >> 32) as u32);
    }
    let (base, kind) = name.rsplit_once('_').unwrap();
    let register = |first: u32| {
        if wide { format!("v[{first}:{}]", first + 1) } else { format!("v{first}") }
    };
    let second = if two { format!(", {}", register(6)) } else { String::new() };
    let text = if returns {
        format!("ds_{base}_rtn_{kind} {}, v2, {}{second} offset:16", register(0), register(4))
    } else {
        format!("ds_{name} v2, {}{second} offset:16", register(4))
    };
    bench.run(&text).unwrap();
    let (low, high) = (bench.lanes(0), bench.lanes(1));
    let mut different = 0;
    for (lane, [old, data, second]) in lanes.into_iter().enumerate() {
        let place = 16 + lane * bytes;
        let mut found = [0; 8];
        found[..bytes].copy_from_slice(&bench.lds[place..place + bytes]);
        let is_active = active.0 >> lane & 1 != 0;
        let wanted = if is_active { reference(name, old, data, second) } else { old };
        different += usize::from(u64::from_le_bytes(found) != wanted);
        let given = u64::from(low[lane]) | u64::from(high[lane]) << 32;
        let given_back = if returns && is_active { old } else { 0 };
        assert_eq!(given, given_back, "{text}, lane {lane}");
    }
    different
}

#[test]
fn lds_atomics_match_reference() {
    for name in LDS {
        assert_eq!(differences(name, true, atomic_reference), 0, "{name}");
        if name != "wrap_b32" {
            assert_eq!(differences(name, false, atomic_reference), 0, "{name}");
        }
    }
}

/// Negative control: a wrapping add instead of a wrapping subtract.
#[test]
fn comparison_detects_wrong_lds_atomic() {
    let wrong = |_: &str, old: u64, data: u64, _: u64| (old + data) & 0xffff_ffff;
    assert!(differences("wrap_b32", true, wrong) > 5);
}
