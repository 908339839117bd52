//! Global wave sync: counters that the waves of a dispatch, of whichever workgroup, wait at (ISA
//! manual, "DS_GWS_INIT", "DS_GWS_SEMA_*", "DS_GWS_BARRIER").
//!
//! A dispatch has all 64 resources, zero when it starts; those of a queue find what the one before has
//! left, as AMD's runtime relies on: it sets a counter in a dispatch of its own. Waves that wait at one
//! resource go on in the order in which they came.

use flipwave_device::{Dim3, WaveId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What an instruction does with a resource. Those that take a number take it from the first
/// active lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncOperation {
    /// Sets the counter.
    Initialize,
    /// Lets a waiting wave go on, or counts up.
    Signal,
    /// As many times [`SyncOperation::Signal`].
    SignalMany,
    /// Waits until the counter is above zero, and counts down.
    Wait,
    /// Lets all waiting waves go on.
    ReleaseAll,
    /// Waits until as many waves as the counter says have come before, then lets all go on and
    /// sets the counter for the next time.
    Barrier,
}

impl SyncOperation {
    /// The operation of a canonical name.
    pub fn find(name: &str) -> Option<SyncOperation> {
        Some(match name.strip_prefix("ds_gws_")? {
            "init" => SyncOperation::Initialize,
            "sema_v" => SyncOperation::Signal,
            "sema_br" => SyncOperation::SignalMany,
            "sema_p" => SyncOperation::Wait,
            "sema_release_all" => SyncOperation::ReleaseAll,
            "barrier" => SyncOperation::Barrier,
            _ => return None,
        })
    }
}

/// An instruction with its resource and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    /// What is done.
    pub operation: SyncOperation,
    /// Which resource, modulo 64.
    pub resource: u32,
    /// The number that goes with it.
    pub value: u32,
}

const RESOURCES: u32 = 64;

#[derive(Clone, Debug, Default)]
struct Resource {
    counter: u32,
    waiting: VecDeque<WaveId>,
}

/// The resources of a dispatch.
#[derive(Clone, Debug, Default)]
pub struct GlobalSync {
    /// Those that were used; the others are as they start.
    resources: BTreeMap<u32, Resource>,
    /// Waves that waited and may go on.
    released: Vec<WaveId>,
    /// Workgroups that used one.
    users: BTreeSet<Dim3>,
}

impl GlobalSync {
    /// Carries out the request of `wave`; whether it may go on.
    pub fn request(&mut self, wave: WaveId, request: SyncRequest) -> bool {
        self.users.insert(wave.workgroup);
        let resource = self.resources.entry(request.resource % RESOURCES).or_default();
        let release = match request.operation {
            SyncOperation::Initialize => {
                resource.counter = request.value;
                0
            }
            SyncOperation::Wait if resource.counter == 0 => {
                resource.waiting.push_back(wave);
                return false;
            }
            SyncOperation::Wait => {
                resource.counter -= 1;
                0
            }
            SyncOperation::Signal => resource.signal(1),
            SyncOperation::SignalMany => resource.signal(request.value),
            SyncOperation::ReleaseAll => resource.waiting.len(),
            SyncOperation::Barrier if resource.counter > 0 => {
                resource.counter -= 1;
                resource.waiting.push_back(wave);
                return false;
            }
            SyncOperation::Barrier => {
                resource.counter = request.value;
                resource.waiting.len()
            }
        };
        self.released.extend(resource.waiting.drain(..release));
        true
    }

    /// What the next dispatch of a queue finds: the counters.
    pub fn left_behind(&self) -> GlobalSync {
        let counters = self.resources.iter().filter(|(_, own)| own.counter > 0);
        let alone = |own: &Resource| Resource { counter: own.counter, waiting: VecDeque::new() };
        GlobalSync {
            resources: counters.map(|(number, own)| (*number, alone(own))).collect(),
            ..GlobalSync::default()
        }
    }

    /// Whether a workgroup has used a resource.
    pub fn is_used_by(&self, workgroup: Dim3) -> bool {
        self.users.contains(&workgroup)
    }

    /// Whether `wave`, which waits, may go on; true once.
    pub fn take_released(&mut self, wave: WaveId) -> bool {
        let place = self.released.iter().position(|released| *released == wave);
        place.map(|place| self.released.remove(place)).is_some()
    }
}

impl Resource {
    /// Counts up by what no wave waits for; gives the number of waves that go on.
    fn signal(&mut self, count: u32) -> usize {
        let waves = self.waiting.len().min(count as usize);
        self.counter = self.counter.wrapping_add(count - waves as u32);
        waves
    }
}

#[cfg(test)]
mod tests {
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
        assert!(
            next.request(wave(2), SyncRequest { resource: 6, ..request(SyncOperation::Wait, 0) })
        );
        assert!(
            !next.request(wave(2), SyncRequest { resource: 6, ..request(SyncOperation::Wait, 0) })
        );
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
}
