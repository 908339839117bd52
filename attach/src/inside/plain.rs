//! Executes, and nothing else.

use super::{failed, tell_fault};
use flipwave_device::{Completion, DeviceError};
use flipwave_kfd::{Driver, KernelDispatch, Machine};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, Unobserved};

pub struct Plain;

impl Driver for Plain {
    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance(execution, &mut Unobserved, until)
    }

    fn end(
        &mut self,
        _: &Machine,
        _: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        if let Completion::Faulted(fault) = completion {
            tell_fault(dispatch, fault);
        }
        Ok(())
    }

    fn fail(&mut self, error: &DeviceError) {
        failed(error)
    }
}
