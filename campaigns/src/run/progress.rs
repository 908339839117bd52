//! Reports of what a campaign is doing.

use flipwave_analysis::{Look, Outcome};

/// A step of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Compiling and loading kernels, filling buffers.
    Preparing,
    /// The fault-free run, and counting what can be hit.
    Golden,
    /// The fault-free run again, and finding in it the sites of the faults drawn.
    Planning,
    /// Injecting faults whose outcomes are known.
    SelfTest,
    /// Injecting this many faults.
    Injecting {
        /// How many.
        count: u64,
    },
}

/// Receives reports of what a campaign is doing. All calls come from one thread.
pub trait Progress {
    /// The campaign of a variant begins, one of `count`; what follows is of that.
    fn variant(&mut self, _name: &str, _number: usize, _count: usize) {}

    /// A step begins.
    fn phase(&mut self, phase: Phase);

    /// An injection is done and stands in the results.
    fn injected(&mut self, outcome: Outcome);

    /// The campaign has looked at what is known so far.
    fn look(&mut self, look: &Look);

    /// Something that people should be aware of in what results will mean.
    fn warn(&mut self, text: &str);
}

/// Reports to nobody.
pub struct Silent;

impl Progress for Silent {
    fn phase(&mut self, _: Phase) {}

    fn injected(&mut self, _: Outcome) {}

    fn look(&mut self, _: &Look) {}

    fn warn(&mut self, _: &str) {}
}
