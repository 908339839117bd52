//! Instruments or observes an application's kernels with tools.

mod entry;
mod observer_driver;
mod output;
mod record_taker;
mod session;
mod tool_interceptor;

pub use session::{ToolPath, ToolSession};

pub(crate) use observer_driver::observer_drivers;
pub(crate) use output::Output;
pub(crate) use session::{TOOLS, tools_environment};
