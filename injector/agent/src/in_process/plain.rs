//! Executes dispatches without further tasks.

use super::reporting::report_fault;
use flipwave_device::{Completion, DeviceError};
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};
use std::num::NonZeroUsize;

/// DispatchDriver that only executes dispatches.
pub struct PlainDriver {
    /// The maximum number of threads for a dispatch.
    pub threads: NonZeroUsize,
    /// Uses several threads even if results depend on the order of workgroups.
    pub any_order: bool,
    /// Reports dispatches that a fault stops.
    pub reports_faults: bool,
    /// `true` if hooks in the kernels inject a fault.
    pub injects: bool,
    /// `true` if the current dispatch uses global wave sync, which needs a single thread.
    pub is_cooperative: bool,
}

impl Default for PlainDriver {
    /// A driver that uses one thread, so that the order of execution is always the same.
    fn default() -> PlainDriver {
        PlainDriver {
            threads: NonZeroUsize::MIN,
            any_order: false,
            reports_faults: true,
            injects: false,
            is_cooperative: false,
        }
    }
}

impl DispatchDriver for PlainDriver {
    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        self.is_cooperative = dispatch.has_global_sync;
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        if self.threads == NonZeroUsize::MIN || self.is_cooperative {
            gpu.advance(execution, &mut Unobserved, until)
        } else if self.any_order {
            gpu.finish_parallel(execution, self.threads).map(Progress::Ended)
        } else {
            gpu.advance_divided(execution, self.threads, until)
        }
    }

    fn injects(&self) -> bool {
        self.injects
    }

    fn end(
        &mut self,
        _: &Machine,
        gpu: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        if let Completion::Faulted(fault) = completion
            && self.reports_faults
        {
            report_fault(gpu, dispatch, fault);
        }
        Ok(())
    }
}
