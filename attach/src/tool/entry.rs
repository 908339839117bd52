//! Where AMD's runtime calls the tools library.

use super::measuring::Measuring;
use super::output::Output;
use super::{ToolName, ToolPath, ToolSession};
use crate::hooked::Striking;
use crate::inside::{fail, open_report};
use crate::session::{Session, Task};
use flipwave_hooks::tools::{
    AddressDivergence, BankConflicts, BranchDivergence, InstructionCount, KernelClock, MemoryTrace,
    OpcodeHistogram,
};
use flipwave_rocr::tools::{HsaApiTable, Interceptor, install, shut_down, watch_stores};
use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Called when the runtime starts and finds this library in `HSA_TOOLS_LIB`.
///
/// # Safety
/// The runtime calls it with its own table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(
    table: *mut HsaApiTable,
    _runtime_version: u64,
    _failed_tools: u64,
    _names_of_failed: *const *const c_char,
) -> bool {
    let unknown = "AMD's runtime has tables that are not known here; ROCm 5.2 or later is expected";
    let session = Session::of_process().unwrap_or_else(|reason| fail(&reason));
    // The library may be listed twice, in an application that starts another one.
    static IS_LOADED: AtomicBool = AtomicBool::new(false);
    if IS_LOADED.swap(true, Ordering::AcqRel) {
        return true;
    }
    open_report(&session).unwrap_or_else(|reason| fail(&reason));
    let path = session.task.tool_path().unwrap_or(ToolPath::Embedded);
    // SAFETY: the runtime's table, in `OnLoad`.
    if path != ToolPath::Hardware && !unsafe { watch_stores(table, flipwave_kfd::note_submissions) }
    {
        fail(unknown);
    }
    let interceptor = match session.task {
        Task::Tool(tool) if path != ToolPath::Embedded => interceptor(tool),
        Task::InjectByHooks(hooked) => {
            Striking::new(&hooked).map(|own| Box::new(own) as Box<dyn Interceptor>)
        }
        _ => return true,
    };
    let interceptor = interceptor.unwrap_or_else(|reason| fail(&reason));
    // SAFETY: the runtime's table, in `OnLoad`.
    if !unsafe { install(table, interceptor) } {
        fail(unknown);
    }
    // SAFETY: registers a function of this library, which stays loaded. Applications need not shut
    // the runtime down.
    unsafe { libc::atexit(at_exit) };
    true
}

/// Called when the runtime is shut down.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    shut_down();
}

extern "C" fn at_exit() {
    shut_down();
}

fn interceptor(session: ToolSession) -> Result<Box<dyn Interceptor>, String> {
    let output = Arc::new(Output::new(&session)?);
    let options = session.options;
    Ok(match session.name {
        ToolName::InstructionCount => Box::new(Measuring::<InstructionCount>::new(options, output)),
        ToolName::OpcodeHistogram => Box::new(Measuring::<OpcodeHistogram>::new(options, output)),
        ToolName::MemoryTrace => Box::new(Measuring::<MemoryTrace>::new(options, output)),
        ToolName::AddressDivergence => {
            Box::new(Measuring::<AddressDivergence>::new(options, output))
        }
        ToolName::BranchDivergence => Box::new(Measuring::<BranchDivergence>::new(options, output)),
        ToolName::BankConflicts => Box::new(Measuring::<BankConflicts>::new(options, output)),
        ToolName::KernelClock => Box::new(Measuring::<KernelClock>::new(options, output)),
    })
}
