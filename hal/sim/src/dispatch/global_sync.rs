//! Global wave sync (GWS): counters at which waves of all workgroups of a dispatch wait (ISA
//! manual, "DS_GWS_INIT", "DS_GWS_SEMA_*", "DS_GWS_BARRIER").
//!
//! A dispatch has all 64 resources, initially zero. A dispatch of a queue inherits the counters of
//! the previous dispatch; AMD's runtime relies on this, since it initializes a counter in a
//! separate dispatch. Waves that wait at a resource continue in the order of their arrival.

use crate::instruction::sync::{SyncOperation, SyncRequest};
use flipwave_device::{Dim3, WaveId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const RESOURCES: u32 = 64;

#[derive(Clone, Debug, Default, PartialEq)]
struct Resource {
    counter: u32,
    waiting: VecDeque<WaveId>,
}

/// GWS resources of a dispatch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GlobalSync {
    /// Resources used so far; the others have their initial state.
    resources: BTreeMap<u32, Resource>,
    /// Waves that waited and may continue.
    released: Vec<WaveId>,
    /// Workgroups that used a resource.
    users: BTreeSet<Dim3>,
}

impl GlobalSync {
    /// Carries out a request of `wave`. Returns `true` if the wave may continue.
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

    /// The state that the next dispatch of a queue inherits: the counters.
    pub fn left_behind(&self) -> GlobalSync {
        let counters = self.resources.iter().filter(|(_, resource)| resource.counter > 0);
        let without_waves =
            |resource: &Resource| Resource { counter: resource.counter, waiting: VecDeque::new() };
        GlobalSync {
            resources: counters
                .map(|(number, resource)| (*number, without_waves(resource)))
                .collect(),
            ..GlobalSync::default()
        }
    }

    /// Returns `true` if a workgroup has used a resource.
    pub fn is_used_by(&self, workgroup: Dim3) -> bool {
        self.users.contains(&workgroup)
    }

    /// Returns `true` once if `wave`, which waits, may continue.
    pub fn take_released(&mut self, wave: WaveId) -> bool {
        let index = self.released.iter().position(|released| *released == wave);
        index.map(|index| self.released.remove(index)).is_some()
    }
}

impl Resource {
    /// Increases the counter by the signals that no wave waits for. Returns the number of waves
    /// that continue.
    fn signal(&mut self, count: u32) -> usize {
        let waves = self.waiting.len().min(count as usize);
        self.counter = self.counter.wrapping_add(count - waves as u32);
        waves
    }
}

#[cfg(test)]
mod tests;
