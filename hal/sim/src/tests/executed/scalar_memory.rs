//! Scalar loads, stores and atomics.

use super::{atomic_reference, value};
use crate::tests::bench::Bench;
use crate::tests::operations::Random;
use crate::wave::ScalarIndex;
use flipwave_device::{Address, FaultCause};
use flipwave_isa::LaneMask;

const OPERATIONS: [&str; 13] = [
    "swap", "cmpswap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc",
    "dec",
];

/// Returns a bench with the address of the buffer in `s[2:3]` and a resource of 0x100 bytes there
/// in `s[4:7]`.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.wave.set_exec(LaneMask::EMPTY);
    let base = bench.buffer.0;
    bench.set_address(2, base);
    bench.set_scalars(4, &[base as u32, (base >> 32) as u32, 0x100, 0]);
    bench
}

fn pair(words: [u32; 2]) -> u64 {
    u64::from(words[0]) | u64::from(words[1]) << 32
}

#[test]
fn scalar_stores_add_offsets_to_the_base() {
    let mut bench = bench();
    bench.set_scalars(16, &[11, 12, 13, 14]);
    bench.set_scalars(20, &[0x40]);
    bench.run("s_store_dword s16, s[2:3], 0x8").unwrap();
    bench.run("s_store_dwordx2 s[16:17], s[2:3], s20").unwrap();
    bench.run("s_store_dwordx4 s[16:19], s[2:3], s20 offset:0x40").unwrap();
    bench.run("s_buffer_store_dword s17, s[4:7], 0xfc").unwrap();
    assert_eq!(bench.memory(0), [0, 0, 11, 0]);
    assert_eq!(bench.memory(0x40), [11, 12, 0]);
    assert_eq!(bench.memory(0x80), [11, 12, 13, 14, 0]);
    assert_eq!(bench.memory(0xfc), [12, 0]);
    // The second dword lies outside the resource.
    bench.run("s_buffer_store_dwordx2 s[18:19], s[4:7], 0xfc").unwrap();
    assert_eq!(bench.memory(0xfc), [14 - 1, 0]);
}

#[test]
fn scalar_scratch_counts_its_offset_register_in_units_of_64_bytes() {
    let mut bench = bench();
    bench.set_scalars(16, &[21, 22]);
    bench.set_scalars(20, &[3]);
    bench.run("s_scratch_store_dwordx2 s[16:17], s[2:3], s20 offset:0x4").unwrap();
    assert_eq!(bench.memory(3 * 64), [0, 21, 22]);
    bench.run("s_scratch_load_dwordx2 s[24:25], s[2:3], 0xc4").unwrap();
    assert_eq!(bench.wave.scalar_pair(ScalarIndex(24)), pair([21, 22]));
}

/// Runs all scalar atomics on random values. Returns the number of results that differ from the
/// reference.
fn differences(reference: fn(&str, u64, u64, u64) -> u64) -> usize {
    let mut random = Random(21);
    let mut bench = bench();
    let mut different = 0;
    for (operation, wide) in OPERATIONS.iter().flat_map(|name| [(name, false), (name, true)]) {
        let name = format!("{operation}{}", if wide { "_x2" } else { "" });
        for round in 0..40 {
            let [old, data, other] = [0; 3].map(|_| value(&mut random, if wide { 64 } else { 32 }));
            let second = if round % 2 == 0 { old } else { other };
            let halves = |value: u64| [value as u32, (value >> 32) as u32];
            let (registers, words) = match (wide, *operation == "cmpswap") {
                (false, false) => ("s16", vec![data as u32]),
                (false, true) => ("s[16:17]", vec![data as u32, second as u32]),
                (true, false) => ("s[16:17]", halves(data).to_vec()),
                (true, true) => ("s[16:19]", [halves(data), halves(second)].concat()),
            };
            for (space, base) in [("", "s[2:3]"), ("buffer_", "s[4:7]")] {
                for returns in [false, true] {
                    bench.set_memory(0x10, &halves(old));
                    bench.set_scalars(16, &words);
                    let glc = if returns { " glc" } else { "" };
                    bench
                        .run(&format!("s_{space}atomic_{name} {registers}, {base}, 0x10{glc}"))
                        .unwrap();
                    let upper = if wide { 0 } else { old & !0xffff_ffff };
                    let wanted = reference(&name, old, data, second) | upper;
                    let first = bench.wave.scalar_pair(ScalarIndex(16));
                    let given = if wide { first } else { first & 0xffff_ffff };
                    let kept = if returns { old } else { data };
                    different += usize::from(pair(bench.memory(0x10)) != wanted);
                    assert_eq!(given, kept, "{name}: what is returned");
                }
            }
        }
    }
    different
}

#[test]
fn scalar_atomics_match_reference() {
    assert_eq!(differences(atomic_reference), 0);
}

/// Negative control: another rule for one operation.
#[test]
fn comparison_detects_wrong_scalar_atomic() {
    let wrong = |name: &str, old, data, second| match name {
        "smax" => atomic_reference("umax", old, data, second),
        _ => atomic_reference(name, old, data, second),
    };
    assert!(differences(wrong) > 10);
}

#[test]
fn out_of_resource_accesses_vanish_and_unmapped_ones_fault() {
    let mut bench = bench();
    bench.set_memory(0x100, &[5]);
    bench.set_scalars(16, &[7]);
    bench.run("s_buffer_atomic_add s16, s[4:7], 0x100 glc").unwrap();
    assert_eq!((bench.memory(0x100), bench.wave.scalar(ScalarIndex(16))), ([5], 0));
    bench.set_address(2, 0x1000);
    let fault = bench.run("s_store_dword s16, s[2:3], 0x4").unwrap_err();
    assert!(
        matches!(fault, FaultCause::MemoryViolation { address: Address(0x1004), lane: None, .. }),
        "{fault}"
    );
    bench.set_address(2, bench.buffer.0);
    let fault = bench.run("s_atomic_add_x2 s[16:17], s[2:3], 0x4").unwrap_err();
    assert!(matches!(fault, FaultCause::Misaligned { alignment: 8, .. }), "{fault}");
}

#[test]
fn probes_and_discards_of_the_scalar_cache_change_nothing() {
    let mut bench = bench();
    bench.set_memory(0, &[1, 2, 3]);
    for text in [
        "s_atc_probe 7, s[2:3], 0x0",
        "s_dcache_discard s[2:3], 0x0",
        "s_dcache_discard_x2 s[2:3], 0x0",
        "s_dcache_wb",
    ] {
        bench.run(text).unwrap();
    }
    assert_eq!(bench.memory(0), [1, 2, 3]);
}

#[test]
fn scalar_results_to_null_are_discarded() {
    let mut bench = bench();
    bench.set_memory(0, &[9; 16]);
    let before = bench.wave.scalars;
    // s_load_dwordx8 null, s[2:3], 0x0
    let words = [0xc00e_1f41_u32, 0];
    let bytes = words.map(u32::to_le_bytes).concat();
    bench.run_bytes(&bytes).unwrap();
    // s_mov_b64 null, 1
    bench.run_bytes(&0xbefd_0181_u32.to_le_bytes()).unwrap();
    assert_eq!(bench.wave.scalars[..128], before[..128]);
    assert_eq!(bench.wave.exec(), LaneMask::EMPTY);
}
