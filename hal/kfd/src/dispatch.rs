//! Interface to the code that runs an application's dispatches: plain, or observed by a tool.

use crate::machine::Machine;
use crate::refusal::Refusal;
use flipwave_codeobj::CodeObject;
use flipwave_device::{
    Address, Completion, DeviceError, KernelPacket, ModuleId, QueuedPacket, kernel_matches,
};
use flipwave_isa::Target;
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::Arc;

/// A GPU of a machine.
pub struct Board {
    /// The GPU's processor.
    pub target: Target,
    /// Drives the GPU's dispatches.
    pub driver: Box<dyn DispatchDriver>,
    /// Kernels that have a number and a name for the driver.
    pub counted: CountedKernels,
}

/// Selects kernels of a GPU. All others are executed like kernels of the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CountedKernels {
    /// All kernels.
    #[default]
    All,
    /// All kernels except those that match a [pattern](kernel_matches).
    Except(Vec<String>),
    /// No kernels.
    None,
}

impl CountedKernels {
    /// Returns `true` if a kernel is selected.
    pub fn contains(&self, kernel: &str) -> bool {
        match self {
            CountedKernels::All => true,
            CountedKernels::Except(patterns) => {
                !patterns.iter().any(|pattern| kernel_matches(kernel, pattern))
            }
            CountedKernels::None => false,
        }
    }
}

/// A kernel dispatch of the application, or of the runtime itself.
#[derive(Clone, Debug)]
pub struct KernelDispatch {
    /// Node of the GPU.
    pub node: u32,
    /// Number of the queue, counted from 1 in order of creation.
    pub queue: u64,
    /// The dispatch packet.
    pub packet: KernelPacket,
    /// Addresses of the packet and its queue.
    pub queued: QueuedPacket,
    /// The device's handle of the code.
    pub module: ModuleId,
    /// Named range (ROCTX) in which the application submitted the dispatch.
    pub range: Option<Arc<str>>,
    /// `true` if the kernel may use global wave sync, as kernels of cooperative launches do.
    pub has_global_sync: bool,
    /// The kernel; `None` for the runtime's built-in copy and fill kernels, which have no code
    /// object, and for kernels that are not counted.
    pub kernel: Option<DispatchedKernel>,
}

/// A kernel of a code object.
#[derive(Clone, Debug)]
pub struct DispatchedKernel {
    /// Number of the dispatch, in order of execution. Only kernels of code objects are counted.
    pub number: u32,
    /// Name of the kernel; empty if the code object does not name it.
    pub name: Arc<str>,
    /// Code object of the kernel.
    pub code_object: Arc<CodeObject>,
    /// Load bias: the difference between load address and ELF virtual address.
    pub bias: u64,
}

/// Observes the copies of the copy engine.
pub trait CopyObserver: Send + Sync {
    /// Called before `bytes` bytes are copied, which the GPU of `node` may access.
    fn before_copy(&self, machine: &Machine, node: u32, from: Address, to: Address, bytes: u64);
}

/// Drives the execution of a GPU's dispatches, one after another. All calls come from one thread.
pub trait DispatchDriver: Send {
    /// Called while a dispatch is prepared, before its packet is read for the last time.
    ///
    /// # Errors
    /// Errors of the tool; they end the application.
    fn begin(&mut self, _: &Machine, _: &KernelDispatch) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Called when the dispatch is ready and before its first instruction.
    ///
    /// # Errors
    /// As [`DispatchDriver::begin`].
    fn start(&mut self, _: &EmbeddedGpu, _: &Execution) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Continues the dispatch until it has executed `until` wave instructions since its start.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError>;

    /// Number of wave instructions after which the watchdog ends the dispatch as hung.
    fn limit(&self, _: &KernelDispatch) -> u64 {
        u64::MAX
    }

    /// Returns `true` if a fault is injected into the application. An undecodable instruction is
    /// then a result of the fault ([`flipwave_device::FaultCause::in_faulty_run`]).
    fn injects(&self) -> bool {
        false
    }

    /// Returns `true` if a dispatch is ended as hung as soon as all its waves wait for each other,
    /// before the limit.
    fn ends_stalls(&self) -> bool {
        true
    }

    /// Called when the dispatch has ended, before the runtime is notified.
    ///
    /// # Errors
    /// As [`DispatchDriver::begin`].
    fn end(
        &mut self,
        _: &Machine,
        _: &EmbeddedGpu,
        _: &KernelDispatch,
        _: &Completion,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Called instead of [`DispatchDriver::end`] for a dispatch that does not end: its queue was
    /// destroyed, or its packet was changed after [`DispatchDriver::begin`] and is refused.
    fn abandon(&mut self) {}

    /// Called when a packet is not executed, or its completion cannot be signalled, before the
    /// runtime is notified. The queue is stopped. `packet` is `None` if the queue itself cannot be
    /// read.
    fn refuse(&mut self, _queue: u64, _packet: Option<u64>, _: &Refusal) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_kernels_are_not_counted() {
        let except = CountedKernels::Except(vec!["ncclDevKernel*".to_owned()]);
        let kernels = ["_Z20ncclDevKernel_Generic24ncclDevKernelArgsStorage", "_Z4stepPfi"];
        let counted = |selected: &CountedKernels| kernels.map(|kernel| selected.contains(kernel));
        assert_eq!(counted(&except), [false, true]);
        assert_eq!(counted(&CountedKernels::All), [true, true]);
        assert_eq!(counted(&CountedKernels::None), [false, false]);
    }
}
