use super::*;

fn wave(number: u32) -> WaveId {
    WaveId { workgroup: [number, 0, 0], wave: 0 }
}

fn request(operation: SyncOperation, value: u32) -> SyncRequest {
    SyncRequest { operation, resource: 5, value }
}

#[test]
fn barrier_of_three_waves_holds_two_and_is_reusable() {
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
fn semaphore_releases_one_wave_per_signal() {
    let mut sync = GlobalSync::default();
    assert!(!sync.request(wave(0), request(SyncOperation::Wait, 0)));
    assert!(!sync.request(wave(1), request(SyncOperation::Wait, 0)));
    assert!(sync.request(wave(2), request(SyncOperation::Signal, 0)));
    assert!(sync.take_released(wave(0)));
    assert!(!sync.take_released(wave(1)));
    // One signal for the waiting wave, two for later ones.
    assert!(sync.request(wave(2), request(SyncOperation::SignalMany, 3)));
    assert!(sync.take_released(wave(1)));
    assert!(sync.request(wave(3), request(SyncOperation::Wait, 0)));
    assert!(sync.request(wave(4), request(SyncOperation::Wait, 0)));
    assert!(!sync.request(wave(5), request(SyncOperation::Wait, 0)));
    assert!(sync.request(wave(6), request(SyncOperation::ReleaseAll, 0)));
    assert!(sync.take_released(wave(5)));
}

#[test]
fn next_dispatch_inherits_counters_but_no_waves() {
    let mut sync = GlobalSync::default();
    assert!(sync.request(wave(0), request(SyncOperation::Initialize, 1)));
    assert!(!sync.request(wave(0), request(SyncOperation::Barrier, 1)));
    assert!(
        sync.request(wave(1), SyncRequest { resource: 6, ..request(SyncOperation::Signal, 0) })
    );
    let mut next = sync.left_behind();
    assert!(!next.is_used_by([0; 3]));
    // No wave waits at the first resource, and the second was signalled once.
    assert!(next.request(wave(2), request(SyncOperation::ReleaseAll, 0)));
    assert!(!next.take_released(wave(0)));
    assert!(next.request(wave(2), SyncRequest { resource: 6, ..request(SyncOperation::Wait, 0) }));
    assert!(!next.request(wave(2), SyncRequest { resource: 6, ..request(SyncOperation::Wait, 0) }));
}

#[test]
fn resources_have_separate_counters() {
    let mut sync = GlobalSync::default();
    let signal = SyncRequest { resource: 6, ..request(SyncOperation::Signal, 0) };
    assert!(sync.request(wave(0), signal));
    assert!(!sync.request(wave(0), request(SyncOperation::Wait, 0)));
    // Resource numbers have six bits.
    let wait = request(SyncOperation::Wait, 0);
    assert!(sync.request(wave(1), SyncRequest { resource: 6 + 64, ..wait }));
}
