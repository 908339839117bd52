//! A program whatever runs it: what it launches, and what it leaves.

use crate::workload::change::Changes;
use flipwave_device::{Address, Dispatch};

/// A program whose code and data are in place on some device. Its addresses are that device's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// What to launch, in order.
    pub dispatches: Vec<Dispatch>,
    /// What happens to memory before each dispatch, and after the last.
    pub changes: Changes,
    /// The memory of the program's data: faults strike it under its number. It is there whenever a
    /// kernel runs.
    pub buffers: Vec<Buffer>,
    /// The memory that is compared afterwards. It is there after the last change.
    pub outputs: Vec<Buffer>,
}

/// A memory range of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The buffer's name.
    pub name: String,
    /// Where it starts.
    pub address: Address,
    /// Its length in bytes.
    pub bytes: usize,
}
