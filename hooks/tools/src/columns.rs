//! Columns that several tables share: dispatch, instruction, and wave.

use flipwave_isa::Pc;
use serde::{Serialize, Serializer};

/// The columns that identify the dispatch of a row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DispatchColumns<'a> {
    /// The number of the dispatch, starting at 0.
    pub dispatch: usize,
    /// The dispatched kernel.
    pub kernel: &'a str,
}

/// The columns that identify an instruction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct InstLocation {
    /// The kernel or device function that contains the instruction.
    pub function: String,
    /// The address of the instruction in the original code object.
    #[serde(serialize_with = "hexadecimal")]
    pub pc: Pc,
    /// The instruction in assembly syntax.
    pub instruction: String,
}

/// The columns that identify a wave of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct WavePosition {
    /// Position of the workgroup in the first dimension of the grid.
    pub workgroup_x: u32,
    /// Position of the workgroup in the second dimension.
    pub workgroup_y: u32,
    /// Position of the workgroup in the third dimension.
    pub workgroup_z: u32,
    /// Number of the wave in the workgroup.
    pub wave: u32,
}

fn hexadecimal<S: Serializer>(pc: &Pc, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pc)
}
