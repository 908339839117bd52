//! A program independent of the device that runs it: launches and outputs.

use crate::workload::change::Changes;
use flipwave_device::{Address, Dispatch};

/// A program whose code and data are in place on a device. Addresses are those of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Dispatches to launch, in order.
    pub dispatches: Vec<Dispatch>,
    /// Memory changes before each dispatch and after the last.
    pub changes: Changes,
    /// Memory of the program's data, mapped whenever a kernel runs. Fault sites refer to buffers by
    /// index.
    pub buffers: Vec<Buffer>,
    /// Memory compared after the run, mapped after the last change.
    pub outputs: Vec<Buffer>,
}

/// A memory range of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The buffer's name.
    pub name: String,
    /// Start address.
    pub address: Address,
    /// Its length in bytes.
    pub bytes: usize,
}
