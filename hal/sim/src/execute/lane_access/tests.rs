use super::*;
use crate::wave::blend;

/// Selects the `lanes` inside a range; keeps their rows in local variables.
macro_rules! placed {
    ($part:ty, $parts:expr, $bytes:expr, $offsets:expr, $lanes:expr, $places:expr) => {
        Placed::<_, $part, $parts>::new(
            $bytes,
            $offsets,
            (&Row::expand($lanes), $lanes),
            $places,
            &mut None,
        )
    };
}

/// Loads `lanes`, and returns the lanes that were in range.
fn load<P: Part, const PARTS: usize>(
    bytes: &[u8],
    offsets: &Row,
    lanes: LaneMask,
    rows: &mut [Row; PARTS],
    places: [u32; PARTS],
) -> LaneMask {
    let (active, mut row) = (Row::expand(lanes), None);
    let placed = Placed::<_, P, PARTS>::new(bytes, offsets, (&active, lanes), places, &mut row);
    placed.load(rows);
    placed.lanes()
}

#[test]
fn lanes_load_their_own_words_and_inactive_lanes_keep_theirs() {
    let bytes: Vec<u8> = (0..=255).collect();
    let offsets = Row(std::array::from_fn(|lane| 3 * lane as u32));
    let mut rows = [Row::splat(7), Row::splat(7)];
    let lanes = LaneMask(0xf0);
    assert_eq!(load::<u32, 2>(&bytes, &offsets, lanes, &mut rows, [0, 4]), lanes);
    assert_eq!(rows[0].0[4], u32::from_le_bytes([12, 13, 14, 15]));
    assert_eq!(rows[1].0[7], u32::from_le_bytes([25, 26, 27, 28]));
    assert_eq!(rows[0].0[3], 7);
}

/// Offsets of each pattern, and offsets that just miss it.
const PATTERNS: [fn(u32) -> u32; 9] = [
    |lane| 5 + 4 * lane,
    |lane| 2 * lane,
    |lane| 7 + lane,
    |lane| 12 * lane,
    |lane| 16 * lane,
    |_| 201,
    |lane| lane * lane % 300,
    |lane| 4 * (lane ^ 1),
    |lane| 4 * lane + lane / 63,
];

fn masks() -> [LaneMask; 6] {
    [u64::MAX, u64::MAX >> 32, 0x1fff, 0x8000_0000_0000_0001, 0xffff_aaaa_0000_fffe, 0x7fff_0000]
        .map(LaneMask)
}

fn loads_as_one_by_one<P: Part, const PARTS: usize>(places: [u32; PARTS]) {
    let bytes: Vec<u8> = (0..2048u32).map(|byte| (byte * 37 / 8) as u8).collect();
    for (pattern, lanes) in PATTERNS.into_iter().flat_map(|p| masks().map(|mask| (p, mask))) {
        let offsets = Row(std::array::from_fn(|lane| pattern(lane as u32)));
        let (mut rows, mut wanted) = ([Row::splat(9); PARTS], [Row::splat(9); PARTS]);
        assert_eq!(load::<P, PARTS>(&bytes, &offsets, lanes, &mut rows, places), lanes);
        for (row, place) in wanted.iter_mut().zip(places) {
            let word = |lane: usize| {
                let at = (offsets.0[lane] + place) as usize;
                let mut word = [0; 4];
                word[..size_of::<P>()].copy_from_slice(&bytes[at..at + size_of::<P>()]);
                u32::from_le_bytes(word)
            };
            blend(row, &Row(std::array::from_fn(word)), &Row::expand(lanes));
        }
        assert_eq!(rows, wanted, "{lanes:?} {:?}", offsets.0);
    }
}

#[test]
fn all_offset_patterns_load_the_same_bytes() {
    loads_as_one_by_one::<u8, 1>([0]);
    loads_as_one_by_one::<u16, 1>([0]);
    loads_as_one_by_one::<u32, 1>([0]);
    loads_as_one_by_one::<u32, 2>([0, 4]);
    loads_as_one_by_one::<u32, 3>([0, 4, 8]);
    loads_as_one_by_one::<u32, 4>([0, 4, 8, 12]);
    loads_as_one_by_one::<u32, 4>([0, 256, 512, 768]);
    loads_as_one_by_one::<u32, 2>([100, 4]);
}

fn stores_as_one_by_one<P: Part, const PARTS: usize>(places: [u32; PARTS]) {
    for (pattern, lanes) in PATTERNS.into_iter().flat_map(|p| masks().map(|mask| (p, mask))) {
        let offsets = Row(std::array::from_fn(|lane| pattern(lane as u32)));
        let rows: [Row; PARTS] = std::array::from_fn(|part| {
            Row(std::array::from_fn(|lane| {
                (lane as u32 + 77 * part as u32).wrapping_mul(0x0102_0304)
            }))
        });
        let (mut bytes, mut wanted) = (vec![0; 2048], vec![0; 2048]);
        placed!(P, PARTS, &mut bytes[..], &offsets, lanes, places).store(&rows);
        for lane in lanes.lanes().map(|lane| usize::from(lane.0)) {
            for (row, place) in rows.iter().zip(places) {
                let at = (offsets.0[lane] + place) as usize;
                let word = row.0[lane].to_le_bytes();
                wanted[at..at + size_of::<P>()].copy_from_slice(&word[..size_of::<P>()]);
            }
        }
        assert_eq!(bytes, wanted, "{lanes:?} {:?}", offsets.0);
    }
}

#[test]
fn all_offset_patterns_store_the_same_bytes_and_the_highest_lane_wins() {
    stores_as_one_by_one::<u8, 1>([0]);
    stores_as_one_by_one::<u16, 1>([0]);
    stores_as_one_by_one::<u32, 1>([0]);
    stores_as_one_by_one::<u32, 2>([0, 4]);
    stores_as_one_by_one::<u32, 3>([0, 4, 8]);
    stores_as_one_by_one::<u32, 4>([0, 4, 8, 12]);
    stores_as_one_by_one::<u32, 4>([0, 256, 512, 768]);
    stores_as_one_by_one::<u32, 2>([0, 32]);
}

#[test]
fn lane_one_byte_past_the_end_is_out_of_range() {
    let (mut bytes, last) = (vec![1; 64], LaneMask(1 << 63));
    let mut offsets = Row::ZERO;
    let mut rows = [Row::ZERO];
    offsets.0[63] = 60;
    assert_eq!(load::<u32, 1>(&bytes, &offsets, LaneMask::FULL, &mut rows, [0]), LaneMask::FULL);
    offsets.0[63] = 61;
    let others = LaneMask(!last.0);
    let mut rows = [Row::ZERO];
    assert_eq!(load::<u32, 1>(&bytes, &offsets, LaneMask::FULL, &mut rows, [0]), others);
    assert_eq!((rows[0].0[62], rows[0].0[63]), (0x0101_0101, 0));
    offsets.0[63] = 64;
    placed!(u8, 1, &mut bytes[..], &offsets, last, [0]).store(&[Row::splat(9)]);
    offsets.0[63] = u32::MAX;
    placed!(u8, 1, &mut bytes[..], &offsets, last, [0]).store(&[Row::splat(9)]);
    assert_eq!(bytes, vec![1; 64]);
    // No lane fits into an empty range.
    assert_eq!(load::<u8, 1>(&[], &Row::ZERO, LaneMask::FULL, &mut rows, [0]), LaneMask::EMPTY);
}

/// Bytes before and after the active lanes' elements are not touched at either end of the range,
/// where the elements of inactive lanes would lie.
#[test]
fn inactive_lanes_do_not_touch_the_ends_of_the_range() {
    let mut bytes: Vec<u8> = (0..40).collect();
    for (lanes, first) in [(LaneMask(0xfc00), -40i32), (LaneMask(0x003f), 16)] {
        let offsets = Row(std::array::from_fn(|lane| (first + 4 * lane as i32) as u32));
        let mut rows = [Row::splat(9)];
        assert_eq!(load::<u32, 1>(&bytes, &offsets, lanes, &mut rows, [0]), lanes);
        for lane in 0..16 {
            let at = offsets.0[lane] as usize;
            let is_active = lanes.0 >> lane & 1 != 0;
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(rows[0].0[lane], if is_active { word(at) } else { 9 }, "lane {lane}");
        }
        let before = bytes.clone();
        placed!(u32, 1, &mut bytes[..], &offsets, lanes, [0]).store(&rows);
        assert_eq!(bytes, before);
    }
}
