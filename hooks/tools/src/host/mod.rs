//! The host side of a tool: its functions `flipwave_instrument`, `flipwave_on_dispatch` and `flipwave_finish`
//! run in a process of their own, which cannot damage anything if they crash or do not return.

mod lines;
mod message;
mod process;
mod program;

pub use message::{Malformed, Reader, Writer};
pub use process::{HostProcess, Request};
pub use program::{
    Callbacks, IncludeFolders, PTX_HEADER, PUSH, Program, compile, parameter_macros,
};

/// The time limit for one request, in seconds: `FLIPWAVE_TOOL_SECONDS`, or a minute.
pub fn seconds() -> u64 {
    let text = std::env::var("FLIPWAVE_TOOL_SECONDS").ok();
    text.and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0).unwrap_or(60)
}

/// The limit of the process's address space, in bytes.
pub const MEMORY: u64 = 16 << 30;
