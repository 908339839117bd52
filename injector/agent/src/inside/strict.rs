//! Executes at the strict level, and reports what breaks the rules of the hardware.

use super::{report_event, report_fault};
use crate::report::Event;
use flipwave_device::{Completion, DeviceError};
use flipwave_isa::Pc;
use flipwave_kfd::{DispatchDriver, KernelDispatch, Machine};
use flipwave_sim::strict::{Rule, StrictOptions};
use flipwave_sim::{EmbeddedGpu, Execution, Progress, StrictCheck, Unobserved};
use std::collections::HashSet;

pub struct Strict {
    options: StrictOptions,
    /// Whether the dispatch is one of a code object: the runtime's own code is hand-written
    /// assembly, and not the application's.
    is_checked: bool,
    check: Option<StrictCheck>,
    /// What was reported already: kernels run often.
    reported: HashSet<(Rule, Pc, String)>,
}

impl Strict {
    /// Reports what is looked for with these options.
    pub fn new(options: StrictOptions) -> Strict {
        Strict { options, is_checked: false, check: None, reported: HashSet::new() }
    }
}

impl DispatchDriver for Strict {
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
            for violation in gpu.violations(check) {
                let text = format!("kernel {kernel}: {violation}");
                // How often is a matter of how far the run is.
                let (rule, pc) = (violation.finding.rule(), violation.place.pc);
                if self.reported.insert((rule, pc, kernel.to_owned())) {
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
