//! What the rows of tables are about.

use flipwave_isa::Pc;
use serde::{Serialize, Serializer};

/// The columns that say which dispatch a row is of.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DispatchColumns<'a> {
    /// Its number, from 0.
    pub dispatch: usize,
    /// Its kernel.
    pub kernel: &'a str,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct InstPlace {
    /// The kernel or device function that it belongs to.
    pub function: String,
    /// Its address in the code object as it was.
    #[serde(serialize_with = "hexadecimal")]
    pub pc: Pc,
    /// Its text.
    pub instruction: String,
}

/// A wave of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct WavePosition {
    /// Position of its workgroup in the grid.
    pub workgroup_x: u32,
    /// The same in the second dimension.
    pub workgroup_y: u32,
    /// The same in the third.
    pub workgroup_z: u32,
    /// Its number in the workgroup.
    pub wave: u32,
}

fn hexadecimal<S: Serializer>(pc: &Pc, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pc)
}
