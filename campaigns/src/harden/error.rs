//! Errors of hardening a program.

use crate::platform::other_platform::OtherPlatformError;
use flipwave_device::DeviceError;
use flipwave_harden::HardenError;

/// Errors returned when a program cannot be hardened.
#[derive(Debug, thiserror::Error)]
pub enum HardeningError {
    /// The workload is an application or a capture.
    #[error(
        "hardening requires a workload of kernels, `kernel` or `dispatches`, because it replaces their code"
    )]
    Application,
    /// The program contains proxy instructions.
    #[error(
        "hardening does not support proxy instructions, but the campaign file has `instructions`"
    )]
    Emulated,
    /// The campaign has a detector.
    #[error("hardening does not support detectors, but the campaign file has `detector`")]
    Detector,
    /// The faults depend on the outcomes of earlier faults.
    #[error(
        "hardening injects the same faults into each version, so faults must not depend on outcomes: use \
         `count`, `margin` or `exhaustive`, without `until` and `allocation: {{optimal: ...}}`"
    )]
    Drawn,
    /// A budget is invalid.
    #[error(
        "invalid budget {budget}: it limits the instructions executed, relative to the plain program; \
         expected more than 1, for example 1.3"
    )]
    InvalidBudget {
        /// The budget.
        budget: f64,
    },
    /// A budget is given twice.
    #[error("the budget {budget} is given twice")]
    SameBudget {
        /// The budget.
        budget: f64,
    },
    /// No executed instruction can be duplicated.
    #[error(
        "none of the instructions that the program executes can be duplicated: they are stores, atomic \
         operations, branches, or loads that see what others write"
    )]
    NothingToDuplicate,
    /// No fault in an instruction that can be duplicated caused SDC.
    #[error(
        "none of the campaign's faults in instructions that can be duplicated caused SDC, so there is \
         nothing to protect"
    )]
    NothingToProtect,
    /// A budget is too small to duplicate any instruction.
    #[error(
        "a budget of {budget} is too small to duplicate any instruction; the smallest budget that does is \
         {minimum:.3}"
    )]
    TooSmall {
        /// The budget.
        budget: f64,
        /// The cost of the cheapest version that was tried.
        minimum: f64,
    },
    /// The code cannot be hardened.
    #[error(transparent)]
    Code(#[from] HardenError),
    /// The device cannot load or execute hardened code.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The platform of the target cannot harden code.
    #[error(transparent)]
    Platform(#[from] OtherPlatformError),
    /// Hardened code has other outputs than the plain code.
    #[error(
        "output `{output}` of the hardened program differs from the plain program without a fault (this is \
         a bug of Flipwave, or the results of the program depend on the timing of its waves)"
    )]
    Output {
        /// Name of the output; [`flipwave_harden::DETECTED`] if a comparison found a difference.
        output: String,
    },
    /// Hardened and plain code execute differently.
    #[error("plain and hardened code diverge in kernel `{kernel}`: {difference}")]
    Diverged {
        /// Name of the kernel.
        kernel: String,
        /// The first difference.
        difference: String,
    },
    /// An injection has another fault site in the hardened program.
    #[error(
        "injection {index} has another fault site in the hardened program than in the plain program: the \
         instructions executed depend on the timing of its waves"
    )]
    OtherFault {
        /// Index of the injection.
        index: u64,
    },
    /// Results cannot be read.
    #[error("{file}: {reason}")]
    Rows {
        /// The table.
        file: String,
        /// Cause.
        reason: String,
    },
}
