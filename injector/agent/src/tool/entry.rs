//! Entry points of the agent as a tools library of AMD's runtime.

use super::output::Output;
use super::tool_interceptor::ToolInterceptor;
use super::{ToolPath, ToolSession};
use crate::hook_injection::HookInjector;
use crate::in_process::{fail, open_report};
use crate::session::{Session, Task};
use flipwave_rocr::tools::{
    HsaApiTable, Interceptor, install, replace_waits, shut_down, unmap_at_shutdown, watch_stores,
};
use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

/// Called by the runtime at its start if `HSA_TOOLS_LIB` names this library.
///
/// # Safety
/// `table` must be the runtime's API table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(
    table: *mut HsaApiTable,
    _runtime_version: u64,
    _failed_tools: u64,
    _names_of_failed: *const *const c_char,
) -> bool {
    // SAFETY: the runtime passes its API table.
    let loaded = unsafe { load(table) };
    loaded.unwrap_or_else(|reason| fail(&reason));
    true
}

/// Called by rocprofiler-register, to which newer runtimes and other ROCm libraries pass their API tables,
/// if `ROCPROFILER_REGISTER_LIBRARY` names this library (`rocprofiler_register.cpp`). Returns 0.
///
/// # Safety
/// `tables` must point to `count` API tables of the library `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_set_api_table(
    name: *const c_char,
    _library_version: u64,
    _library_instance: u64,
    tables: *const *mut HsaApiTable,
    count: u64,
) -> c_int {
    // SAFETY: `name` is null or zero-terminated, and there are `count` tables.
    let table = unsafe {
        let is_hsa = !name.is_null() && CStr::from_ptr(name) == c"hsa";
        if is_hsa && count > 0 { *tables } else { return 0 }
    };
    // SAFETY: the runtime's API table, registered before the runtime uses it.
    let loaded = unsafe { load(table) };
    loaded.unwrap_or_else(|reason| fail(&reason));
    0
}

/// Installs the session's interceptor in the runtime's tables. Repeated calls have no effect.
///
/// # Safety
/// No other thread may use the tables.
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
        // SAFETY: registers a function of this library, which stays loaded. Needed because applications
        // may exit without shutting the runtime down.
        unsafe { libc::atexit(at_exit) };
        match session.task {
            Task::InjectWithHooks(injection) => Ok(Box::new(HookInjector::new(&injection)?)),
            Task::Tool(tool) => tool_interceptor(tool),
            _ => Err("the session has no task for a tools library".to_owned()),
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
    Err("unknown API tables of AMD's runtime; expected ROCm 5.2 to 6.2".to_owned())
}

/// Called by the runtime when it is shut down.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    shut_down();
}

extern "C" fn at_exit() {
    shut_down();
}

fn tool_interceptor(session: ToolSession) -> Result<Box<dyn Interceptor>, String> {
    let output = Arc::new(Output::new(&session)?);
    Ok(Box::new(ToolInterceptor::new(session.read_tool()?, session.options, output)))
}
