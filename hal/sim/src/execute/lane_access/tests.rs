use super::*;
use flipwave_isa::LaneMask;

const ALL: Active<'_> = Active { row: &Row([u32::MAX; LANES]), all: true };

fn some(row: &Row) -> Active<'_> {
    Active { row, all: false }
}

const ONE: &[u32; 1] = &[0];

#[test]
fn lanes_load_their_own_words_and_inactive_lanes_keep_theirs() {
    let bytes: Vec<u8> = (0..=255).collect();
    let offsets = Row(std::array::from_fn(|lane| 3 * lane as u32));
    let mut rows = [Row::splat(7), Row::splat(7)];
    let active = Row::expand(LaneMask(0xf0));
    assert!(load(&bytes, &offsets, some(&active), &mut rows, &[0, 4]));
    assert_eq!(rows[0].0[4], u32::from_le_bytes([12, 13, 14, 15]));
    assert_eq!(rows[1].0[7], u32::from_le_bytes([25, 26, 27, 28]));
    assert_eq!(rows[0].0[3], 7);
}

#[test]
fn neighbouring_equal_and_scattered_lanes_load_alike() {
    let bytes: Vec<u8> = (0..=255).chain(0..=255).collect();
    let patterns: [fn(u32) -> u32; 4] =
        [|lane| 5 + 4 * lane, |_| 201, |lane| lane * lane % 300, |lane| 4 * (lane ^ 1)];
    for pattern in patterns {
        let offsets = Row(std::array::from_fn(|lane| pattern(lane as u32)));
        let mut rows = [Row::ZERO];
        assert!(load(&bytes, &offsets, ALL, &mut rows, ONE));
        for lane in 0..LANES {
            let at = offsets.0[lane] as usize;
            let expected = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(rows[0].0[lane], expected, "lane {lane}, offset {at}");
        }
    }
}

#[test]
fn a_lane_one_byte_past_the_end_moves_nothing() {
    let mut bytes = vec![1; 64];
    let mut offsets = Row::ZERO;
    let mut rows = [Row::ZERO];
    offsets.0[63] = 60;
    assert!(load(&bytes, &offsets, ALL, &mut rows, ONE));
    offsets.0[63] = 61;
    let mut rows = [Row::ZERO];
    assert!(!load(&bytes, &offsets, ALL, &mut rows, ONE));
    assert_eq!(rows, [Row::ZERO]);
    // The same offset in an inactive lane is no reason to refuse.
    let without = Row::expand(LaneMask(u64::MAX >> 1));
    assert!(load(&bytes, &offsets, some(&without), &mut rows, ONE));
    assert!(!store(&mut bytes, &offsets, ALL, &[Row::splat(9)], 4));
    assert_eq!(bytes, vec![1; 64]);
}

#[test]
fn the_highest_lane_wins_where_stores_overlap() {
    let mut bytes = vec![0; 8];
    let row = Row(std::array::from_fn(|lane| lane as u32));
    assert!(store(&mut bytes, &Row::splat(4), some(&Row::expand(LaneMask(0b1011))), &[row], 4));
    assert_eq!(bytes, [0, 0, 0, 0, 3, 0, 0, 0]);
}

#[test]
fn words_apart_are_loaded_from_where_they_lie_and_checked_there() {
    let bytes: Vec<u8> = (0..=255).collect();
    let apart = &[100, 4];
    let mut rows = [Row::ZERO; 2];
    let offsets = Row(std::array::from_fn(|lane| lane as u32));
    assert!(load(&bytes, &offsets, ALL, &mut rows, apart));
    assert_eq!(rows[0].0[9], u32::from_le_bytes([109, 110, 111, 112]));
    assert_eq!(rows[1].0[9], u32::from_le_bytes([13, 14, 15, 16]));
    assert!(!load(&bytes[..166], &offsets, ALL, &mut rows, apart));
    assert!(load(&bytes[..167], &offsets, ALL, &mut rows, apart));
}
