//! Addresses, and identifiers of waves and code objects.

use std::fmt;

/// An address in the GPU's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Three-dimensional size or position; unused dimensions are 1 (size) or 0 (position).
pub type Dim3 = [u32; 3];

/// Identifier of a wave within a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaveId {
    /// Position of the workgroup in the grid.
    pub workgroup: Dim3,
    /// Index of the wave in its workgroup.
    pub wave: u32,
}

impl fmt::Display for WaveId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(f, "workgroup {x},{y},{z} wave {}", self.wave)
    }
}

/// Identifier of a code object loaded on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId(pub u32);
