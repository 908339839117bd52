use super::*;

#[test]
fn unwritten_bytes_are_zero_and_use_no_memory() {
    let mut bytes = SparseBytes::new(1 << 32);
    let region = bytes.writable(0x1000, 5 * CHUNK + 7);
    assert_eq!((region.base, region.bytes.len()), (0x1000 + 5 * CHUNK, CHUNK as usize));
    region.bytes[7] = 9;
    for (offset, expected) in [(0, 0), (5 * CHUNK + 7, 9), (5 * CHUNK + 8, 0), (u32::MAX.into(), 0)]
    {
        let region = bytes.readable(0x1000, offset);
        let at = 0x1000 + offset - region.base;
        assert_eq!(region.bytes[at as usize], expected, "{offset:#x}");
    }
    assert_eq!(bytes.chunks.iter().filter(|chunk| !chunk.is_empty()).count(), 1);
}

#[test]
fn last_chunk_ends_at_the_end_of_memory() {
    let mut bytes = SparseBytes::new(CHUNK + 4096);
    assert_eq!(bytes.readable(0, CHUNK).bytes.len(), 4096);
    assert_eq!(bytes.writable(0, CHUNK + 4095).bytes.len(), 4096);
}

#[test]
fn clones_share_chunks_until_one_writes() {
    let mut first = SparseBytes::new(2 * CHUNK);
    first.writable(0, 0).bytes[0] = 1;
    first.share();
    let mut second = first.clone();
    assert_eq!(first.readable(0, 0).bytes.as_ptr(), second.readable(0, 0).bytes.as_ptr());
    second.writable(0, 0).bytes[0] = 2;
    assert_eq!([first.readable(0, 0).bytes[0], second.readable(0, 0).bytes[0]], [1, 2]);
}

#[test]
fn base_content_is_visible_until_overwritten() {
    let beneath = (0..3 * CHUNK + 4096).map(|at| (at / 7) as u8).collect::<Vec<u8>>();
    let beneath = Arc::new(AlignedBytes::from(&*beneath));
    let mut bytes = SparseBytes::over(Arc::clone(&beneath));
    bytes.writable(0, CHUNK + 9).bytes[9] ^= 1;
    bytes.writable(0, 3 * CHUNK).bytes[4095] ^= 1;
    let mut expected = beneath.to_vec();
    expected[CHUNK as usize + 9] ^= 1;
    expected[3 * CHUNK as usize + 4095] ^= 1;
    assert!(*bytes.to_whole() == *expected);
    assert!(beneath[CHUNK as usize + 9] != expected[CHUNK as usize + 9]);
    let untouched = bytes.readable(0, 0).bytes.as_ptr();
    assert_eq!(untouched, beneath.as_ptr(), "what is not written is not copied");
}

#[test]
fn small_pieces_lie_in_one_chunk() {
    for (piece, is_whole) in [(1024, true), (66560, true), (120 << 10, true), (8 << 20, false)] {
        let mut bytes = SparseBytes::of_pieces(100 * piece, piece);
        for number in [0, 1, 7, 99] {
            let start = number * piece;
            let region = bytes.writable(0, start);
            let end = region.base + region.bytes.len() as u64;
            assert_eq!(start + piece <= end, is_whole, "{piece}, {number}");
            assert_eq!(region.base % AddressSpace::PAGE, 0, "{piece}, {number}");
        }
    }
}
