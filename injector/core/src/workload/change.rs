//! Changes of device memory between the dispatches of a workload.
//!
//! They occur in every run, faulty or not, in the same way: memory is mapped at the same addresses, and
//! writes contain the data that the host wrote when the workload was recorded. Faults therefore do not
//! affect what the host computes from results.

use flipwave_device::{Address, Change, DeviceError};
use flipwave_machine::Machine;
use std::sync::Arc;

/// Applies a change to the memory of a device.
///
/// # Errors
/// [`DeviceError::NotAllocated`] for unmapped memory, [`DeviceError::Occupied`] for memory that is
/// already mapped, [`DeviceError::OutOfMemory`].
fn apply(change: &Change, device: &mut dyn Machine) -> Result<(), DeviceError> {
    match change {
        Change::Map { address, bytes } => device.allocate_at(*address, *bytes),
        Change::Unmap { address } => device.free(*address),
        Change::Write(patch) => {
            patch.runs().try_for_each(|(address, bytes)| device.write(address, bytes))
        }
        Change::Copy { from, to, bytes } => {
            let missing =
                || DeviceError::NotAllocated { operation: "read", address: *from, bytes: *bytes };
            let around = device.allocation_around(*from).ok_or_else(missing)?;
            if *bytes > around.end.0 - from.0 {
                return Err(missing());
            }
            let mut content = vec![0; *bytes as usize];
            device.read(*from, &mut content)?;
            device.write(*to, &content)
        }
    }
}

/// The changes of a workload, in order. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    before: Arc<Vec<Vec<Change>>>,
}

impl Changes {
    /// Appends a change before the dispatch with this index. The number of dispatches as the index
    /// means after the last dispatch.
    pub fn add(&mut self, index: usize, change: Change) {
        let before = Arc::make_mut(&mut self.before);
        if before.len() <= index {
            before.resize_with(index + 1, Vec::new);
        }
        before[index].push(change);
    }

    /// Changes between the dispatch with this index and its predecessor.
    pub fn before(&self, index: usize) -> &[Change] {
        self.before.get(index).map_or(&[], Vec::as_slice)
    }

    /// Applies the changes before the dispatch with this index, or after the last dispatch, to a
    /// machine that has run all preceding dispatches and changes.
    ///
    /// # Errors
    /// [`DeviceError`] if memory is missing or already mapped.
    pub fn apply(&self, index: usize, machine: &mut dyn Machine) -> Result<(), DeviceError> {
        self.before(index).iter().try_for_each(|change| apply(change, machine))
    }

    /// All memory ranges that the changes map.
    pub fn mapped(&self) -> impl Iterator<Item = (Address, u64)> {
        self.before.iter().flatten().filter_map(|change| match change {
            Change::Map { address, bytes } => Some((*address, *bytes)),
            _ => None,
        })
    }
}
