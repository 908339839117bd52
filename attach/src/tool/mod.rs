//! Tools on an application's kernels.

mod counting;
mod entry;
mod measuring;
mod output;
mod session;

pub use session::{ToolName, ToolPath, ToolSession};

pub(crate) use counting::Counting;
pub(crate) use session::{TOOLS, tools_environment};
