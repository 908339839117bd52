use super::rules::{RangeRule, SwizzleUse};
use super::*;
use crate::tests::operations::Random;

const GENERATIONS: [Generation; 6] = [
    Generation::Gfx9,
    Generation::Gfx940,
    Generation::Gfx10,
    Generation::Gfx11,
    Generation::Gfx12,
    Generation::Gfx125,
];

/// One lane's access.
#[derive(Clone, Copy, Debug)]
struct Access {
    generation: Generation,
    words: [u32; 4],
    usage: Use,
    lane: u8,
    index: u32,
    register: u32,
    immediate: u32,
    bytes: u32,
}

impl Access {
    fn random(random: &mut Random, generation: Generation) -> Access {
        let stride = random.choose(&[0, 4, 8, 12, 16, 64, 100, 0x3fff]) as u32;
        let records = random.choose(&[0, 1, 4, 16, 100, 4096, 1 << 20, 0xffff_ffff]) as u32;
        let any = random.next() as u32;
        let adds_lane = any >> 3 & 1 << 23;
        let words = match generation {
            Generation::Gfx125 => {
                let records = u64::from(records) << if any & 7 == 0 { 9 } else { 0 };
                [
                    random.next() as u32,
                    random.next() as u32 & 0xffff | (records as u32) << 25,
                    (records >> 7) as u32,
                    (records >> 39) as u32 & 0x3f | stride << 12 | any << 26 & 0x3c00_0000,
                ]
            }
            _ => [
                random.next() as u32,
                random.next() as u32 & 0xffff | stride << 16 | any & 0xc000_0000,
                records,
                any & 0x3060_0000 | adds_lane | (any & 1) << 15,
            ],
        };
        Access {
            generation,
            words,
            usage: Use {
                indexed: any & 2 != 0,
                formatted: any & 4 != 0,
                scalar_offset: random.choose(&[0, 0, 4, 20, 5000, 0xffff_fff0]) as u32,
            },
            lane: random.next() as u8 & 31,
            index: match any & 2 {
                0 => 0,
                _ => random.choose(&[0, 0, 1, 5, 15, 16, 99, 1000, 0xffff_ffff]) as u32,
            },
            register: random.choose(&[0, 1, 3, 4, 60, 92, 4092, 0xffff_fff0, 0xffff_ffff]) as u32,
            immediate: random.choose(&[0, 0, 4, 7, 8, 16, 4095]) as u32,
            bytes: random.choose(&[1, 2, 4, 8, 16]) as u32,
        }
    }

    /// Address according to `rules`, if the access is in range.
    fn found(self, rules: &Rules) -> Option<u128> {
        let buffer =
            Buffer::by_rules(&Resource::new(self.words, self.generation), self.usage, rules);
        let (lane, offset) = (Lane(self.lane), buffer.offset(self.immediate, self.register));
        let is_in = buffer.contains(lane, self.index, offset, self.bytes);
        is_in.then(|| buffer.address(lane, self.index, offset).into())
    }

    fn facts(self) -> Facts {
        let resource = Resource::new(self.words, self.generation);
        let is_on =
            Rules::of(self.generation).swizzle.is_on(resource.adds_lane, self.usage.indexed);
        Facts {
            mode: resource.mode,
            adds_lane: resource.adds_lane,
            indexed: self.usage.indexed,
            has_stride: resource.stride != 0,
            is_swizzled: is_on && resource.element.is_some(),
        }
    }

    /// Expected address, written as the sources define it, field by field.
    fn wanted(self) -> Option<u128> {
        let bits = |from: u32, count: u32| -> u128 {
            let all =
                self.words.iter().rev().fold(0u128, |all, word| all << 32 | u128::from(*word));
            all >> from & ((1 << count) - 1)
        };
        let Use { indexed, formatted, scalar_offset } = self.usage;
        let scalar_offset = u128::from(scalar_offset);
        let (index, lane, bytes) =
            (u128::from(self.index), u128::from(self.lane), u128::from(self.bytes));
        let sum = u128::from(self.register) + u128::from(self.immediate);
        let swizzled = |index: u128, offset: u128, stride: u128, element: u128, beside: u128| {
            (index / beside * stride + offset / element * element) * beside
                + index % beside * element
                + offset % element
        };
        let address = match self.generation {
            Generation::Gfx9 | Generation::Gfx940 => {
                let offset = sum % (1 << 32);
                let (stride, records) = (bits(48, 14), bits(64, 32));
                let (swizzles, adds_lane) = (bits(63, 1) == 1, bits(119, 1) == 1);
                let fits = if adds_lane && !indexed {
                    true
                } else if indexed && stride != 0 {
                    index < records
                } else {
                    scalar_offset + offset + bytes <= records
                };
                let (index, stride) = if !(adds_lane && (swizzles || !indexed)) {
                    (index, stride)
                } else if formatted {
                    ((index + lane) % (1 << 32), stride)
                } else {
                    ((index + lane) % (1 << 32), stride + bits(111, 4) * 16384)
                };
                let beside = [8, 16, 32, 64][bits(117, 2) as usize];
                let within = if swizzles && adds_lane {
                    swizzled(index, offset, stride, 4, beside)
                } else {
                    index * stride + offset
                };
                fits.then_some(bits(0, 48) + scalar_offset + within)
            }
            Generation::Gfx125 => {
                let stride = bits(108, 14) * [1, 4, 8, 32][bits(122, 2) as usize];
                let records = bits(57, 45);
                if bits(124, 1) == 1 {
                    let within = swizzled(index, sum + scalar_offset, stride, 16, 32);
                    Some(bits(0, 57) + within)
                } else {
                    let in_record = scalar_offset + sum + bytes <= stride;
                    let fits = scalar_offset + index * stride + sum + bytes <= records
                        && (bits(125, 1) == 0 || in_record);
                    fits.then_some(bits(0, 57) + scalar_offset + index * stride + sum)
                }
            }
            _ => {
                let offset = sum % (1 << 32);
                let (stride, records) = (bits(48, 14), bits(64, 32));
                let is_newer = self.generation != Generation::Gfx10;
                let swizzle = if is_newer { bits(62, 2) } else { bits(63, 1) };
                let adds_lane = bits(119, 1) == 1;
                let index = if indexed { index } else { u128::from(adds_lane) * lane };
                let is_swizzled = swizzle != 0 && (indexed || adds_lane);
                let in_record = index < records && offset + bytes <= stride;
                let fits = match bits(124, 2) {
                    0 => in_record,
                    1 => index < records,
                    2 => records != 0,
                    _ if is_swizzled && stride != 0 => in_record,
                    _ => scalar_offset + offset + bytes <= records,
                };
                let element = if swizzle == 3 { 16 } else { 4 };
                let beside = [8, 16, 32, 64][bits(117, 2) as usize];
                let within = if is_swizzled {
                    swizzled(index, offset, stride, element, beside)
                } else {
                    index * stride + offset
                };
                fits.then_some(bits(0, 48) + scalar_offset + within)
            }
        };
        address.map(|address| address % (1 << 64))
    }
}

/// Number of random accesses for which `rules` and the sources disagree.
fn differences(generation: Generation, rules: &Rules, count: usize) -> usize {
    let mut random = Random(7);
    let mut access = || Access::random(&mut random, generation);
    (0..count)
        .filter(|_| {
            let access = access();
            access.found(rules) != access.wanted()
        })
        .count()
}

#[test]
fn addresses_and_ranges_follow_the_sources() {
    for generation in GENERATIONS {
        let mut random = Random(7);
        for _ in 0..50_000 {
            let access = Access::random(&mut random, generation);
            assert_eq!(access.found(Rules::of(generation)), access.wanted(), "{access:x?}");
        }
    }
}

#[test]
fn every_range_rule_decides_accesses() {
    for generation in GENERATIONS {
        let rules = Rules::of(generation);
        let mut counts = vec![[0; 2]; rules.range.len()];
        let mut random = Random(9);
        for _ in 0..50_000 {
            let access = Access::random(&mut random, generation);
            let rule = rules.range.iter().position(|rule| rule.when.holds(access.facts()));
            let rule = rule.expect("a rule for every access");
            counts[rule][usize::from(access.found(rules).is_some())] += 1;
        }
        for (rule, [outside, inside]) in rules.range.iter().zip(counts) {
            assert!(inside > 100, "{generation:?}, {rule:?}: {inside} in range");
            let is_checked = rule.check != Check::Nothing;
            assert_eq!(outside > 100, is_checked, "{generation:?}, {rule:?}: {outside} outside");
        }
    }
}

/// Copies of the rules with one mistake each.
fn mistakes(rules: &Rules) -> Vec<Rules> {
    let mut all = Vec::new();
    for lane_index in [LaneIndex::UnlessLinearIndexed, LaneIndex::UnlessIndexed, LaneIndex::Never] {
        all.push(Rules { lane_index, ..*rules });
    }
    for swizzle in [SwizzleUse::WithLane, SwizzleUse::WithIndexOrLane, SwizzleUse::Always] {
        all.push(Rules { swizzle, ..*rules });
    }
    for scalar_offset in [ScalarOffset::Outside, ScalarOffset::InElement] {
        all.push(Rules { scalar_offset, ..*rules });
    }
    all.push(Rules { sum_is_wide: !rules.sum_is_wide, ..*rules });
    let checks = [
        Check::Nothing,
        Check::AnyRecords,
        Check::Index,
        Check::IndexAndRecord,
        Check::Bytes,
        Check::Address,
        Check::AddressAndRecord,
    ];
    for at in 0..rules.range.len() {
        for check in checks {
            let mut range: Vec<RangeRule> = rules.range.to_vec();
            range[at].check = check;
            all.push(Rules { range: range.leak(), ..*rules });
        }
        // One range rule is missing.
        let mut range: Vec<RangeRule> = rules.range.to_vec();
        range.remove(at);
        all.push(Rules { range: range.leak(), ..*rules });
    }
    all.retain(|changed| changed != rules);
    all
}

/// Returns `true` if a mistake changes no access: on gfx9 nothing swizzled is linear and indexed,
/// and no resource of gfx1250 adds the lane number.
fn changes_nothing(rules: &Rules, mistake: &Rules) -> bool {
    let has_no_lane = rules.lane_index == LaneIndex::Never;
    has_no_lane && mistake.lane_index != rules.lane_index
}

#[test]
fn comparison_detects_every_wrong_rule() {
    let mut noticed = 0;
    for generation in GENERATIONS {
        let rules = Rules::of(generation);
        for mistake in mistakes(rules) {
            let count = differences(generation, &mistake, 20_000);
            let should_differ = !changes_nothing(rules, &mistake);
            assert_eq!(count > 0, should_differ, "{generation:?}: {mistake:?}");
            noticed += usize::from(should_differ);
        }
    }
    assert!(noticed > 100, "{noticed} mistakes");
}

/// Number of the first lanes that are in range when each lane's offset is four times its number.
fn lanes_in_range(generation: Generation, words: [u32; 4], usage: Use, lanes: u8) -> usize {
    let buffer = Buffer::new(words, usage, generation);
    let is_in = |lane: &u8| buffer.contains(Lane(*lane), 0, 4 * u64::from(*lane), 4);
    (0..lanes).filter(is_in).count()
}

#[test]
fn scalar_offset_counts_against_the_size_in_bytes() {
    let usage = Use { scalar_offset: 16, ..Use::default() };
    for (generation, flags) in [
        (Generation::Gfx9, 0),
        (Generation::Gfx10, 3 << 28),
        (Generation::Gfx11, 3 << 28),
        (Generation::Gfx12, 3 << 28),
    ] {
        let words = [0x1000, 0, 40, flags];
        assert_eq!(lanes_in_range(generation, words, usage, 32), 6, "{generation:?}");
        assert_eq!(lanes_in_range(generation, words, Use::default(), 32), 10, "{generation:?}");
    }
}

#[test]
fn gfx1250_resources_without_flags_count_bytes() {
    let words = [0x1000, 40 << 25, 0, 0];
    assert_eq!(lanes_in_range(Generation::Gfx125, words, Use::default(), 32), 10);
    // The record of 40 bytes is also checked.
    let words = [0x1000, 80 << 25, 0, 1 << 29 | 40 << 12];
    assert_eq!(lanes_in_range(Generation::Gfx125, words, Use::default(), 32), 10);
    // Images are not buffers.
    let words = [0x1000, 40 << 25, 0, 1 << 30];
    assert_eq!(lanes_in_range(Generation::Gfx125, words, Use::default(), 32), 0);
}

#[test]
fn gfx9_adds_the_lane_to_unindexed_buffers_without_a_check() {
    let words = [0x1000, 8 << 16, 0, 1 << 23];
    let address = |indexed| {
        let buffer = Buffer::new(words, Use { indexed, ..Use::default() }, Generation::Gfx940);
        buffer.contains(Lane(5), 2, 4, 4).then(|| buffer.address(Lane(5), 2, 4))
    };
    assert_eq!(address(false), Some(0x1000 + 7 * 8 + 4));
    assert_eq!(address(true), None);
}

#[test]
fn buffer_format_comes_from_the_fourth_word() {
    let words = [0, 0, 0, 4 | 5 << 3 | 6 << 6 | 7 << 9 | 7 << 12 | 14 << 15];
    let buffer = Buffer::new(words, Use::default(), Generation::Gfx9);
    assert_eq!(buffer.format, BufferFormat { data: 14, number: 7 });
    assert_eq!(buffer.channels, [4, 5, 6, 7]);
}
