//! The driver as a process has it.

use super::buffers::Buffers;
use super::error::Errno;
use super::files::SharedFiles;
use super::management::Listeners;
use super::objects::Objects;
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
}

/// The machine, and what a process has got of it.
pub struct Process {
    /// The machine.
    pub machine: Arc<Machine>,
    /// Memory that has handles.
    pub buffers: Buffers,
    /// Memory that has files.
    pub files: SharedFiles,
    /// Memory that render nodes have handles for.
    pub objects: Objects,
    /// Files that say what happens to GPUs.
    pub listeners: Listeners,
}

impl Process {
    /// One that has nothing yet.
    pub fn new(machine: Arc<Machine>) -> Process {
        let (buffers, files, objects, listeners) = Default::default();
        Process { machine, buffers, files, objects, listeners }
    }

    /// The GPU that a program means by a number.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there is none.
    pub fn gpu(&self, id: u32) -> Result<GpuNode, Errno> {
        let node = id.checked_sub(GPU_ID).filter(|node| self.machine.is_gpu(*node));
        node.map(GpuNode).ok_or(Errno::INVALID)
    }

    /// The memory of a GPU.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there is none.
    pub fn store(&self, gpu: GpuNode) -> Result<&Arc<Store>, Errno> {
        self.machine.store(gpu.0).ok_or(Errno::INVALID)
    }
}
