//! A program ready to run: a device with code and data in place, the launches, the outputs.

use flipwave_device::{Address, DeviceError, DeviceFault, Dispatch, Statistics};
use flipwave_sim::EmbeddedGpu;

/// A prepared workload. Each run starts from a clone of the device, so runs cannot see each
/// other.
#[derive(Clone)]
pub struct Workload {
    /// The device with code objects loaded and buffers filled.
    pub device: EmbeddedGpu,
    /// What to launch, in order.
    pub dispatches: Vec<Dispatch>,
    /// The memory that is compared afterwards.
    pub outputs: Vec<Output>,
}

/// A memory range that holds results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The buffer's name.
    pub name: String,
    /// Where it starts.
    pub address: Address,
    /// Its length in bytes.
    pub bytes: usize,
}

/// The fault-free run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// Content of each output afterwards, in the order of [`Workload::outputs`].
    pub outputs: Vec<Vec<u8>>,
    /// What each dispatch executed.
    pub statistics: Vec<Statistics>,
}

/// A golden run that did not complete: the workload itself is at fault, or the embedded GPU has
/// a gap.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// The device ended a dispatch.
    #[error("the fault-free run failed in dispatch {dispatch} (kernel `{kernel}`): {fault}")]
    Faulted {
        /// Index of the dispatch.
        dispatch: usize,
        /// Its kernel.
        kernel: String,
        /// What happened.
        fault: DeviceFault,
    },
    /// The device refused a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
