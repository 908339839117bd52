//! The in-process agent and its launcher.
//!
//! The agent is a shared library that the preload shim loads into an application when it opens the kernel
//! driver of AMD GPUs. It provides the embedded GPUs, injects faults, records captures and runs tools.

mod devices;
mod hook_injection;
mod in_process;
mod instrumented_codes;
mod launch;
mod process_tree;
mod processes;
mod report;
mod run_files;
mod session;
mod tool;
mod versioned_library;

pub use devices::DevicesError;
pub use flipwave_kfd::processors;
pub use flipwave_process_tree::{ProcessPath, Table};
pub use hook_injection::{HookInjectionSession, HookPlan, PlannedCode};
pub use in_process::load_function;
pub use launch::{
    Environment, Library, LibraryError, StopPolicy, end_as, exit_code, run_application,
};
pub use process_tree::ProcessTree;
pub use processes::{ProcessRecord, Processes};
pub use report::{Event, Follower, ProcessEvent, Report, read_report};
pub use run_files::RunFiles;
pub use session::{Session, TargetProcess, Task};
pub use tool::{ToolPath, ToolSession};
