//! Replacement functions in the runtime's tables.

#![allow(clippy::missing_safety_doc, reason = "called as specified in the runtime's headers")]

use super::Interceptor;
use super::code::{LoadedCode, registry};
use super::faults::{self, QueueCallback, listen, on_queue_error};
use super::gate::gate;
use super::load::{find_kernel, with_reader};
use super::queue::{QueueState, on_packets};
use super::runtime::{RUNTIME, Runtime};
use crate::HsaError;
use flipwave_codeobj::CodeObject;
use hsa_sys::*;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Installs the functions of this module in the runtime's tables. The interceptor is created by `make`
/// on the first call; a runtime that starts again has new tables but keeps the interceptor. Returns
/// `true` if the tables are changed; tables of unknown versions are not changed.
///
/// Calls no function of the runtime, which is not initialized yet.
///
/// # Errors
/// The errors of `make`.
///
/// # Safety
/// `table` must be the table that the runtime passed to `OnLoad`, and `OnLoad` must not have returned.
pub unsafe fn install<E>(
    table: *mut HsaApiTable,
    make: impl FnOnce() -> Result<Box<dyn Interceptor>, E>,
) -> Result<bool, E> {
    // SAFETY: guaranteed by the caller; no other code uses the tables before `OnLoad` returns.
    let known = unsafe { table.as_mut().and_then(|table| table.known()) };
    let Some(KnownTables { core, amd_ext, register_system_event_handler }) = known else {
        return Ok(false);
    };
    if RUNTIME.get().is_none() {
        _ = RUNTIME.set(Runtime { core: *core, amd: amd_ext, interceptor: make()? });
    }
    core.hsa_queue_create_fn = queue_create;
    core.hsa_queue_destroy_fn = queue_destroy;
    core.hsa_code_object_reader_create_from_memory_fn = reader_from_memory;
    core.hsa_code_object_reader_create_from_file_fn = reader_from_file;
    core.hsa_code_object_reader_destroy_fn = reader_destroy;
    core.hsa_executable_load_agent_code_object_fn = load_code_object;
    core.hsa_executable_freeze_fn = freeze;
    core.hsa_executable_destroy_fn = executable_destroy;
    *register_system_event_handler = faults::register_system_event_handler;
    Ok(true)
}

/// Notifies the interceptor that the application shuts the runtime down.
pub fn shut_down() {
    if let Some(runtime) = RUNTIME.get() {
        runtime.interceptor.finish();
    }
}

/// An intercepted queue: keeps the data of the runtime's callbacks alive until it is destroyed.
struct InterceptedQueue {
    state: Arc<QueueState>,
    _callback: Box<QueueCallback>,
}

/// The intercepted queues by address.
static QUEUES: Mutex<Option<HashMap<usize, InterceptedQueue>>> = Mutex::new(None);

fn with_queues<T>(access: impl FnOnce(&mut HashMap<usize, InterceptedQueue>) -> T) -> T {
    let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
    access(queues.get_or_insert_default())
}

unsafe extern "C" fn queue_create(
    agent: hsa_agent_t,
    size: u32,
    kind: u32,
    callback: Option<queue_callback>,
    data: *mut c_void,
    private_bytes: u32,
    group_bytes: u32,
    queue: *mut *mut hsa_queue_t,
) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    listen(runtime);
    let create = runtime.amd.hsa_amd_queue_intercept_create_fn;
    let callback = QueueCallback::new(callback, data);
    let data = (&raw const *callback).cast_mut().cast();
    let on_error = Some(on_queue_error as queue_callback);
    // SAFETY: forwards the caller's arguments, with a callback whose data lives until the queue is
    // destroyed.
    let status =
        unsafe { create(agent, size, kind, on_error, data, private_bytes, group_bytes, queue) };
    if status != HSA_STATUS_SUCCESS {
        return status;
    }
    // SAFETY: the runtime has written the queue's address.
    let (created, packets) = unsafe { (*queue, (**queue).size) };
    let state = Arc::new(QueueState::new(packets));
    // SAFETY: the state lives until the queue is destroyed.
    let status = unsafe {
        (runtime.amd.hsa_amd_queue_intercept_register_fn)(
            created,
            on_packets,
            Arc::as_ptr(&state).cast_mut().cast(),
        )
    };
    let intercepted = InterceptedQueue { state, _callback: callback };
    with_queues(|queues| queues.insert(created as usize, intercepted));
    status
}

unsafe extern "C" fn queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    // SAFETY: forwards the caller's argument.
    let status = unsafe { (runtime.core.hsa_queue_destroy_fn)(queue) };
    let intercepted = with_queues(|queues| queues.remove(&(queue as usize)));
    if let Some(intercepted) = intercepted {
        gate().queue_destroyed(intercepted.state);
    }
    status
}

/// Registers the code object of a reader.
fn register_reader(reader: *const hsa_code_object_reader_t, bytes: Vec<u8>) {
    if let Ok(object) = CodeObject::from_bytes(bytes) {
        // SAFETY: the runtime has written the reader.
        let reader = unsafe { *reader };
        registry().readers.insert(reader, Arc::new(object));
    }
}

unsafe extern "C" fn reader_from_memory(
    bytes: *const c_void,
    size: usize,
    reader: *mut hsa_code_object_reader_t,
) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    // SAFETY: forwards the caller's arguments.
    let status =
        unsafe { (runtime.core.hsa_code_object_reader_create_from_memory_fn)(bytes, size, reader) };
    if status == HSA_STATUS_SUCCESS {
        // SAFETY: the caller guarantees valid bytes for the lifetime of the reader.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) };
        register_reader(reader, bytes.to_vec());
    }
    status
}

unsafe extern "C" fn reader_from_file(
    file: c_int,
    reader: *mut hsa_code_object_reader_t,
) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    // SAFETY: forwards the caller's arguments.
    let status = unsafe { (runtime.core.hsa_code_object_reader_create_from_file_fn)(file, reader) };
    if status == HSA_STATUS_SUCCESS {
        // SAFETY: the caller's open file, which `ManuallyDrop` keeps open.
        let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(file) });
        if let Ok(bytes) = read_all(&mut file) {
            register_reader(reader, bytes);
        }
    }
    status
}

/// Reads a whole file and restores its position.
fn read_all(file: &mut File) -> std::io::Result<Vec<u8>> {
    let position = file.stream_position()?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(position))?;
    Ok(bytes)
}

unsafe extern "C" fn reader_destroy(reader: hsa_code_object_reader_t) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    registry().readers.remove(&reader);
    // SAFETY: forwards the caller's argument.
    unsafe { (runtime.core.hsa_code_object_reader_destroy_fn)(reader) }
}

unsafe extern "C" fn load_code_object(
    executable: hsa_executable_t,
    agent: hsa_agent_t,
    reader: hsa_code_object_reader_t,
    options: *const c_char,
    loaded: *mut hsa_loaded_code_object_t,
) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    let load = |reader| {
        // SAFETY: forwards the caller's arguments, with a valid reader.
        unsafe {
            (runtime.core.hsa_executable_load_agent_code_object_fn)(
                executable, agent, reader, options, loaded,
            )
        }
    };
    let original = registry().readers.get(&reader).cloned();
    let Some(original) = original else { return load(reader) };
    let id = registry().next_code();
    let mut replacement = runtime.interceptor.load(id, &original);
    if let Some(new) = &replacement {
        let status = with_reader(runtime, new.object.bytes(), load);
        if let Err(reason) = HsaError::check("hsa_executable_load_agent_code_object", status) {
            runtime.interceptor.replacement_rejected(id, &reason);
            replacement = None;
        }
    }
    let status = if replacement.is_some() { HSA_STATUS_SUCCESS } else { load(reader) };
    if status == HSA_STATUS_SUCCESS {
        let code = LoadedCode { id, agent, original, replacement };
        registry().add_code(executable, code);
    }
    status
}

unsafe extern "C" fn freeze(executable: hsa_executable_t, options: *const c_char) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    // SAFETY: forwards the caller's arguments.
    let status = unsafe { (runtime.core.hsa_executable_freeze_fn)(executable, options) };
    if status == HSA_STATUS_SUCCESS {
        let find = |symbol: &str, agent| find_kernel(&runtime.core, executable, symbol, agent);
        registry().add_kernels(executable, &find);
    }
    status
}

unsafe extern "C" fn executable_destroy(executable: hsa_executable_t) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    let removed = registry().remove_executable(executable);
    // SAFETY: forwards the caller's argument.
    let status = unsafe { (runtime.core.hsa_executable_destroy_fn)(executable) };
    // Only now has the runtime removed their bytes from its list for debuggers.
    drop(removed);
    status
}
