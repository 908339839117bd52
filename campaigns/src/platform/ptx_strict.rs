//! The strict level of PTX.

use super::strict::{RuleViolation, StrictError, StrictMethod};
use flipwave_device::DeviceError;
use flipwave_injector::Workload;
use flipwave_machine::{Machine, Simulator};
use flipwave_ptx_sim::{PtxGpu, StrictCheck};
use flipwave_sim::strict::StrictOptions;

/// The strict level of PTX.
pub(super) struct PtxStrict;

impl StrictMethod for PtxStrict {
    fn golden(
        &self,
        workload: &Workload,
        options: StrictOptions,
    ) -> Result<Vec<RuleViolation>, StrictError> {
        if options.races {
            return Err(StrictError::NoRaces);
        }
        let mut violations = Vec::new();
        workload.run_fault_free(|_, device: &mut Simulator, dispatch| {
            let other = || DeviceError::Internal("the machine belongs to another platform".into());
            let gpu: &mut PtxGpu = device.downcast_mut().ok_or_else(other)?;
            let mut execution = gpu.begin(dispatch)?;
            let mut check = StrictCheck::default();
            let (kernel, cancellation) = (&dispatch.kernel, &workload.cancellation);
            let end = cancellation.run_to_end(kernel, &mut execution, |execution, until| {
                gpu.advance_checked(execution, &mut check, until)
            })?;
            violations.extend(check.into_violations().iter().map(|violation| RuleViolation {
                rule: violation.rule.to_string(),
                pc: violation.pc.to_string(),
                report: violation.to_string(),
            }));
            Ok(end)
        })?;
        Ok(violations)
    }
}
