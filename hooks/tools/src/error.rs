//! Errors of tools.

use flipwave_device::{DeviceError, DeviceFault, demangled_kernel};
use flipwave_hooks::flow::{Disassembly, InstIndex, Key};
use flipwave_hooks::hook::{HookError, VariableError};
use flipwave_hooks::rewrite::RewriteError;
use flipwave_ptx_hooks::PtxHookError;
use std::path::PathBuf;

/// Errors returned when instrumenting code with a tool and running it.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A hook cannot be compiled.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The file of a tool cannot be read.
    #[error("cannot read the tool {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: std::io::Error,
    },
    /// There is no shipped tool with this name.
    #[error("unknown tool `{wanted}`; expected a C file, or one of {}", present.join(", "))]
    NoTool {
        /// The requested name.
        wanted: String,
        /// The names of the shipped tools.
        present: Vec<String>,
    },
    /// The tool has no parameter with this name.
    #[error(
        "unknown parameter `{name}` of the tool; {}",
        if present.is_empty() { "it has none".to_owned() } else { format!("it has {}", present.join(", ")) }
    )]
    Parameter {
        /// The requested name.
        name: String,
        /// The names of its parameters.
        present: Vec<String>,
    },
    /// The host side of a tool does not compile.
    #[error("{name} does not compile for the host:\n{messages}")]
    Rejected {
        /// The file.
        name: String,
        /// Messages of the compiler.
        messages: String,
    },
    /// The tool contains or reported an error.
    #[error("{place}: {message}")]
    Tool {
        /// The file and the line.
        place: String,
        /// The problem.
        message: String,
    },
    /// A function of the tool crashed or did not return.
    #[error(
        "{place}: `{function}` {problem}{}",
        inst.map(|inst| format!(" (at instruction {inst})")).unwrap_or_default()
    )]
    Crashed {
        /// The file and the line.
        place: String,
        /// The function.
        function: &'static str,
        /// The problem.
        problem: String,
        /// Index of the instruction that the function was called for.
        inst: Option<u32>,
    },
    /// The process of the host side does not work.
    #[error("{name}: cannot run its host side: {reason}")]
    HostProcess {
        /// The file.
        name: String,
        /// The reason.
        reason: std::io::Error,
    },
    /// A hook failed on the device.
    #[error(
        "dispatch {dispatch} (kernel `{}`): {hook} failed at `{instruction}` (pc {}): {}",
        demangled_kernel(kernel),
        fault.place.pc,
        fault.report(None)
    )]
    HookFaulted {
        /// The index of the dispatch.
        dispatch: usize,
        /// The kernel.
        kernel: String,
        /// The hook with its line.
        hook: String,
        /// The instruction with the hook.
        instruction: String,
        /// The fault, with the PC of the instruction.
        fault: Box<DeviceFault>,
    },
    /// A hook failed in PTX.
    #[error(
        "dispatch {dispatch} (kernel `{}`): a hook of {name} failed: {}",
        demangled_kernel(kernel),
        fault.report(None)
    )]
    PtxHookFaulted {
        /// The index of the dispatch.
        dispatch: usize,
        /// The kernel.
        kernel: String,
        /// The file of the tool.
        name: String,
        /// The fault, with the PC of the next original instruction.
        fault: Box<DeviceFault>,
    },
    /// Hooks cannot be compiled for PTX, or not inserted.
    #[error(transparent)]
    Ptx(#[from] Box<PtxHookError>),
    /// An option that only code of AMD GPUs has.
    #[error("`{option}` is available for AMD GPUs only; `{target}` is not one")]
    AmdgpuOnly {
        /// The option.
        option: &'static str,
        /// The target.
        target: String,
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
    #[error(
        "dispatch {dispatch} (kernel `{}`) failed: {}",
        demangled_kernel(kernel),
        fault.report(None)
    )]
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

impl ToolError {
    /// Adds the text of the instruction that the tool failed at.
    pub(crate) fn at_inst(self, program: &Disassembly) -> ToolError {
        self.at(|index| {
            let inst = program.inst(InstIndex::new(index))?;
            Some(format!("`{}` at pc {}", inst.text.trim(), inst.pc))
        })
    }

    /// Adds the text that `describe` returns for the number of the instruction that the tool failed at.
    pub(crate) fn at(self, describe: impl Fn(usize) -> Option<String>) -> ToolError {
        match self {
            ToolError::Crashed { place, function, problem, inst: Some(index) } => {
                let text = describe(index as usize).map(|text| format!(" for {text}"));
                let problem = format!("{problem}, called{}", text.unwrap_or_default());
                ToolError::Crashed { place, function, problem, inst: None }
            }
            error => error,
        }
    }
}
