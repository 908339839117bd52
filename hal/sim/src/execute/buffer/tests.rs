use super::*;
use crate::tests::operations::Random;

/// What the manual's formulas give, field by field from the words: whether the access is in
/// range, and its address. `element` is the size that swizzling keeps together.
fn reference(
    words: [u32; 4],
    scalar_offset: u32,
    indexed: bool,
    (thread, index, offset, bytes): (u32, u32, u32, u32),
    element: u128,
) -> Option<u128> {
    let bits = |from: u32, count: u32| -> u128 {
        let all = words.iter().rev().fold(0u128, |all, word| all << 32 | u128::from(*word));
        all >> from & ((1 << count) - 1)
    };
    let (base, swizzle, records) = (bits(0, 48), bits(63, 1) == 1, bits(64, 32));
    let add_thread = bits(119, 1) == 1;
    let mut stride = bits(48, 14);
    if add_thread {
        stride += bits(111, 4) * 16384;
    }
    let index_stride = [8u128, 16, 32, 64][bits(117, 2) as usize];
    let index = (u128::from(index) + if add_thread { u128::from(thread) } else { 0 }) % (1 << 32);
    let place = |offset: u128| {
        if swizzle {
            let msb = (index / index_stride) * stride + (offset / element) * element;
            msb * index_stride + (index % index_stride) * element + offset % element
        } else {
            index * stride + offset
        }
    };
    let first = u128::from(offset);
    let end = first + u128::from(bytes);
    let fits = if add_thread && !indexed {
        end <= 1 << 32
    } else if indexed && stride != 0 {
        index < records && (!swizzle || end <= stride)
    } else {
        place(end - 1) + 1 + u128::from(scalar_offset) <= records
    };
    fits.then(|| base + u128::from(scalar_offset) + place(first))
}

/// Compares resource and reference on many resources; gives accesses in range, accesses out
/// of range, and differences.
fn compare(element: u128) -> [u32; 3] {
    let mut random = Random(7);
    let mut counts = [0; 3];
    for _ in 0..200_000 {
        let stride = random.choose(&[0, 4, 8, 12, 16, 64, 100, 0x3fff]) as u32;
        let swizzle = random.choose(&[0, 1 << 31]) as u32;
        let format = random.choose(&[0, 1]) as u32;
        let words = [
            random.next() as u32,
            random.next() as u32 & 0xffff | stride << 16 | swizzle,
            random.choose(&[0, 1, 4, 16, 100, 4096, 1 << 20, 0xffff_ffff]) as u32,
            (random.next() as u32 & 3) << 21 | (random.next() as u32 & 1) << 23 | format << 15,
        ];
        let scalar_offset = random.choose(&[0, 0, 4, 20, 5000]) as u32;
        let indexed = random.next() & 1 != 0;
        let thread = random.next() as u32 & 63;
        let index = random.choose(&[0, 0, 1, 5, 15, 16, 99, 1000, 0xffff_ffff]) as u32;
        let offset = random.choose(&[0, 1, 3, 4, 7, 8, 12, 60, 96, 4092, 0xffff_fff0]) as u32;
        let bytes = random.choose(&[1, 2, 4, 8, 16]) as u32;
        let buffer = Buffer::new(words, scalar_offset, indexed);
        let lane = Lane(thread as u8);
        let found = buffer
            .contains(lane, index, offset, bytes)
            .then(|| u128::from(buffer.address(lane, index, offset)));
        let access = (thread, index, offset, bytes);
        let wanted = reference(words, scalar_offset, indexed, access, element);
        counts[usize::from(wanted.is_none())] += 1;
        if found != wanted {
            counts[2] += 1;
        }
    }
    counts
}

#[test]
fn addresses_and_ranges_follow_the_manual() {
    let [inside, outside, different] = compare(4);
    assert!(inside > 20_000 && outside > 20_000, "{inside} inside, {outside} outside");
    assert_eq!(different, 0);
}

/// The negative control: swizzling that keeps eight bytes together is another one.
#[test]
fn the_comparison_sees_a_wrong_element_size() {
    assert!(compare(8)[2] > 1000);
}

#[test]
fn the_format_is_read_from_the_fourth_word() {
    let words = [0, 0, 0, 4 | 5 << 3 | 6 << 6 | 7 << 9 | 7 << 12 | 14 << 15];
    let buffer = Buffer::new(words, 0, false);
    assert_eq!(buffer.format, BufferFormat { data: 14, number: 7 });
    assert_eq!(buffer.channels, [4, 5, 6, 7]);
}
