//! What stops a tool.

use flipwave_device::{DeviceError, DeviceFault};
use flipwave_hooks::hook::{HookError, VariableError, library};
use flipwave_hooks::rewrite::RewriteError;

/// Why a tool has no result.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The hooks.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// A source that the library does not have.
    #[error("the library has no hooks `{wanted}`; it has: {}", library::names().collect::<Vec<_>>().join(", "))]
    NoHooks {
        /// The name.
        wanted: String,
    },
    /// What was to be put into the code beside the tool.
    #[error(transparent)]
    Beside(Box<dyn std::error::Error + Send + Sync>),
    /// The code.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// What the hooks left.
    #[error(transparent)]
    Variable(#[from] VariableError),
    /// The device refused a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A kernel that is not dispatched.
    #[error("kernel `{wanted}` is not dispatched; dispatched are: {}", present.join(", "))]
    NoKernel {
        /// The name asked for.
        wanted: String,
        /// The names there are.
        present: Vec<String>,
    },
    /// A dispatch that did not come to its end.
    #[error("dispatch {dispatch} (kernel `{kernel}`) failed: {fault}")]
    Faulted {
        /// Its index.
        dispatch: usize,
        /// Its kernel.
        kernel: String,
        /// What happened; the PC is that of the code as it was.
        fault: DeviceFault,
    },
    /// A dispatch of code that is not known.
    #[error("dispatch {dispatch} is of module {module}, whose code object is not known")]
    NoCode {
        /// Its index.
        dispatch: usize,
        /// The module.
        module: u32,
    },
}
