//! What is done with the dispatches of an application besides executing them.

use crate::machine::Machine;
use crate::refusal::Refusal;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Completion, DeviceError, KernelPacket, ModuleId, QueuedPacket};
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::Arc;

/// A kernel dispatch of the application, or of the runtime itself.
#[derive(Clone, Debug)]
pub struct KernelDispatch {
    /// The GPU's node.
    pub node: u32,
    /// The queue, by the order in which queues were made.
    pub queue: u64,
    /// The packet.
    pub packet: KernelPacket,
    /// Where it is.
    pub queued: QueuedPacket,
    /// The code, as it is known to the device.
    pub module: ModuleId,
    /// The range in which the application has submitted it, if it has said so.
    pub range: Option<Arc<str>>,
    /// Whether it may use global wave sync, as kernels of cooperative launches do.
    pub has_global_sync: bool,
    /// The kernel; nothing for code that the runtime brings without a code object, with which it
    /// copies and fills.
    pub kernel: Option<DispatchedKernel>,
}

/// A kernel of a code object.
#[derive(Clone, Debug)]
pub struct DispatchedKernel {
    /// The dispatch's number among those of kernels from code objects, in the order in which they
    /// are executed.
    pub number: u32,
    /// Its name; empty if the code object does not say it.
    pub name: Arc<str>,
    /// Its code object.
    pub code_object: Arc<CodeObject>,
    /// What was added to the code object's virtual addresses.
    pub bias: u64,
}

/// Sees what engines copy.
pub trait CopyWatch: Send + Sync {
    /// Bytes that the GPU of a node may access are about to be copied.
    fn copies(&self, machine: &Machine, node: u32, from: Address, to: Address, bytes: u64);
}

/// Runs dispatches. All calls come from one thread.
pub trait Driver: Send {
    /// A dispatch is made ready.
    ///
    /// # Errors
    /// The tool's own; the application is ended.
    fn begin(&mut self, _: &Machine, _: &KernelDispatch) -> Result<(), DeviceError> {
        Ok(())
    }

    /// The dispatch is ready, nothing of it is executed.
    ///
    /// # Errors
    /// As [`Driver::begin`].
    fn start(&mut self, _: &EmbeddedGpu, _: &Execution) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Carries the dispatch on until it has executed `until` wave instructions in all.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError>;

    /// Wave instructions after which the dispatch is ended as hung.
    fn limit(&self, _: &KernelDispatch) -> u64 {
        u64::MAX
    }

    /// Whether a fault is injected into the application, so that what the decoder does not support
    /// is the fault's doing ([`flipwave_device::FaultCause::in_faulty_run`]).
    fn injects(&self) -> bool {
        false
    }

    /// Whether a dispatch is ended as hung when all its waves wait for each other, before the limit.
    fn ends_stalls(&self) -> bool {
        true
    }

    /// The dispatch has ended. The runtime learns of it when this returns.
    ///
    /// # Errors
    /// As [`Driver::begin`].
    fn end(
        &mut self,
        _: &Machine,
        _: &EmbeddedGpu,
        _: &KernelDispatch,
        _: &Completion,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    /// The dispatch was made ready and does not end: its queue is gone, or its packet was changed and
    /// is refused.
    fn abandon(&mut self) {}

    /// A packet of a queue, both by their numbers, is not executed, or not ended as it should be;
    /// no packet is known where the queue itself is not to be read. Nothing of the queue is executed
    /// any more. The runtime learns of it when this returns.
    fn refuse(&mut self, _queue: u64, _packet: Option<u64>, _: &Refusal) {}
}
