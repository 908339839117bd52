//! Tools on an application's kernels.

mod entry;
mod measuring;
mod observing;
mod output;
mod session;

pub use session::{ToolName, ToolPath, ToolSession};

pub(crate) use observing::observing;
pub(crate) use session::{TOOLS, tools_environment};
