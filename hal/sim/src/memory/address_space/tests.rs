use super::*;
use crate::memory::access::{read_bytes, violation, write_bytes};
use flipwave_device::AccessKind;

#[test]
fn access_past_the_last_page_finds_no_region() {
    let mut space = AddressSpace::default();
    let address = space.allocate(100).unwrap();
    for (at, is_mapped) in
        [(address.0 + 4095, true), (address.0 + 4096, false), (address.0 - 1, false)]
    {
        assert_eq!(space.readable(at, 1).is_some(), is_mapped, "{at:#x}");
        assert_eq!(space.writable(at, 1).is_some(), is_mapped, "{at:#x}");
    }
}

#[test]
fn host_accesses_are_limited_to_the_requested_size() {
    let mut space = AddressSpace::default();
    let address = space.allocate(100).unwrap();
    assert!(space.write(address, &[1; 100]).is_ok());
    assert!(space.write(address, &[1; 101]).is_err());
    assert!(space.read(Address(address.0 + 99), &mut [0; 2]).is_err());
}

#[test]
fn waves_access_whole_pages_and_adjacent_allocations() {
    let mut space = AddressSpace::default();
    let at = |offset| Address(AddressSpace::START + offset);
    space.allocate_at(at(0), 100).unwrap();
    space.allocate_at(at(4096), 50).unwrap();
    space.write_pages(at(4000), &[7; 200]).unwrap();
    let mut found = [0; 202];
    space.read_pages(at(3999), &mut found).unwrap();
    assert_eq!((found[0], &found[1..201], found[201]), (0, &[7; 200][..], 0));
    assert!(space.read(at(4000), &mut [0]).is_err(), "not what the host asked for");
    let before = space.clone();
    assert!(space.write_pages(at(8190), &[9; 3]).is_err(), "beyond the last page");
    assert!(space.read_pages(at(8190), &mut [0; 3]).is_err());
    assert!(space.read_pages(Address(u64::MAX), &mut [0; 2]).is_err());
    let mut last = [1; 2];
    space.read_pages(at(8190), &mut last).unwrap();
    assert_eq!(last, [0; 2], "{before:?} is not changed in part");
}

#[test]
fn freed_addresses_are_reused_deterministically() {
    let mut space = AddressSpace::default();
    let first = space.allocate(10).unwrap();
    let second = space.allocate(10).unwrap();
    assert!(first < second);
    space.free(first).unwrap();
    assert_eq!(space.allocate(10).unwrap(), first);
}

#[test]
fn waves_cannot_write_code() {
    let mut space = AddressSpace::default();
    let code = space.allocate(64).unwrap();
    space.protect(Address(code.0 + 4)..Address(code.0 + 8));
    space.protect(Address(code.0 + 16)..Address(code.0 + 20));
    let mut write = |offset: u64, bytes: &[u8]| {
        write_bytes(&mut space, code.0 + offset, bytes, AccessKind::Write, None)
    };
    let refused = |offset| Err(violation(code.0 + offset, AccessKind::Write, None));
    for offset in 0..64 {
        let is_code = (4..8).contains(&offset) || (16..20).contains(&offset);
        assert_eq!(write(offset, &[7]), if is_code { refused(offset) } else { Ok(()) });
    }
    // A write that is partly to code ends at its first byte.
    assert_eq!(write(3, &[1, 1]), refused(4));
    assert_eq!(write(7, &[1, 1]), refused(7));
    let mut bytes = [0; 9];
    read_bytes(&mut space, code.0, &mut bytes, AccessKind::Read, None).unwrap();
    assert_eq!(bytes, [7, 7, 7, 1, 0, 0, 0, 0, 7]);
}

/// Includes large memory, which is copied in parts at first.
#[test]
fn clones_of_shared_memory_differ_only_in_written_bytes() {
    let mut first = AddressSpace::default();
    let size = 8 << 20;
    let base = first.allocate(size).unwrap();
    let content: Vec<u8> = (0..size).map(|at| (at / 11) as u8).collect();
    first.write(base, &content).unwrap();
    first.share();
    let (mut second, mut expected) = (first.clone(), content.clone());
    for at in (0..size as usize).step_by(300_000) {
        assert_eq!(first.is_same(&second), at == 0, "{at}");
        let place = base.0 + at as u64;
        write_bytes(&mut second, place, &[!content[at]], AccessKind::Write, None).unwrap();
        expected[at] = !content[at];
    }
    let [mut one, mut other] = [vec![0; size as usize], vec![0; size as usize]];
    first.read(base, &mut one).unwrap();
    second.read(base, &mut other).unwrap();
    assert!(one == content && other == expected);
    let mut third = second.clone();
    assert!(third.is_same(&second));
    let last = !expected[size as usize - 1];
    write_bytes(&mut third, base.0 + size - 1, &[last], AccessKind::Write, None).unwrap();
    assert!(!third.is_same(&second));
}

/// Large memory is copied in parts of 64 KiB, small memory whole.
#[test]
fn written_bytes_of_clones_count_as_added_memory() {
    let mut first = AddressSpace::default();
    let [large, small] = [8 << 20, 4096].map(|size| first.allocate(size).unwrap());
    first.write(large, &vec![1; 8 << 20]).unwrap();
    first.share();
    let mut second = first.clone();
    let structure = second.added_host_bytes(&first);
    assert!(structure < 4096, "{structure}");
    let mut write = |at: u64| write_bytes(&mut second, at, &[7], AccessKind::Write, None).unwrap();
    write(small.0);
    write(large.0 + (1 << 20));
    write(large.0 + (1 << 20) + 5);
    let written = second.added_host_bytes(&first) - structure;
    assert!((68 << 10..84 << 10).contains(&written), "{written}");
    second.share();
    assert!(second.clone().added_host_bytes(&second) <= written - (68 << 10) + structure);
    // Memory that only one of them has.
    second.allocate(1 << 20).unwrap();
    let more = second.added_host_bytes(&first) - written - structure;
    assert!(more >= size_of::<Allocation>() as u64, "{more}");
}

/// The parts that one of two spaces wrote are found by their location.
#[test]
fn unshared_ranges_cover_all_writes_and_little_more() {
    let mut first = AddressSpace::default();
    let (small, size) = (first.allocate(1000).unwrap(), 8 << 20);
    let base = first.allocate(size).unwrap();
    first.write(base, &vec![7; size as usize]).unwrap();
    first.share();
    let mut second = first.clone();
    let unshared = |second: &AddressSpace, offset: u64, bytes: u64| {
        second.unshared_with(&first, Address(base.0 + offset), bytes)
    };
    let one = |range: Range<u64>| iter::once(range).collect::<Vec<_>>();
    assert!(unshared(&second, 0, size).is_empty());
    let written = [5_u64, 3_000_000, 3_000_001, size - 1];
    for at in written {
        write_bytes(&mut second, base.0 + at, &[9], AccessKind::Write, None).unwrap();
    }
    let all = unshared(&second, 0, size);
    assert!(all.is_sorted_by(|one, next| one.end <= next.start), "{all:?}");
    assert!(written.iter().all(|at| all.iter().any(|range| range.contains(at))), "{all:?}");
    assert!(all.iter().map(|range| range.end - range.start).sum::<u64>() < 1 << 20, "{all:?}");
    // Offsets count from the start of the requested range, and stay inside it.
    assert_eq!(unshared(&second, 2_999_990, 20), one(0..20));
    assert!(unshared(&second, 1_500_000, 1000).is_empty());
    let clipped = unshared(&second, 1000, 3_000_000 - 1000 + 1);
    assert_eq!(clipped.last().map(|range| range.end), Some(3_000_000 - 1000 + 1));
    // A small allocation is copied as a whole.
    assert!(second.unshared_with(&first, small, 1000).is_empty());
    write_bytes(&mut second, small.0, &[9], AccessKind::Write, None).unwrap();
    assert_eq!(second.unshared_with(&first, small, 1000), one(0..1000));
    // An allocation at the same address, and a range beyond the end.
    second.free(small).unwrap();
    assert_eq!(second.unshared_with(&first, small, 10), one(0..10));
    assert_eq!(unshared(&second, size - 10, 20), one(0..20));
    assert_eq!(unshared(&second, u64::MAX - base.0, 20), one(0..20));
}
