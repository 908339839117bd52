use super::*;

#[test]
fn swizzles_stay_in_their_group() {
    // Reverse within quads.
    assert_eq!(swizzle_source(0x8000 | 0b00_01_10_11, 5), 6);
    // Swap neighbours: xor 1.
    assert_eq!(swizzle_source(0x1f | 1 << 10, 33), 32);
    // Broadcast lane 3 of each group of 32.
    assert_eq!(swizzle_source(3 << 5, 60), 35);
}

#[test]
fn out_of_range_reads_give_zero_and_writes_vanish() {
    let mut lds = vec![7; 16];
    write(&mut lds, 13, &[1; 4]);
    assert_eq!(lds, vec![7; 16]);
    assert_eq!(read(&lds, 14, 4)[..4], [0; 4]);
    assert_eq!(read(&lds, u32::MAX, 4)[..4], [0; 4]);
    assert_eq!(read(&lds, 12, 4)[..4], [7; 4]);
}
