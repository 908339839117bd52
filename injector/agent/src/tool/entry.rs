//! Where AMD's runtime calls the tools library.

use super::measuring::Measuring;
use super::output::Output;
use super::{ToolName, ToolPath, ToolSession};
use crate::hooked::HookedFault;
use crate::inside::{fail, open_report};
use crate::session::{Session, Task};
use flipwave_rocr::tools::{
    HsaApiTable, Interceptor, install, replace_waits, shut_down, unmap_at_shutdown, watch_stores,
};
use flipwave_tools::{
    AddressDivergence, BankConflicts, BranchDivergence, InstructionCount, KernelClock, MemoryTrace,
    OpcodeHistogram,
};
use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

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
    // SAFETY: the runtime's table, in `OnLoad`.
    let loaded = unsafe { load(table) };
    loaded.unwrap_or_else(|reason| fail(&reason));
    true
}

/// The same from rocprofiler-register, which newer runtimes give their tables, and which finds this
/// library in `ROCPROFILER_REGISTER_LIBRARY` (`rocprofiler_register.cpp`). Other libraries of ROCm
/// do so, too. The result is 0.
///
/// # Safety
/// Called with this many tables of the library `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_set_api_table(
    name: *const c_char,
    _library_version: u64,
    _library_instance: u64,
    tables: *const *mut HsaApiTable,
    count: u64,
) -> c_int {
    // SAFETY: text that ends with a zero, if any, and this many tables.
    let table = unsafe {
        let is_hsa = !name.is_null() && CStr::from_ptr(name) == c"hsa";
        if is_hsa && count > 0 { *tables } else { return 0 }
    };
    // SAFETY: the runtime's table; it is registered before the runtime uses it.
    let loaded = unsafe { load(table) };
    loaded.unwrap_or_else(|reason| fail(&reason));
    0
}

/// Changes the runtime's tables for the session of this process, once for all ways to get them.
///
/// # Safety
/// Nobody else uses the tables.
unsafe fn load(table: *mut HsaApiTable) -> Result<(), String> {
    let session = Session::of_process()?;
    open_report(&session)?;
    let path = session.task.tool_path().unwrap_or(ToolPath::Embedded);
    let note = flipwave_kfd::note_submissions;
    let sleep = flipwave_kfd::wait_until;
    let mapped = flipwave_kfd::virtual_mappings;
    // SAFETY: promised by the caller; the clock of the machine has nanoseconds, and the runtime maps
    // all virtual memory.
    let watch = || unsafe {
        watch_stores(table, note) && replace_waits(table, sleep) && unmap_at_shutdown(table, mapped)
    };
    let is_watched = path == ToolPath::Hardware || watch();
    let make = || -> Result<Box<dyn Interceptor>, String> {
        // SAFETY: registers a function of this library, which stays loaded. Applications need not
        // shut the runtime down.
        unsafe { libc::atexit(at_exit) };
        match session.task {
            Task::InjectByHooks(hooked) => Ok(Box::new(HookedFault::new(&hooked)?)),
            Task::Tool(tool) => interceptor(tool),
            _ => Err("this session has nothing for a tools library to do".to_owned()),
        }
    };
    let is_installed = match path {
        ToolPath::Embedded => true,
        // SAFETY: promised by the caller.
        ToolPath::Hook | ToolPath::Hardware => unsafe { install(table, make)? },
    };
    if is_watched && is_installed {
        return Ok(());
    }
    Err("AMD's runtime has tables that are not known here; expected are those of ROCm 5.2 to 6.2"
        .to_owned())
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
