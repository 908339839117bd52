//! What is done with the dispatches of an application besides executing them.

use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, DeviceError, KernelPacket, ModuleId};
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::Arc;

/// A kernel dispatch of the application, or of the runtime itself.
#[derive(Clone, Debug)]
pub struct KernelDispatch {
    /// Its number among the dispatches of kernels from code objects, in the order in which they
    /// are executed; nothing for code that the runtime brings without a code object, with which it
    /// copies and fills.
    pub number: Option<u32>,
    /// The GPU, from 0.
    pub gpu: u32,
    /// The queue, by the order in which queues were made.
    pub queue: u64,
    /// The packet.
    pub packet: KernelPacket,
    /// The code, as it is known to the device.
    pub module: ModuleId,
    /// The kernel's name and its code object, where there is one.
    pub kernel: Option<(Arc<str>, Arc<CodeObject>)>,
}

/// Runs dispatches. All calls come from one thread.
pub trait Driver: Send {
    /// A dispatch is made ready.
    ///
    /// # Errors
    /// The tool's own; the application is ended.
    fn begin(&mut self, _: &mut EmbeddedGpu, _: &KernelDispatch) -> Result<(), DeviceError> {
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

    /// The dispatch has ended. The runtime learns of it when this returns.
    ///
    /// # Errors
    /// The tool's own; the application is ended.
    fn end(
        &mut self,
        _: &mut EmbeddedGpu,
        _: &KernelDispatch,
        _: &Completion,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Something went wrong that no GPU does: the application cannot go on.
    fn fail(&mut self, error: &DeviceError);
}
