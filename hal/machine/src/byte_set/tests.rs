use super::*;
use std::collections::BTreeSet;

/// A generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    /// Returns the next number.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

/// The set of the bytes from the first of each pair up to the second.
fn set(ranges: &[(u64, u64)]) -> ByteSet {
    ByteSet::of_runs(ranges.iter().map(|(start, end)| (Address(*start), end - start)))
}

/// A set does not depend on its construction: byte by byte, or by lines in any order, some
/// repeatedly.
#[test]
fn sets_do_not_depend_on_insertion_order() {
    let wanted = set(&[(0, 3), (60, 4000), (9000, 9001), (1 << 20, (1 << 20) + 65)]);
    let [mut bytes, mut lines, mut both] = std::array::from_fn(|_| ByteSetBuilder::default());
    for (start, count) in wanted.runs() {
        (0..count).for_each(|at| bytes.insert(Address(start.0 + at), 1));
        both.insert(start, count / 2);
    }
    for _ in 0..300 {
        let all: Vec<Line> = wanted.lines().collect();
        all.into_iter().rev().for_each(|line| lines.insert_line(line));
    }
    wanted.lines().for_each(|line| both.insert_line(line));
    for builder in [bytes, lines, both] {
        let has = |byte: u64| builder.mask(byte / LINE) >> (byte % LINE) & 1 != 0;
        assert!(has(2) && !has(3) && has(3999) && !has(4000) && has((1 << 20) + 64));
        assert_eq!(builder.build(), wanted);
    }
}

#[test]
fn set_contains_exactly_the_inserted_bytes() {
    let ranges = [(0, 1), (60, 70), (63, 64), (127, 129), (190, 330), (512, 576), (7, 7)];
    let wanted: BTreeSet<u64> = ranges.iter().flat_map(|(start, end)| *start..*end).collect();
    let set = set(&ranges);
    assert_eq!(set.len(), wanted.len() as u64);
    for byte in 0..700 {
        assert_eq!(set.contains(Address(byte)), wanted.contains(&byte), "{byte}");
    }
    let runs = set.runs();
    let expected = [(0, 1), (60, 10), (127, 2), (190, 140), (512, 64)];
    assert_eq!(runs, expected.map(|(start, bytes)| (Address(start), bytes)));
    assert_eq!(format!("{set:?}"), "{0..1, 60..70, 127..129, 190..330, 512..576}");
}

#[test]
fn sets_can_contain_the_ends_of_the_address_space() {
    let last = set(&[(u64::MAX - 64, u64::MAX)]);
    assert_eq!(last.len(), 64);
    assert!(last.contains(Address(u64::MAX - 1)) && !last.contains(Address(0)));
}

#[test]
fn neighbours_in_a_line_do_not_intersect() {
    let [even, odd] = [0, 1].map(|first| {
        let bytes: Vec<_> = (0..200).map(|n| (2 * n + first, 2 * n + first + 1)).collect();
        set(&bytes)
    });
    assert!(!even.intersects(&odd) && !odd.intersects(&even));
    assert!(even.intersects(&set(&[(101, 103)])));
    assert!(!even.intersects(&set(&[(101, 102)])));
    let both: ByteSet = [&even, &odd].into_iter().collect();
    assert_eq!(both, set(&[(0, 400)]));
    assert_eq!(both.runs(), [(Address(0), 400)]);
}

#[test]
fn empty_set_intersects_nothing() {
    let empty = set(&[(5, 5)]);
    assert!(empty.is_empty() && empty.runs().is_empty());
    assert!(!empty.intersects(&set(&[(0, 100)])));
}

#[test]
fn insert_without_skips_bytes_of_the_other_set() {
    let mut other = ByteSetBuilder::default();
    other.insert(Address(70), 10);
    let mut set = ByteSetBuilder::default();
    for (start, bytes) in [(60, 30), (72, 4)] {
        lines_of(start, bytes).for_each(|line| set.insert_without(line, &other));
    }
    let set = set.build();
    for byte in 50..100 {
        assert_eq!(
            set.contains(Address(byte)),
            (60..70).contains(&byte) || (80..90).contains(&byte)
        );
    }
}

/// Random lines in some pages, from a seed and a number of lines.
fn scattered(seed: u64, count: u64) -> BTreeSet<u64> {
    let mut random = Random(seed);
    (0..count).map(|_| random.next() % (5 * PAGE_LINES)).collect()
}

/// The split into parts, some short and some long, is not visible through the set's bytes.
#[test]
fn splitting_sets_into_parts_is_invisible() {
    let bytes = |lines: &BTreeSet<u64>| -> ByteSet {
        let all: Vec<(Address, u64)> = lines.iter().map(|n| (Address(n * LINE + 5), 50)).collect();
        ByteSet::of_runs(all.into_iter().rev())
    };
    for count in [1, 40, 500, 9000] {
        let [one, other] = [1, 2].map(|seed| scattered(seed * count, count));
        let [set, others] = [&one, &other].map(bytes);
        assert_eq!(set.len(), 50 * one.len() as u64);
        assert!(set.lines().map(|[line, _]| line).eq(one.iter().copied()));
        assert_eq!(set.intersects(&others), !one.is_disjoint(&other), "{count}");
        let mut masks = Masks::of(&others);
        for line in &one {
            assert_eq!(masks.get(*line) != 0, other.contains(line), "{line}");
            assert_eq!(others.contains(Address(line * LINE + 5)), other.contains(line));
        }
        let all: ByteSet = [&set, &others].into_iter().collect();
        assert_eq!(all, bytes(&one.union(&other).copied().collect()));
    }
}

/// Sets that differ in one part share the others.
#[test]
fn sets_share_equal_parts() {
    let run = |page: u64, lines: u64| (Address(page * PAGE_LINES * LINE), lines * LINE);
    let runs = [[run(0, 40), run(3, 900), run(4, 3)], [run(0, 41), run(3, 900), run(4, 3)]];
    let mut sets = runs.map(ByteSet::of_runs);
    let before = sets.clone();
    let mut shared = SharedParts::default();
    shared.share(&mut sets);
    assert_eq!(sets, before);
    let same = [0, 1, 2].map(|n| sets[0].parts[n].identity() == sets[1].parts[n].identity());
    assert_eq!(same, [false, true, true]);
    let bytes = shared.host_bytes();
    shared.share(&mut before.clone());
    assert_eq!(shared.host_bytes(), bytes);
    assert!((16 * 984..32 * 984).contains(&bytes), "{bytes}");
}
