//! Global wave sync: counters that the waves of a dispatch, of whichever workgroup, wait at (ISA
//! manual, "DS_GWS_INIT", "DS_GWS_SEMA_*", "DS_GWS_BARRIER").
//!
//! A dispatch has all 64 resources, zero when it starts; those of a queue find what the one before has
//! left, as AMD's runtime relies on: it sets a counter in a dispatch of its own. Waves that wait at one
//! resource go on in the order in which they came.

use crate::instruction::sync::{SyncOperation, SyncRequest};
use flipwave_device::{Dim3, WaveId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const RESOURCES: u32 = 64;

#[derive(Clone, Debug, Default, PartialEq)]
struct Resource {
    counter: u32,
    waiting: VecDeque<WaveId>,
}

/// The resources of a dispatch.
#[derive(Clone, Debug, Default, PartialEq)]
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
mod tests;
