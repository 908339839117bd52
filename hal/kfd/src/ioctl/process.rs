//! Per-process state of the driver (`struct kfd_process` of the Linux driver).

use super::buffers::Buffers;
use super::dmabuf::Dmabufs;
use super::error::Errno;
use super::gem::GemObjects;
use super::gpu::{GPU_ID, GpuNode};
use super::smi::SmiClients;
use crate::machine::Machine;
use std::sync::Arc;

/// The machine, and the objects that a process has created.
pub struct Process {
    pub machine: Arc<Machine>,
    pub buffers: Buffers,
    pub dmabufs: Dmabufs,
    pub gem_objects: GemObjects,
    pub smi_clients: SmiClients,
}

impl Process {
    /// Creates the state of a process without any objects.
    pub fn new(machine: Arc<Machine>) -> Process {
        let (buffers, dmabufs, gem_objects, smi_clients) = Default::default();
        Process { machine, buffers, dmabufs, gem_objects, smi_clients }
    }

    /// The GPU with a `gpu_id`.
    ///
    /// # Errors
    /// [`Errno::INVALID`] if there is none.
    pub fn gpu(&self, id: u32) -> Result<GpuNode, Errno> {
        let node = id.checked_sub(GPU_ID).filter(|node| self.machine.is_gpu(*node));
        node.map(GpuNode).ok_or(Errno::INVALID)
    }
}
