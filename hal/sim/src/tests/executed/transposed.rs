//! Transposing loads, checked against the operand layout of WMMA.

use crate::tests::bench::Bench;

/// Returns the elements that each lane of a 32-lane wave receives when it loads from byte
/// `at(lane)`. Elements have `bits` bits and are numbered in memory order.
fn loaded(text: &str, bits: u32, at: impl Fn(u32) -> u32) -> Vec<Vec<u32>> {
    let mut bench = Bench::with_lanes("gfx1201", 32);
    let each = 32 / bits;
    let words: Vec<u32> = (0..256 / each)
        .map(|word| (0..each).fold(0, |all, part| all | (word * each + part) << (part * bits)))
        .collect();
    bench.set_memory(0, &words);
    bench.set_address(2, bench.buffer.0);
    bench.set_lanes(1, at);
    bench.run(text).expect("executed");
    let element = |lane: usize, number: u32| {
        let word = bench.lanes(4 + (number / each) as u16)[lane];
        word >> (number % each * bits) & ((1 << bits) - 1)
    };
    (0..32).map(|lane| (0..8).map(|number| element(lane, number)).collect()).collect()
}

/// Eight lanes each load a row of eight half words and receive a column.
#[test]
fn half_words_are_transposed_among_eight_lanes() {
    let found = loaded("global_load_tr_b128 v[4:7], v1, s[2:3]", 16, |lane| 16 * lane);
    assert_eq!(found[0], [0, 8, 16, 24, 32, 40, 48, 56]);
    assert_eq!(found[8], [64, 72, 80, 88, 96, 104, 112, 120]);
    for (lane, found) in (0..32).zip(&found) {
        let expected: Vec<u32> = (0..8).map(|row| (lane / 8 * 8 + row) * 8 + lane % 8).collect();
        assert_eq!(*found, expected, "lane {lane}");
    }
}

/// Lanes load halves of 16 rows of 16 bytes. Lane l receives rows l / 16 * 8 to l / 16 * 8 + 7 of
/// column l % 16, the layout of factor B in WMMA.
#[test]
fn transposed_bytes_have_the_wmma_layout() {
    let row = |lane: u32| lane / 8 * 4 + lane % 4;
    let half = |lane: u32| lane / 4 % 2;
    let at = |lane: u32| row(lane) * 16 + half(lane) * 8;
    let found = loaded("global_load_tr_b64 v[4:5], v1, s[2:3]", 8, at);
    for (lane, found) in (0..32).zip(&found) {
        let expected: Vec<u32> = (0..8).map(|row| (lane / 16 * 8 + row) * 16 + lane % 16).collect();
        assert_eq!(*found, expected, "lane {lane}");
    }
}

/// Each lane loads from its own address.
#[test]
fn transposed_rows_can_be_at_any_address() {
    let found = loaded("global_load_tr_b128 v[4:7], v1, s[2:3]", 16, |lane| 2 * (63 - lane));
    for (lane, found) in (0..32).zip(&found) {
        let expected: Vec<u32> = (0..8).map(|row| 63 - (lane / 8 * 8 + row) + lane % 8).collect();
        assert_eq!(*found, expected, "lane {lane}");
    }
}
