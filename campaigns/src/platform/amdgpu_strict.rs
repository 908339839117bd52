//! The strict level of AMD GPUs.

use super::strict::{RuleViolation, StrictError, StrictMethod};
use flipwave_injector::Workload;
use flipwave_injector_amdgpu::golden_strict;
use flipwave_sim::strict::StrictOptions;

/// The strict level of AMD GPUs.
pub(super) struct AmdgpuStrict;

impl StrictMethod for AmdgpuStrict {
    fn golden(
        &self,
        workload: &Workload,
        options: StrictOptions,
    ) -> Result<Vec<RuleViolation>, StrictError> {
        let (_, violations) = golden_strict(workload, options)?;
        let violations = violations.iter().map(|violation| RuleViolation {
            rule: violation.rule().to_string(),
            pc: violation.place.pc.to_string(),
            report: violation.to_string(),
        });
        Ok(violations.collect())
    }
}
