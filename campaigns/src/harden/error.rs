//! What stands in the way of hardening a program.

use flipwave_harden::HardenError;

/// Why a program is not hardened.
#[derive(Debug, thiserror::Error)]
pub enum HardeningError {
    /// An application or a capture.
    #[error(
        "hardening takes a workload of kernels, `kernel` or `dispatches`: their code is replaced"
    )]
    Application,
    /// A program with instructions that its target lacks.
    #[error(
        "hardening takes a program of the target's own instructions, and this one has `instructions`"
    )]
    Emulated,
    /// Faults that depend on what came of others.
    #[error(
        "the same faults are injected into each version: say how many by `count`, `margin` or \
         `exhaustive`, without `until` and `allocation: {{optimal: ...}}`, by which that depends on \
         outcomes"
    )]
    Drawn,
    /// A budget that is none.
    #[error(
        "{budget} is no budget: it is what the program may execute, and what it executes now is 1; \
         expected more than 1, for instance 1.3"
    )]
    NoBudget {
        /// The budget.
        budget: f64,
    },
    /// A budget that is there twice.
    #[error("the budget {budget} is given twice")]
    SameBudget {
        /// The budget.
        budget: f64,
    },
    /// A program without SDC.
    #[error(
        "none of the campaign's faults in instructions that can be executed twice came to SDC: there is \
         nothing to protect"
    )]
    NothingToProtect,
    /// A budget that buys nothing.
    #[error(
        "a budget of {budget} is too small for anything: the least that protects an instruction is \
         {least:.3}"
    )]
    TooSmall {
        /// The budget.
        budget: f64,
        /// The cost of the cheapest version that was tried.
        least: f64,
    },
    /// The code.
    #[error(transparent)]
    Code(#[from] HardenError),
    /// Hardened code that computes something else.
    #[error(
        "without a fault the hardened program has other contents in `{output}` (this is a defect of \
         Flipwave, or a program that does not do the same when its waves take longer)"
    )]
    Output {
        /// The output; [`flipwave_harden::DETECTED`] where it has counted a difference.
        output: String,
    },
    /// Hardened code that does something else.
    #[error("plain and hardened code do not keep step in kernel `{kernel}`: {difference}")]
    Step {
        /// The kernel.
        kernel: String,
        /// The difference.
        difference: String,
    },
    /// Another fault.
    #[error(
        "injection {index} is another fault in the hardened program than in the plain one: what the \
         program executes depends on how long its waves take"
    )]
    OtherFault {
        /// Its index.
        index: u64,
    },
    /// Results that cannot be read.
    #[error("{file}: {reason}")]
    Rows {
        /// The table.
        file: String,
        /// What is wrong.
        reason: String,
    },
}
