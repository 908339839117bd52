//! What happens to device memory between the dispatches of a workload.
//!
//! It happens in every run, and does the same whether a fault has struck or not: memory is mapped at
//! the same addresses, and what is written is what the host wrote when it was recorded. So a fault
//! does not reach what the host makes of results.

use flipwave_device::{Address, Change, Device, DeviceError};
use flipwave_sim::EmbeddedGpu;
use std::sync::Arc;

/// Changes the memory of a device.
///
/// # Errors
/// [`DeviceError::NotAllocated`] where memory is not there, [`DeviceError::Occupied`] where it is
/// there already, [`DeviceError::OutOfMemory`].
pub(crate) fn apply(change: &Change, device: &mut EmbeddedGpu) -> Result<(), DeviceError> {
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
    /// Adds a change before dispatch number `index`, after those that are there already. The
    /// number of dispatches as the index means: after the last.
    pub fn add(&mut self, index: usize, change: Change) {
        let before = Arc::make_mut(&mut self.before);
        if before.len() <= index {
            before.resize_with(index + 1, Vec::new);
        }
        before[index].push(change);
    }

    /// The changes between dispatch number `index` and the one before.
    pub fn before(&self, index: usize) -> &[Change] {
        self.before.get(index).map_or(&[], Vec::as_slice)
    }

    /// Memory that is mapped at any time.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (Address, u64)> {
        self.before.iter().flatten().filter_map(|change| match change {
            Change::Map { address, bytes } => Some((*address, *bytes)),
            _ => None,
        })
    }
}
