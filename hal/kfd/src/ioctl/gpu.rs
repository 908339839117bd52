//! Numbers of GPUs.

use super::error::Errno;
use crate::machine::Machine;
use crate::store::Store;
use std::sync::Arc;

/// Difference between a GPU's `gpu_id` and its node.
pub const GPU_ID: u32 = 0x1000;
/// Minor number of the first render node.
pub const FIRST_RENDER_MINOR: u32 = 128;

/// Node of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GpuNode(pub u32);

impl GpuNode {
    /// The `gpu_id` that programs pass in calls, which is never 0.
    pub fn id(self) -> u32 {
        GPU_ID + self.0
    }

    /// Bit of the node in a mask of nodes.
    pub fn bit(self) -> u64 {
        1 << self.0
    }

    /// Backing store of the GPU's memory.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there is no such GPU.
    pub fn store(self, machine: &Machine) -> Result<&Arc<Store>, Errno> {
        machine.store(self.0).ok_or(Errno::INVALID)
    }
}
