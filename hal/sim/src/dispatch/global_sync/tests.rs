use super::*;

fn wave(number: u32) -> WaveId {
    WaveId { workgroup: [number, 0, 0], wave: 0 }
}

fn request(operation: SyncOperation, value: u32) -> SyncRequest {
    SyncRequest { operation, resource: 5, value }
}

#[test]
fn a_barrier_of_three_waves_holds_two_and_can_be_used_again() {
    let mut sync = GlobalSync::default();
    assert!(sync.request(wave(0), request(SyncOperation::Initialize, 2)));
    for round in 0..2 {
        assert!(!sync.request(wave(0), request(SyncOperation::Barrier, 2)), "{round}");
        assert!(!sync.request(wave(1), request(SyncOperation::Barrier, 2)), "{round}");
        assert!(!sync.take_released(wave(0)), "{round}");
        assert!(sync.request(wave(2), request(SyncOperation::Barrier, 2)), "{round}");
        assert!(sync.take_released(wave(0)) && sync.take_released(wave(1)), "{round}");
        assert!(!sync.take_released(wave(1)), "released once");
    }
}

#[test]
fn a_semaphore_lets_as_many_waves_pass_as_it_was_signalled() {
    let mut sync = GlobalSync::default();
    assert!(!sync.request(wave(0), request(SyncOperation::Wait, 0)));
    assert!(!sync.request(wave(1), request(SyncOperation::Wait, 0)));
    assert!(sync.request(wave(2), request(SyncOperation::Signal, 0)));
    assert!(sync.take_released(wave(0)));
    assert!(!sync.take_released(wave(1)));
    // One for the wave that waits, two to be had.
    assert!(sync.request(wave(2), request(SyncOperation::SignalMany, 3)));
    assert!(sync.take_released(wave(1)));
    assert!(sync.request(wave(3), request(SyncOperation::Wait, 0)));
    assert!(sync.request(wave(4), request(SyncOperation::Wait, 0)));
    assert!(!sync.request(wave(5), request(SyncOperation::Wait, 0)));
    assert!(sync.request(wave(6), request(SyncOperation::ReleaseAll, 0)));
    assert!(sync.take_released(wave(5)));
}

#[test]
fn the_next_dispatch_finds_the_counters_and_no_wave() {
    let mut sync = GlobalSync::default();
    assert!(sync.request(wave(0), request(SyncOperation::Initialize, 1)));
    assert!(!sync.request(wave(0), request(SyncOperation::Barrier, 1)));
    assert!(
        sync.request(wave(1), SyncRequest { resource: 6, ..request(SyncOperation::Signal, 0) })
    );
    let mut next = sync.left_behind();
    assert!(!next.is_used_by([0; 3]));
    // Nobody waits any more at the one, and the other was signalled once.
    assert!(next.request(wave(2), request(SyncOperation::ReleaseAll, 0)));
    assert!(!next.take_released(wave(0)));
    assert!(next.request(wave(2), SyncRequest { resource: 6, ..request(SyncOperation::Wait, 0) }));
    assert!(!next.request(wave(2), SyncRequest { resource: 6, ..request(SyncOperation::Wait, 0) }));
}

#[test]
fn resources_do_not_share_a_counter() {
    let mut sync = GlobalSync::default();
    let other = SyncRequest { resource: 6, ..request(SyncOperation::Signal, 0) };
    assert!(sync.request(wave(0), other));
    assert!(!sync.request(wave(0), request(SyncOperation::Wait, 0)));
    // The number of a resource has six bits.
    let wait = request(SyncOperation::Wait, 0);
    assert!(sync.request(wave(1), SyncRequest { resource: 6 + 64, ..wait }));
}
