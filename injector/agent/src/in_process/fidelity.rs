//! Tracks the fidelity of executed operations and reports it at the end of each dispatch, so that nothing
//! is lost if the application ends abnormally.

use super::reporting::{report_event, report_fault};
use crate::report::Event;
use flipwave_device::{Completion, DeviceError};
use flipwave_injector::FidelityRecord;
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, FidelityCheck, Progress, Unobserved};
use std::collections::HashMap;
use std::sync::Arc;

/// DispatchDriver that executes dispatches and tracks their fidelity.
#[derive(Default)]
pub struct FidelityDriver {
    /// The kernel of the current dispatch; empty for runtime kernels.
    kernel: Arc<str>,
    /// The node of the current dispatch's GPU.
    node: u32,
    /// Tracking state of each GPU, by its node number. GPUs have separate code and memory.
    checks: HashMap<u32, FidelityCheck>,
}

impl FidelityDriver {
    /// Tracking state of the current GPU.
    fn check(&mut self) -> &mut FidelityCheck {
        self.checks.entry(self.node).or_default()
    }
}

impl DispatchDriver for FidelityDriver {
    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        self.node = dispatch.node;
        let kernel = dispatch.kernel.as_ref();
        self.kernel = kernel.map_or_else(Arc::default, |kernel| kernel.name.clone());
        Ok(())
    }

    fn start(&mut self, gpu: &EmbeddedGpu, execution: &Execution) -> Result<(), DeviceError> {
        let kernel = Arc::clone(&self.kernel);
        gpu.begin_fidelity(&kernel, execution, self.check());
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance_with_fidelity(execution, &mut Unobserved, self.check(), until)
    }

    fn end(
        &mut self,
        _: &Machine,
        gpu: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        let fidelity = gpu.fidelity(self.check());
        report_event(&Event::Fidelity(FidelityRecord::of(&fidelity)));
        if let Completion::Faulted(fault) = completion {
            report_fault(gpu, dispatch, fault);
        }
        Ok(())
    }
}
