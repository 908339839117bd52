use super::*;
use flipwave_device::Address;

/// Addresses that a workgroup reads, writes, and writes in its private memory.
type Touched = [&'static [u64]; 3];

fn dependent(workgroups: &[Touched]) -> Vec<u32> {
    let mut footprints = Footprints::default();
    for (x, touched) in (0..).zip(workgroups) {
        let builder = footprints.entry([x, 0, 0], 0);
        for (set, bytes) in
            [&mut builder.read, &mut builder.written, &mut builder.private].into_iter().zip(touched)
        {
            bytes.iter().for_each(|byte| set.insert(Address(*byte), 1));
        }
    }
    footprints.end_all();
    let dependent = footprints.dependent();
    assert_eq!(footprints.independent(), dependent.is_empty());
    dependent.into_iter().map(|[x, _, _]| x).collect()
}

#[test]
fn reading_together_and_writing_apart_is_independent() {
    let apart: [Touched; 3] =
        [[&[1, 2, 3], &[10], &[]], [&[1, 2, 3], &[11], &[]], [&[1, 12], &[12], &[]]];
    assert_eq!(dependent(&apart), []);
}

#[test]
fn a_byte_written_by_one_and_touched_by_another_makes_both_dependent() {
    let third: Touched = [&[1], &[2], &[]];
    assert_eq!(dependent(&[[&[], &[7], &[]], [&[7], &[], &[]], third]), [0, 1]);
    assert_eq!(dependent(&[[&[], &[7], &[]], [&[], &[7], &[]], third]), [0, 1]);
    assert_eq!(dependent(&[[&[7], &[7], &[]], [&[7], &[], &[]], third]), [0, 1]);
}

/// Bytes far apart, in more than one part of a set.
#[test]
fn workgroups_with_equal_reads_share_memory() {
    let footprints = |count| -> Footprints {
        let read = || ByteSet::of_runs((0..100).map(|n| (Address(n << 15), 64)));
        let each = |x| ([x, 0, 0], Footprint { read: read(), ..Footprint::default() });
        (0..count).map(each).collect()
    };
    let [one, many] = [1, 1000].map(footprints);
    assert!(many.independent());
    assert!(one.host_bytes() > 1600, "{}", one.host_bytes());
    let each = many.host_bytes() / 1000;
    assert!(each < size_of::<Footprint>() as u64 + 300, "{each}");
    // One workgroup writes bytes that the others read.
    let written = ByteSet::of_runs([(Address(99 << 15), 1)]);
    let writer = ([5000, 0, 0], Footprint { written, ..Footprint::default() });
    let all =
        many.iter().map(|(position, footprint)| (position, footprint.clone())).chain([writer]);
    assert_eq!(all.collect::<Footprints>().dependent().len(), 1001);
}

#[test]
fn reading_stale_private_memory_makes_workgroups_dependent() {
    assert_eq!(dependent(&[[&[], &[], &[7]], [&[], &[], &[7]]]), []);
    assert_eq!(dependent(&[[&[], &[], &[7]], [&[7], &[], &[7]]]), [0, 1]);
    assert_eq!(dependent(&[[&[], &[], &[7]], [&[], &[7], &[]]]), [0, 1]);
}

#[test]
fn global_wave_sync_makes_a_workgroup_dependent() {
    let mut footprints = Footprints::default();
    footprints.entry([0; 3], 0).uses_global_sync = true;
    footprints.entry([1, 0, 0], 0);
    footprints.end_all();
    assert_eq!(footprints.dependent(), [[0; 3]]);
}

#[test]
fn shared_writes_are_copied_once() {
    let mut footprints = Footprints::default();
    footprints.entry([0; 3], 0).written.insert(Address(0), 64);
    footprints.entry([1, 0, 0], 0).written.insert(Address(4096), 64);
    footprints.entry([1, 0, 0], 0).read.insert(Address(8 << 20), 64);
    footprints.end_all();
    let once = footprints.bytes_copied();
    assert!(once > 4096, "{once}");
    footprints.entry([2, 0, 0], 0).private.insert(Address(16 << 20), 1);
    footprints.end_all();
    assert_eq!(footprints.bytes_copied(), 2 * once);
}

/// A workgroup that was not ended explicitly counts after its dispatch has ended.
#[test]
fn workgroup_footprints_exist_after_the_end() {
    let mut footprints = Footprints::default();
    for x in 0..2 {
        footprints.entry([x, 0, 0], 3).read.insert(Address(100), 4);
    }
    footprints.end([0; 3]);
    assert_eq!(
        footprints.get([0; 3]).map(|footprint| (footprint.slot, footprint.read.len())),
        Some((3, 4))
    );
    assert_eq!(footprints.iter().count(), 1);
    footprints.end_all();
    assert_eq!(footprints.iter().count(), 2);
}
