//! The tables of tools from inside of the embedded GPU, which executes code as it is and knows
//! nothing of hooks: what hooks are held against.

mod accesses;
mod executions;

pub use accesses::ObservedAccesses;
pub use executions::ObservedExecutions;

use super::{Options, Tool, ToolScope, WavePosition};
use flipwave_device::WaveId;
use flipwave_sim::Observer;

/// A tool whose table can be had without hooks, too.
pub trait Observed: Tool {
    /// Sees one dispatch.
    type Observer: Observer + Send;

    /// An observer that has seen nothing.
    fn observer(options: &Options) -> Self::Observer;

    /// The table of the dispatch that was seen: what [`Tool::rows`] gives. Records are in the
    /// order in which waves came to them; with hooks, whose instructions count as well, waves take
    /// turns at other places, so that only records of the same wave are in the same order.
    fn observed(scope: &ToolScope<'_>, seen: &Self::Observer) -> Vec<Self::Row>;

    /// How many records found no place, as [`Tool::lost`].
    fn unrecorded(seen: &Self::Observer) -> u64 {
        let _ = seen;
        0
    }
}

impl From<WaveId> for WavePosition {
    fn from(id: WaveId) -> WavePosition {
        let [workgroup_x, workgroup_y, workgroup_z] = id.workgroup;
        WavePosition { workgroup_x, workgroup_y, workgroup_z, wave: id.wave }
    }
}
