//! LDS addressing by thread number, exchanges, and transfers between LDS and memory.

use crate::tests::bench::{Bench, LDS_BYTES};
use crate::tests::operations::Random;
use crate::wave::ScalarIndex;
use flipwave_isa::LaneMask;

/// Returns a bench with random words in LDS and half of the lanes active, and the words.
fn bench(seed: u64) -> (Bench, Vec<u32>) {
    let mut random = Random(seed);
    let mut bench = Bench::new();
    let words: Vec<u32> = (0..LDS_BYTES / 4).map(|_| random.next() as u32).collect();
    bench.lds = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bench.wave.set_exec(LaneMask(random.next()));
    (bench, words)
}

fn words(bench: &Bench) -> Vec<u32> {
    bench.lds.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn is_active(bench: &Bench, lane: usize) -> bool {
    bench.wave.exec().0 >> lane & 1 != 0
}

#[test]
fn addresses_by_thread_lie_after_m0_and_the_offset() {
    let (mut bench, before) = bench(1);
    // The upper half of M0 is ignored.
    bench.wave.write_scalar(ScalarIndex::M0, 0xffff_0040);
    bench.run("ds_read_addtid_b32 v5 offset:8").unwrap();
    let wanted = |lane| if is_active(&bench, lane) { before[0x12 + lane] } else { 0 };
    assert_eq!(bench.lanes(5), std::array::from_fn(wanted));
    bench.set_lanes(6, |lane| 1000 + lane);
    bench.run("ds_write_addtid_b32 v6 offset:0x100").unwrap();
    let mut wanted = before;
    for lane in (0..64).filter(|lane| is_active(&bench, *lane)) {
        wanted[0x140 / 4 + lane] = 1000 + lane as u32;
    }
    assert_eq!(words(&bench), wanted);
}

#[test]
fn two_exchanges_give_both_old_values() {
    for (name, scale) in [("wrxchg2_rtn_b32", 1), ("wrxchg2st64_rtn_b32", 64)] {
        let (mut bench, before) = bench(2);
        bench.set_lanes(2, |lane| lane * 8);
        bench.set_lanes(3, |lane| 100 + lane);
        bench.set_lanes(4, |lane| 200 + lane);
        bench.run(&format!("ds_{name} v[8:9], v2, v3, v4 offset0:1 offset1:4")).unwrap();
        let mut wanted = before.clone();
        let (first, second) = (bench.lanes(8), bench.lanes(9));
        for lane in 0..64 {
            let places = [1, 4].map(|offset| lane * 2 + offset * scale);
            if is_active(&bench, lane) {
                assert_eq!(
                    [first[lane], second[lane]],
                    places.map(|place| wanted[place]),
                    "{name}"
                );
                wanted[places[0]] = 100 + lane as u32;
                wanted[places[1]] = 200 + lane as u32;
            }
        }
        assert_eq!(words(&bench), wanted, "{name}");
    }
    let (mut bench, before) = bench(3);
    bench.set_lanes(2, |_| 0);
    bench.wave.set_exec(LaneMask(1));
    for (register, word) in [(4, 1), (5, 2), (6, 3), (7, 4)] {
        bench.set_lanes(register, |_| word);
    }
    bench.run("ds_wrxchg2_rtn_b64 v[8:11], v2, v[4:5], v[6:7] offset0:2 offset1:5").unwrap();
    assert_eq!(
        [8, 9, 10, 11].map(|row| bench.lanes(row)[0]),
        [before[4], before[5], before[10], before[11]]
    );
    let after = words(&bench);
    assert_eq!([after[4], after[5], after[10], after[11]], [1, 2, 3, 4]);
}

/// Counts the lanes whose result differs from a rule for the exchanged words.
fn conditional_exchanges(replaces: fn(u32) -> bool) -> usize {
    let (mut bench, before) = bench(4);
    let mut random = Random(5);
    let data: Vec<[u32; 2]> =
        (0..64).map(|_| [random.next() as u32, random.next() as u32]).collect();
    bench.set_lanes(2, |lane| lane * 8 + 4);
    bench.set_lanes(4, |lane| data[lane as usize][0]);
    bench.set_lanes(5, |lane| data[lane as usize][1]);
    bench.run("ds_condxchg32_rtn_b64 v[8:9], v2, v[4:5] offset:16").unwrap();
    let after = words(&bench);
    (0..64)
        .filter(|lane| is_active(&bench, *lane))
        .filter(|lane| {
            (0..2).any(|half| {
                // The address is rounded down to a multiple of eight.
                let place = 4 + lane * 2 + half;
                let word = data[*lane][half];
                let wanted = if replaces(word) { word & 0x7fff_ffff } else { before[place] };
                let old = bench.lanes(8 + half as u16)[*lane];
                assert_eq!(old, before[place], "the old word, lane {lane}");
                after[place] != wanted
            })
        })
        .count()
}

#[test]
fn conditional_exchange_replaces_words_with_highest_bit_set() {
    assert_eq!(conditional_exchanges(|word| word >> 31 != 0), 0);
}

/// Negative control: the opposite condition.
#[test]
fn comparison_detects_wrong_exchange_condition() {
    assert!(conditional_exchanges(|word| word >> 31 == 0) > 20);
}

#[test]
fn loads_to_lds_write_adjacent_dwords() {
    let source: Vec<u32> = (0..4096).map(|word: u32| word.wrapping_mul(0x9e37_79b9)).collect();
    let byte = |at: usize| (source[at / 4] >> (8 * (at % 4))) as u8;
    // Address register v2, resource s[4:7], base s[8:9]; the instruction's offset applies to both
    // memory and LDS.
    type Word<'a> = &'a dyn Fn(usize) -> u32;
    let cases: [(&str, Word<'_>); 5] = [
        ("buffer_load_dword v2, s[4:7], 0 offen offset:8 lds", &|lane| source[2 + 3 * lane]),
        ("global_load_dword v2, s[8:9] offset:8 lds", &|lane| source[2 + 3 * lane]),
        ("buffer_load_sbyte v2, s[4:7], 0 offen offset:8 lds", &|lane| {
            byte(8 + 12 * lane) as i8 as u32
        }),
        ("global_load_ubyte v2, s[8:9] offset:8 lds", &|lane| byte(8 + 12 * lane).into()),
        ("buffer_load_ushort v2, s[4:7], 0 offen offset:8 lds", &|lane| {
            source[2 + 3 * lane] & 0xffff
        }),
    ];
    for (text, word) in cases {
        let (mut bench, before) = bench(6);
        let base = bench.buffer.0;
        bench.set_memory(0, &source);
        bench.set_scalars(4, &[base as u32, (base >> 32) as u32, 0x4000, 0]);
        bench.set_address(8, base);
        bench.set_lanes(2, |lane| lane * 12);
        bench.wave.write_scalar(ScalarIndex::M0, 0x5555_0100);
        bench.run(text).unwrap();
        let mut wanted = before;
        for lane in (0..64).filter(|lane| is_active(&bench, *lane)) {
            wanted[0x108 / 4 + lane] = word(lane);
        }
        assert_eq!(words(&bench), wanted, "{text}");
    }
}

#[test]
fn stores_from_lds_take_the_same_dwords() {
    let (mut bench, before) = bench(7);
    let base = bench.buffer.0;
    // Records of four bytes, indexed by the thread number.
    bench.set_scalars(4, &[base as u32, (base >> 32) as u32 | 4 << 16, 0x1000, 1 << 23]);
    bench.wave.write_scalar(ScalarIndex::M0, 0x40);
    bench.run("buffer_store_lds_dword s[4:7], 0 offset:8 lds").unwrap();
    let stored = bench.memory::<66>(0);
    for lane in 0..64 {
        let wanted = if is_active(&bench, lane) { before[0x48 / 4 + lane] } else { 0 };
        assert_eq!(stored[2 + lane], wanted, "lane {lane}");
    }
}
