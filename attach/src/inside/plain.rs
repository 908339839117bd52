//! Executes, and nothing else.

use super::report_fault;
use flipwave_device::{Completion, DeviceError};
use flipwave_kfd::{Driver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};
use std::num::NonZeroUsize;

pub struct Plain {
    /// How many threads share a dispatch; with one, it is executed in the same order each time.
    threads: NonZeroUsize,
    /// Whether dispatches that the GPU stops are reported.
    reports_faults: bool,
    /// Whether the kernels inject a fault themselves.
    injects: bool,
    /// Whether the workgroups of the dispatch under way meet at global wave sync, which threads do
    /// not share.
    is_cooperative: bool,
}

impl Plain {
    /// Executes on this many threads.
    pub fn new(threads: NonZeroUsize, reports_faults: bool, injects: bool) -> Plain {
        Plain { threads, reports_faults, injects, is_cooperative: false }
    }
}

impl Driver for Plain {
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
            return gpu.advance(execution, &mut Unobserved, until);
        }
        gpu.finish_parallel(execution, self.threads).map(Progress::Ended)
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
