//! Errors of tools.

use flipwave_device::{DeviceError, DeviceFault};
use flipwave_hooks::hook::{HookError, VariableError, library};
use flipwave_hooks::rewrite::RewriteError;

/// Errors returned when instrumenting code with a tool and running it.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A hook cannot be compiled.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The hook library has no source with this name.
    #[error("unknown hook source `{wanted}`; expected one of {}", library::names().collect::<Vec<_>>().join(", "))]
    NoHooks {
        /// The requested name.
        wanted: String,
    },
    /// The instructions that a [`Replacer`](crate::Replacer) should replace cannot be replaced.
    #[error(transparent)]
    Replacement(Box<dyn std::error::Error + Send + Sync>),
    /// The code cannot be rewritten.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// The variables of the hooks cannot be read.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The device rejected a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The selected kernel is not dispatched.
    #[error("kernel `{wanted}` was not dispatched; dispatched kernels: {}", present.join(", "))]
    NoKernel {
        /// The requested name.
        wanted: String,
        /// The names of the dispatched kernels.
        present: Vec<String>,
    },
    /// A dispatch ended with a device fault.
    #[error("dispatch {dispatch} (kernel `{kernel}`) failed: {fault}")]
    Faulted {
        /// The index of the dispatch.
        dispatch: usize,
        /// The kernel.
        kernel: String,
        /// The fault, with the PC in the original code.
        fault: DeviceFault,
    },
    /// The code object of a dispatched module is not available.
    #[error("unknown code object: module {module} of dispatch {dispatch}")]
    NoCode {
        /// The index of the dispatch.
        dispatch: usize,
        /// The module.
        module: u32,
    },
}
