//! Executes dispatches at the strict level and reports violations of hardware rules.

use super::reporting::{report_event, report_fault};
use crate::report::Event;
use flipwave_device::{Completion, DeviceError};
use flipwave_isa::Pc;
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::strict::{Rule, StrictOptions};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, StrictCheck, Unobserved};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// DispatchDriver that checks dispatches at the strict level.
pub struct StrictDriver {
    options: StrictOptions,
    /// `true` unless the current dispatch is a runtime kernel; those are hand-written assembly and not
    /// part of the application.
    is_checked: bool,
    check: Option<StrictCheck>,
    reported: Reported,
}

/// Rule, PC and kernel of the violations that the drivers of all GPUs have reported, so that each is
/// reported once.
pub type Reported = Arc<Mutex<HashSet<(Rule, Pc, String)>>>;

impl StrictDriver {
    /// Creates a driver that checks with these options.
    pub fn new(options: StrictOptions, reported: Reported) -> StrictDriver {
        StrictDriver { options, is_checked: false, check: None, reported }
    }
}

impl DispatchDriver for StrictDriver {
    fn begin(&mut self, _: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        self.is_checked = dispatch.kernel.is_some();
        Ok(())
    }

    fn start(&mut self, gpu: &EmbeddedGpu, execution: &Execution) -> Result<(), DeviceError> {
        let check = || gpu.begin_check(execution, self.options);
        self.check = self.is_checked.then(check).transpose()?;
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        match &mut self.check {
            Some(check) => gpu.advance_checked(execution, check, until),
            None => gpu.advance(execution, &mut Unobserved, until),
        }
    }

    fn end(
        &mut self,
        _: &Machine,
        gpu: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        if let Some(check) = self.check.take() {
            let kernel = dispatch.kernel.as_ref().map_or("", |kernel| &kernel.name);
            let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
            for violation in gpu.violations(check) {
                let text = format!("kernel {kernel}: {violation}");
                // The text is not a suitable key: it has the number of occurrences.
                let (rule, pc) = (violation.finding.rule(), violation.place.pc);
                if reported.insert((rule, pc, kernel.to_owned())) {
                    report_event(&Event::Violation { text });
                }
            }
        }
        if let Completion::Faulted(fault) = completion {
            report_fault(gpu, dispatch, fault);
        }
        Ok(())
    }
}
