//! Follows how exact what is executed is, and reports it of each dispatch when it ends: whatever
//! becomes of the application, what it waited for is reported.

use super::{report_event, report_fault};
use crate::report::Event;
use flipwave_device::{Completion, DeviceError};
use flipwave_injector::FidelityRecord;
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, FidelityCheck, Progress, Unobserved};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Default)]
pub struct Fidelity {
    /// The kernel of the dispatch under way; empty for the runtime's own.
    kernel: Arc<str>,
    /// The node of its GPU.
    node: u32,
    /// What follows each GPU, by node: code and what is in memory are followed on each by itself.
    checks: HashMap<u32, FidelityCheck>,
}

impl Fidelity {
    /// What follows the GPU of the dispatch under way.
    fn check(&mut self) -> &mut FidelityCheck {
        self.checks.entry(self.node).or_default()
    }
}

impl DispatchDriver for Fidelity {
    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        self.node = dispatch.node;
        self.kernel = dispatch.kernel.as_ref().map_or_else(Arc::default, |own| own.name.clone());
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
