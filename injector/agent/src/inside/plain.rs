//! Executes, and nothing else.

use super::report_fault;
use flipwave_device::{Completion, DeviceError};
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};
use std::num::NonZeroUsize;

pub struct Plain {
    /// How many threads share a dispatch at most.
    pub threads: NonZeroUsize,
    /// Whether they share it even if the order of workgroups leaves something that can be seen.
    pub any_order: bool,
    /// Whether dispatches that the GPU stops are reported.
    pub reports_faults: bool,
    /// Whether the kernels inject a fault themselves.
    pub injects: bool,
    /// Whether the workgroups of the dispatch under way meet at global wave sync, which threads do
    /// not share.
    pub is_cooperative: bool,
}

impl Default for Plain {
    /// On one thread: in the same order each time.
    fn default() -> Plain {
        Plain {
            threads: NonZeroUsize::MIN,
            any_order: false,
            reports_faults: true,
            injects: false,
            is_cooperative: false,
        }
    }
}

impl DispatchDriver for Plain {
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
