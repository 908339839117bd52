//! What runs inside of an application, and how it gets there: a library that is loaded when the
//! application opens the kernel driver of AMD GPUs, and in which it finds embedded ones.

mod codes;
mod devices;
mod hooked;
mod inside;
mod launch;
mod processes;
mod reaper;
mod report;
mod run_files;
mod session;
mod tool;

pub use devices::DevicesError;
pub use flipwave_kfd::processors;
pub use flipwave_process_tree::{ProcessPath, Table};
pub use hooked::{HookPlan, HookedSession, PlannedCode};
pub use launch::{Asked, Environment, Library, LibraryError, end_as, exit_code, run_application};
pub use processes::{ProcessRecord, Processes};
pub use reaper::Family;
pub use report::{Event, Follower, Reported, read_report};
pub use run_files::RunFiles;
pub use session::{Session, StruckProcess, Task};
pub use tool::{ToolName, ToolPath, ToolSession};
