//! Tracks the fidelity of executed operations and reports it at the end of each dispatch, so that nothing
//! is lost if the application ends abnormally.

use super::reporting::{report_event, report_fault};
use crate::report::Event;
use flipwave_device::{Completion, DeviceError};
use flipwave_injector::FidelityRecord;
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, FidelityCheck, Progress, Unobserved};
use std::sync::Arc;

/// DispatchDriver that executes dispatches and tracks their fidelity.
#[derive(Default)]
pub struct FidelityDriver {
    /// The kernel of the current dispatch; empty for runtime kernels.
    kernel: Arc<str>,
    check: FidelityCheck,
}

impl DispatchDriver for FidelityDriver {
    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        let kernel = dispatch.kernel.as_ref();
        self.kernel = kernel.map_or_else(Arc::default, |kernel| kernel.name.clone());
        Ok(())
    }

    fn start(&mut self, gpu: &EmbeddedGpu, execution: &Execution) -> Result<(), DeviceError> {
        gpu.begin_fidelity(&self.kernel, execution, &mut self.check);
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance_with_fidelity(execution, &mut Unobserved, &mut self.check, until)
    }

    fn end(
        &mut self,
        _: &Machine,
        gpu: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        let fidelity = gpu.fidelity(&mut self.check);
        report_event(&Event::Fidelity(FidelityRecord::of(&fidelity)));
        if let Completion::Faulted(fault) = completion {
            report_fault(gpu, dispatch, fault);
        }
        Ok(())
    }
}
