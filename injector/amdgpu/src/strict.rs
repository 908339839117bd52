//! Golden runs on the strict level, which reports violations of the hardware's rules.

use flipwave_device::DeviceError;
use flipwave_injector::{Golden, GoldenError, Workload};
use flipwave_sim::EmbeddedGpu;
use flipwave_sim::strict::{StrictOptions, Violation};

/// Runs a workload without a fault and reports violations of the hardware's rules.
///
/// # Errors
/// [`GoldenError`] if a dispatch does not complete, or if the workload's device is not an AMD GPU.
pub fn golden_strict(
    workload: &Workload,
    options: StrictOptions,
) -> Result<(Golden, Vec<Violation>), GoldenError> {
    let mut violations = Vec::new();
    let golden = workload.run_fault_free(|_, device, dispatch| {
        let other = || DeviceError::Internal("strict checks exist only for AMD GPUs".into());
        let device = device.downcast_mut::<EmbeddedGpu>().ok_or_else(other)?;
        let mut execution = device.begin(dispatch)?;
        let mut check = device.begin_check(&execution, options)?;
        let (kernel, cancellation) = (&dispatch.kernel, &workload.cancellation);
        let end = cancellation.run_to_end(kernel, &mut execution, |execution, until| {
            device.advance_checked(execution, &mut check, until)
        })?;
        violations.extend(device.violations(check));
        Ok(end)
    })?;
    Ok((golden, violations))
}
