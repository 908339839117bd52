//! Buffer accesses: formats, channels, records, and range checks.

use crate::tests::bench::Bench;
use crate::tests::operations::Random;
use half::f16;

const DATA_FORMATS: [&str; 14] = [
    "8",
    "16",
    "8_8",
    "32",
    "16_16",
    "10_11_11",
    "11_11_10",
    "10_10_10_2",
    "2_10_10_10",
    "8_8_8_8",
    "32_32",
    "16_16_16_16",
    "32_32_32",
    "32_32_32_32",
];
const NUMBER_FORMATS: [&str; 7] = ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT"];

/// Component widths of a data format, lowest bits first. The format name lists the highest
/// component first.
fn widths(data: &str) -> Vec<u32> {
    data.split('_').rev().map(|width| width.parse().unwrap()).collect()
}

fn has_meaning(data: &str, number: &str) -> bool {
    number != "FLOAT"
        || widths(data).iter().all(|width| {
            [10, 11, 16, 32].contains(width) && data != "2_10_10_10" && data != "10_10_10_2"
        })
}

/// Converts a component to a number bit by bit. Integers stay as they are.
fn number(bits: u64, width: u32, number: &str) -> f64 {
    let sign = bits >> (width - 1) & 1 != 0;
    let signed = bits as f64 - if sign { 2f64.powi(width as i32) } else { 0.0 };
    match number {
        "UNORM" => bits as f64 / (2f64.powi(width as i32) - 1.0),
        "SNORM" => (signed / (2f64.powi(width as i32 - 1) - 1.0)).max(-1.0),
        "USCALED" | "UINT" => bits as f64,
        "SSCALED" | "SINT" => signed,
        _ if width == 32 => f32::from_bits(bits as u32).into(),
        _ => {
            let (mantissa_bits, has_sign) = match width {
                16 => (10, true),
                other => (other as i32 - 5, false),
            };
            let mantissa = (bits & ((1 << mantissa_bits) - 1)) as f64 / 2f64.powi(mantissa_bits);
            let exponent = (bits >> mantissa_bits & 31) as i32;
            let magnitude = match exponent {
                0 => mantissa * 2f64.powi(-14),
                31 if mantissa == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + mantissa) * 2f64.powi(exponent - 15),
            };
            if has_sign && sign { -magnitude } else { magnitude }
        }
    }
}

/// Converts the components of an element to 32-bit registers.
fn reference(element: &[u8], widths: &[u32], kind: &str) -> Vec<u32> {
    let bit = |at: u32| u64::from(element[at as usize / 8] >> (at % 8) & 1);
    let mut low = 0;
    widths
        .iter()
        .map(|width| {
            let bits = (0..*width).fold(0, |bits, at| bits | bit(low + at) << at);
            low += width;
            match number(bits, *width, kind) {
                value if kind == "UINT" => value as u32,
                value if kind == "SINT" => value as i32 as u32,
                value => (value as f32).to_bits(),
            }
        })
        .collect()
}

fn same(found: u32, wanted: u32, kind: &str) -> bool {
    let (a, b) = (f32::from_bits(found), f32::from_bits(wanted));
    found == wanted || kind == "FLOAT" && a.is_nan() && b.is_nan()
}

/// Returns a bench with random bytes in the buffer, `s[4:7]` describing records of `stride` bytes,
/// and the lane number in v2.
fn bench(seed: u64, stride: u32, flags: u32) -> (Bench, Vec<u8>) {
    let mut random = Random(seed);
    let mut bench = Bench::new();
    let words: Vec<u32> = (0..2048).map(|_| random.next() as u32).collect();
    bench.set_memory(0, &words);
    let base = bench.buffer.0;
    bench.set_scalars(4, &[base as u32, (base >> 32) as u32 | stride << 16, 64, flags]);
    bench.set_lanes(2, |lane| lane);
    (bench, words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// Counts the components over all formats for which a typed load differs from the reference.
fn differences(widths: fn(&str) -> Vec<u32>) -> usize {
    let mut different = 0;
    for data in DATA_FORMATS {
        for number in NUMBER_FORMATS {
            let widths = widths(data);
            let bytes = widths.iter().sum::<u32>() / 8;
            let (mut bench, memory) = bench(bytes.into(), bytes, 0);
            let format = format!("format:[BUF_DATA_FORMAT_{data},BUF_NUM_FORMAT_{number}]");
            bench
                .run(&format!("tbuffer_load_format_xyzw v[8:11], v2, s[4:7], 0 {format} idxen"))
                .unwrap();
            for lane in 0..64 {
                let element = &memory[lane * bytes as usize..][..bytes as usize];
                let mut wanted = vec![0; 4];
                if has_meaning(data, number) {
                    for (slot, word) in wanted.iter_mut().zip(reference(element, &widths, number)) {
                        *slot = word;
                    }
                }
                for (component, wanted) in wanted.into_iter().enumerate() {
                    let found = bench.lanes(8 + component as u16)[lane];
                    different += usize::from(!same(found, wanted, number));
                }
            }
        }
    }
    different
}

#[test]
fn typed_loads_convert_every_format() {
    assert_eq!(differences(widths), 0);
}

/// Negative control: components in reverse order.
#[test]
fn comparison_detects_wrong_component_order() {
    let forwards = |data: &str| data.split('_').map(|width| width.parse().unwrap()).collect();
    assert!(differences(forwards) > 1000);
}

/// A typed store of a loaded element restores its bytes.
#[test]
fn typed_stores_invert_typed_loads() {
    for data in DATA_FORMATS {
        for kind in NUMBER_FORMATS.into_iter().filter(|kind| has_meaning(data, kind)) {
            let widths = widths(data);
            if widths[0] == 32 && !["UINT", "SINT", "FLOAT"].contains(&kind) {
                // A register has too few bits for this format.
                continue;
            }
            let bytes = widths.iter().sum::<u32>() / 8;
            let (mut bench, memory) = bench(77, bytes, 0);
            let format = format!("format:[BUF_DATA_FORMAT_{data},BUF_NUM_FORMAT_{kind}]");
            let target = 0x4000;
            bench.set_scalars(12, &[target]);
            bench
                .run(&format!("tbuffer_load_format_xyzw v[8:11], v2, s[4:7], 0 {format} idxen"))
                .unwrap();
            bench
                .run(&format!("tbuffer_store_format_xyzw v[8:11], v2, s[4:7], s12 {format} idxen"))
                .unwrap();
            let mut stored = vec![0; 64 * bytes as usize];
            let at = flipwave_device::Address(bench.buffer.0 + u64::from(target));
            bench.space.read(at, &mut stored).unwrap();
            for lane in 0..64 {
                let range = lane * bytes as usize..(lane + 1) * bytes as usize;
                let [old, new] = [&memory[range.clone()], &stored[range]]
                    .map(|element| reference(element, &widths, kind));
                // The lowest signed fraction reads as -1, like its successor; NaNs become quiet.
                let equal = old.iter().zip(&new).all(|(old, new)| same(*new, *old, kind));
                assert!(equal, "{data} {kind} lane {lane}: {old:x?} {new:x?}");
            }
        }
    }
}

#[test]
fn stores_round_to_the_nearest_and_clamp() {
    let (mut bench, _) = bench(1, 4, 0);
    let store = |bench: &mut Bench, value: u32, kind: &str| {
        bench.set_lanes(8, |_| value);
        bench
            .run(&format!(
                "tbuffer_store_format_x v8, v2, s[4:7], 0 format:[BUF_DATA_FORMAT_8,BUF_NUM_FORMAT_{kind}] idxen"
            ))
            .unwrap();
        bench.memory::<1>(0)[0] as u8
    };
    for (value, kind, wanted) in [
        (0.5, "UNORM", 128),
        (0.4979, "UNORM", 127),
        (2.0, "UNORM", 255),
        (-1.0, "UNORM", 0),
        (f32::NAN, "UNORM", 0),
        (-1.0, "SNORM", 0x81),
        (-7.0, "SNORM", 0x81),
        (0.5, "SNORM", 64),
        (254.9, "USCALED", 254),
        (300.0, "USCALED", 255),
        (-3.9, "SSCALED", 0xfd),
        (-300.0, "SSCALED", 0x80),
    ] {
        assert_eq!(store(&mut bench, value.to_bits(), kind), wanted, "{value} {kind}");
    }
    assert_eq!(store(&mut bench, 0x1234, "UINT"), 0x34);
    assert_eq!(store(&mut bench, u32::MAX, "SINT"), 0xff);
}

#[test]
fn the_resource_selects_channels_of_formatted_loads() {
    // 8_8_8_8 UNORM; channels W, one, zero, Y.
    let flags = 7 | 1 << 3 | 5 << 9 | 10 << 15;
    let (mut bench, memory) = bench(5, 4, flags);
    bench.run("buffer_load_format_xyzw v[8:11], v2, s[4:7], 0 idxen").unwrap();
    for lane in 0..64 {
        let unorm = |byte: usize| (f64::from(memory[lane * 4 + byte]) / 255.0) as f32;
        let wanted = [unorm(3), 1.0, 0.0, unorm(1)].map(f32::to_bits);
        assert_eq!([8, 9, 10, 11].map(|row| bench.lanes(row)[lane]), wanted, "lane {lane}");
    }
    // In integer formats one is the integer 1, even out of range.
    bench.set_scalars(6, &[32]);
    bench.set_scalars(7, &[flags | 4 << 12]);
    bench.run("buffer_load_format_xy v[8:9], v2, s[4:7], 0 idxen").unwrap();
    assert_eq!((bench.lanes(8)[31], bench.lanes(9)[31]), (memory[31 * 4 + 3].into(), 1));
    assert_eq!((bench.lanes(8)[32], bench.lanes(9)[32]), (0, 1));
}

#[test]
fn half_precision_components_are_packed_in_pairs() {
    // 16_16_16_16 SNORM, channels in order.
    let flags = 4 | 5 << 3 | 6 << 6 | 7 << 9 | 1 << 12 | 12 << 15;
    let (mut bench, memory) = bench(6, 8, flags);
    let half = |lane: usize, component: usize| {
        let at = lane * 8 + component * 2;
        let bits = i16::from_le_bytes([memory[at], memory[at + 1]]);
        u32::from(f16::from_f64((f64::from(bits) / 32767.0).max(-1.0)).to_bits())
    };
    let old = 0xaaaa_bbbb;
    for row in 8..12 {
        bench.set_lanes(row, |_| old);
    }
    bench.run("buffer_load_format_d16_xyz v[8:9], v2, s[4:7], 0 idxen").unwrap();
    bench.run("buffer_load_format_d16_hi_x v10, v2, s[4:7], 0 idxen").unwrap();
    bench.run("buffer_load_format_d16_x v11, v2, s[4:7], 0 idxen").unwrap();
    for lane in 0..64 {
        // This processor clears the other half of the register.
        let wanted = [
            half(lane, 0) | half(lane, 1) << 16,
            half(lane, 2),
            half(lane, 0) << 16,
            half(lane, 0),
        ];
        assert_eq!([8, 9, 10, 11].map(|row| bench.lanes(row)[lane]), wanted, "lane {lane}");
    }
    // Stores only the high half; the other components are zero.
    bench.set_lanes(12, |_| 0x3c00_0000);
    bench.run("buffer_store_format_d16_hi_x v12, v2, s[4:7], 0 idxen").unwrap();
    assert_eq!(bench.memory(8), [0x7fff, 0]);
}

#[test]
fn plain_accesses_are_checked_per_dword_and_formatted_as_a_whole() {
    let (mut bench, memory) = bench(8, 0, 4 | 5 << 3 | 6 << 6 | 7 << 9 | 4 << 12 | 14 << 15);
    let word = |at: usize| u32::from_le_bytes(memory[at..at + 4].try_into().unwrap());
    // A buffer of 64 bytes; the lane offset is 16 times the lane number.
    bench.set_lanes(3, |lane| lane * 16 + 8);
    bench.run("buffer_load_dwordx4 v[8:11], v3, s[4:7], 0 offen").unwrap();
    assert_eq!([8, 9, 10, 11].map(|row| bench.lanes(row)[3]), [word(56), word(60), 0, 0]);
    assert_eq!([8, 9, 10, 11].map(|row| bench.lanes(row)[4]), [0; 4]);
    bench.run("buffer_load_format_xyzw v[8:11], v3, s[4:7], 0 offen").unwrap();
    assert_eq!([8, 9, 10, 11].map(|row| bench.lanes(row)[2]), [40, 44, 48, 52].map(word));
    assert_eq!([8, 9, 10, 11].map(|row| bench.lanes(row)[3]), [0; 4]);
    // Out-of-range stores and atomics have no effect; atomics return zero.
    bench.set_lanes(8, |_| 1);
    bench.set_lanes(4, |lane| 60 + 4 * lane);
    bench.run("buffer_store_dword v8, v4, s[4:7], 0 offen").unwrap();
    assert_eq!(bench.memory(60), [1, word(64), word(68)]);
    bench.run("buffer_atomic_add v8, v4, s[4:7], 0 offen glc").unwrap();
    assert_eq!(bench.memory(60), [2, word(64)]);
    assert_eq!(bench.lanes(8)[..2], [1, 0]);
    // The scalar offset takes part in the range check.
    bench.set_scalars(12, &[32]);
    bench.set_lanes(4, |lane| 4 * lane);
    bench.run("buffer_load_dword v8, v4, s[4:7], s12 offen").unwrap();
    assert_eq!((bench.lanes(8)[6], bench.lanes(8)[8]), (word(56), 0));
}

#[test]
fn records_are_counted_only_with_an_index() {
    // 64 records of 8 bytes, or 64 bytes.
    let (mut bench, memory) = bench(9, 8, 0);
    let word = |at: usize| u32::from_le_bytes(memory[at..at + 4].try_into().unwrap());
    bench.run("buffer_load_dword v8, v2, s[4:7], 0 idxen offset:4").unwrap();
    assert_eq!(bench.lanes(8), std::array::from_fn(|lane| word(lane * 8 + 4)));
    bench.set_lanes(3, |lane| lane * 4);
    bench.run("buffer_load_dword v8, v3, s[4:7], 0 offen").unwrap();
    let wanted = |lane: usize| if lane < 16 { word(lane * 4) } else { 0 };
    assert_eq!(bench.lanes(8), std::array::from_fn(wanted));
    // The swizzle bit has an effect only with ADD_TID_ENABLE.
    bench.set_scalars(5, &[(bench.buffer.0 >> 32) as u32 | 8 << 16 | 1 << 31]);
    bench.set_lanes(4, |lane| lane);
    bench.set_lanes(5, |lane| 4 * (lane % 3));
    bench.run("buffer_load_dword v8, v[4:5], s[4:7], 0 idxen offen").unwrap();
    assert_eq!(bench.lanes(8), std::array::from_fn(|lane| word(lane * 8 + lane % 3 * 4)));
}

/// Libraries disable lanes without an element with an offset of -1.
#[test]
fn accesses_at_negative_offsets_are_out_of_range() {
    for records in [64, 0x8000_0000, 0xffff_f000] {
        let (mut bench, memory) = bench(10, 0, 0);
        bench.set_scalars(6, &[records]);
        let word = |at: usize| u32::from_le_bytes(memory[at..at + 4].try_into().unwrap());
        bench.set_lanes(3, |lane| if lane == 0 { 32 } else { -(lane.min(20) as i32) as u32 });
        for (width, registers) in
            [("", "v8"), ("x2", "v[8:9]"), ("x3", "v[8:10]"), ("x4", "v[8:11]")]
        {
            let words = width.strip_prefix('x').map_or(1, |digits| digits.parse().unwrap());
            for row in 8..12 {
                bench.set_lanes(row, |_| 0x0dd_ba11);
            }
            bench
                .run(&format!("buffer_load_dword{width} {registers}, v3, s[4:7], 0 offen"))
                .unwrap();
            for row in 0..words {
                let lanes = bench.lanes(8 + row as u16);
                assert_eq!(lanes[0], word(32 + row * 4), "{width} {records:#x}");
                assert_eq!(lanes[1..], [0; 63], "{width} {records:#x}");
            }
            for row in 8..12 {
                bench.set_lanes(row, |_| 0x0dd_ba11);
            }
            bench
                .run(&format!("buffer_store_dword{width} {registers}, v3, s[4:7], 0 offen"))
                .unwrap();
            let kept: Vec<u32> = bench.memory::<8>(0).into();
            assert_eq!(
                kept,
                (0..8).map(|index| word(index * 4)).collect::<Vec<u32>>(),
                "{width} {records:#x}"
            );
            let restored: Vec<u32> = (0..64).map(|index| word(index * 4)).collect();
            bench.set_memory(0, &restored);
        }
    }
}
