//! The driver as a process has it.

use super::buffers::Buffers;
use super::error::Errno;
use super::files::SharedFiles;
use super::gpu::{GPU_ID, GpuNode};
use super::management::Listeners;
use super::objects::Objects;
use crate::machine::Machine;
use std::sync::Arc;

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
}
