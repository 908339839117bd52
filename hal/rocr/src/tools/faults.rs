//! Faults that the runtime reports to an application: the interceptor learns of them first.

use super::{TOOLS, Tools};
use crate::fault;
use hsa_sys::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Once;

/// What the application has asked to be called when a queue stops.
#[derive(Debug)]
pub struct QueueCallback {
    callback: Option<queue_callback>,
    data: *mut c_void,
}

// SAFETY: the application promises that its callback may be called with its data from any thread.
unsafe impl Send for QueueCallback {}

impl QueueCallback {
    pub fn new(callback: Option<queue_callback>, data: *mut c_void) -> Box<QueueCallback> {
        Box::new(QueueCallback { callback, data })
    }
}

/// Is called when a queue stops.
///
/// # Safety
/// `data` is a [`QueueCallback`] that lives.
pub unsafe extern "C" fn on_queue_error(
    status: hsa_status_t,
    queue: *mut hsa_queue_t,
    data: *mut c_void,
) {
    if let (Some(tools), Some(cause)) = (TOOLS.get(), fault::of_status(status)) {
        tools.fault(&cause);
    }
    // SAFETY: promised by the caller.
    let application = unsafe { &*data.cast::<QueueCallback>() };
    if let Some(callback) = application.callback {
        // SAFETY: the application's function, with its data.
        unsafe { callback(status, queue, application.data) };
    }
}

/// Has the runtime report memory faults, which belong to no queue. It reports in the order of
/// registration, so that this has to come before the application does the same.
pub fn listen(tools: &Tools) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let register = tools.amd.hsa_amd_register_system_event_handler_fn;
        // SAFETY: a function that stays. Where it is refused memory faults are not reported.
        let _ = unsafe { register(on_event, null_mut()) };
    });
}

/// The application registers a handler.
pub unsafe extern "C" fn register_system_event_handler(
    callback: hsa_amd_system_event_callback_t,
    data: *mut c_void,
) -> hsa_status_t {
    let Some(tools) = TOOLS.get() else { return HSA_STATUS_ERROR };
    listen(tools);
    // SAFETY: the caller's arguments.
    unsafe { (tools.amd.hsa_amd_register_system_event_handler_fn)(callback, data) }
}

unsafe extern "C" fn on_event(event: *const hsa_amd_event_t, _: *mut c_void) -> hsa_status_t {
    // SAFETY: the runtime's event, while it calls.
    let cause = unsafe { event.as_ref() }.and_then(fault::of_event);
    if let (Some(tools), Some(cause)) = (TOOLS.get(), cause) {
        tools.fault(&cause);
    }
    // What becomes of the process is the application's, or the runtime's.
    HSA_STATUS_ERROR
}
