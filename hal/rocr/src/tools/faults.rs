//! Interception of the runtime's fault reports. The interceptor is called before the application.

use super::gate::gate;
use super::runtime::{RUNTIME, Runtime};
use crate::fault;
use hsa_sys::*;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Once;

/// The application's error callback of a queue.
#[derive(Debug)]
pub struct QueueCallback {
    callback: Option<queue_callback>,
    data: *mut c_void,
}

// SAFETY: the HSA specification allows the runtime to call the callback from any thread.
unsafe impl Send for QueueCallback {}

impl QueueCallback {
    pub fn new(callback: Option<queue_callback>, data: *mut c_void) -> Box<QueueCallback> {
        Box::new(QueueCallback { callback, data })
    }
}

/// Error callback of intercepted queues: called when a queue stops.
///
/// # Safety
/// `data` must point to a live [`QueueCallback`].
pub unsafe extern "C" fn on_queue_error(
    status: hsa_status_t,
    queue: *mut hsa_queue_t,
    data: *mut c_void,
) {
    if let (Some(runtime), Some(cause)) = (RUNTIME.get(), fault::from_status(status)) {
        gate().report_fault(runtime, &cause);
    }
    // SAFETY: guaranteed by the caller.
    let application = unsafe { &*data.cast::<QueueCallback>() };
    if let Some(callback) = application.callback {
        // SAFETY: calls the application's function with its data.
        unsafe { callback(status, queue, application.data) };
    }
}

/// Registers a handler for memory faults, which belong to no queue. The runtime calls handlers in
/// registration order, so this must precede the application's registration.
pub fn listen(runtime: &Runtime) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let register = runtime.amd.hsa_amd_register_system_event_handler_fn;
        // SAFETY: the handler is a static function. If registration fails, memory faults are not
        // reported.
        let _ = unsafe { register(on_event, null_mut()) };
    });
}

/// Replaces `hsa_amd_register_system_event_handler`.
pub unsafe extern "C" fn register_system_event_handler(
    callback: hsa_amd_system_event_callback_t,
    data: *mut c_void,
) -> hsa_status_t {
    let Some(runtime) = RUNTIME.get() else { return HSA_STATUS_ERROR };
    listen(runtime);
    // SAFETY: forwards the caller's arguments.
    unsafe { (runtime.amd.hsa_amd_register_system_event_handler_fn)(callback, data) }
}

unsafe extern "C" fn on_event(event: *const hsa_amd_event_t, _: *mut c_void) -> hsa_status_t {
    // SAFETY: the runtime's event is valid during the call.
    let cause = unsafe { event.as_ref() }.and_then(fault::from_event);
    if let (Some(runtime), Some(cause)) = (RUNTIME.get(), cause) {
        gate().report_fault(runtime, &cause);
    }
    // Not handled: the application or the runtime decides whether the process continues.
    HSA_STATUS_ERROR
}
