//! Amount of information about faults.

/// Amount of information that a machine collects when a dispatch faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultDetail {
    /// The cause, and a [`FaultContext`](flipwave_device::FaultContext) if the machine knows it.
    #[default]
    Context,
    /// Only the cause, for many runs whose faults are counted, not shown.
    Cause,
}
