//! Progress reports of campaigns.

use flipwave_analysis::{Look, Outcome};

/// A step of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Compiling and loading kernels, and filling buffers.
    Preparing,
    /// The golden run with profiling.
    Golden,
    /// The second golden run, which resolves the drawn faults.
    Planning,
    /// Injecting faults with known outcomes.
    SelfTest,
    /// Injecting the faults of the plan.
    Injecting {
        /// Number of faults.
        count: u64,
    },
}

/// Receiver of progress reports. All calls come from one thread.
pub trait Progress {
    /// Called when the campaign of variant `number` of `count` begins. Later reports are about this
    /// variant.
    fn variant(&mut self, _name: &str, _number: usize, _count: usize) {}

    /// Called when a step begins.
    fn phase(&mut self, phase: Phase);

    /// Called when the row of an injection has been written.
    fn injected(&mut self, outcome: Outcome);

    /// Called after an interim analysis.
    fn look(&mut self, look: &Look);

    /// Called with a warning about the validity of the results.
    fn warn(&mut self, text: &str);
}

/// A receiver that discards all reports.
pub struct Silent;

impl Progress for Silent {
    fn phase(&mut self, _: Phase) {}

    fn injected(&mut self, _: Outcome) {}

    fn look(&mut self, _: &Look) {}

    fn warn(&mut self, _: &str) {}
}
