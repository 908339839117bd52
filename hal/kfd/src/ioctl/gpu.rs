//! GPUs as requests name them.

use super::error::Errno;
use crate::machine::Machine;
use crate::store::Store;
use std::sync::Arc;

/// What is added to a node's number to get its GPU's.
pub const GPU_ID: u32 = 0x1000;
/// The number of the first render node.
pub const FIRST_RENDER_MINOR: u32 = 128;

/// The number of a node that is a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuNode(pub u32);

impl GpuNode {
    /// What programs call it in requests: never 0.
    pub fn id(self) -> u32 {
        GPU_ID + self.0
    }

    /// As a bit among those of nodes.
    pub fn bit(self) -> u64 {
        1 << self.0
    }
    /// Its memory.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there is no such GPU.
    pub fn store(self, machine: &Machine) -> Result<&Arc<Store>, Errno> {
        machine.store(self.0).ok_or(Errno::INVALID)
    }
}
