//! Tables of tools from observers inside the embedded GPU, which executes the original code. They are the
//! reference that the tables from hooks are tested against.

mod accesses;
mod executions;

pub use accesses::ObservedAccesses;
pub use executions::ObservedExecutions;

use super::{Options, Tool, ToolScope, WavePosition};
use flipwave_device::WaveId;
use flipwave_sim::Observer;

/// A tool whose table can also be built without hooks.
pub trait ObservableTool: Tool {
    /// The observer of one dispatch.
    type Observer: Observer + Send;

    /// Creates an observer for a dispatch.
    fn observer(options: &Options) -> Self::Observer;

    /// Builds the table of the observed dispatch, with the rows of [`Tool::rows`]. Records are in the order
    /// in which waves executed them. With hooks, whose instructions also count for scheduling, waves
    /// alternate at different points, so only records of the same wave are in the same order.
    fn observed_rows(scope: &ToolScope<'_>, observer: &Self::Observer) -> Vec<Self::Row>;

    /// The number of records missing because the record buffer was full, as [`Tool::lost_records`].
    fn lost_observations(observer: &Self::Observer) -> u64 {
        let _ = observer;
        0
    }
}

impl From<WaveId> for WavePosition {
    fn from(id: WaveId) -> WavePosition {
        let [workgroup_x, workgroup_y, workgroup_z] = id.workgroup;
        WavePosition { workgroup_x, workgroup_y, workgroup_z, wave: id.wave }
    }
}
