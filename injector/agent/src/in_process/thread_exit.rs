//! Destructors of thread-local values, without the lock of the dynamic linker.
//!
//! The C library's `__cxa_thread_atexit_impl`, which the standard library calls at the start of each thread, waits
//! while another thread loads a library. The initializers of that library may use a GPU, and wait for the engine
//! threads: neither would continue. The lock only prevents that a library with destructors is unloaded, and the agent
//! is never unloaded.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

type Destructor = unsafe extern "C" fn(*mut c_void);

/// A destructor to call at the end of a thread.
struct Registered {
    destructor: Destructor,
    value: *mut c_void,
    /// The destructor that was registered before; null for the first.
    earlier: *mut Registered,
}

/// The key of each thread's last destructor.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

// Hidden, so that the agent's own calls end here, and those of the application do not.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".hidden __cxa_thread_atexit_impl",
    ".globl __cxa_thread_atexit_impl",
    ".type __cxa_thread_atexit_impl, @function",
    "__cxa_thread_atexit_impl:",
    "jmp {register}",
    register = sym register,
);

/// Calls `destructor` with `value` when the thread ends. Returns 0, or an error number.
///
/// # Safety
/// The call must be valid then.
unsafe extern "C" fn register(
    destructor: Destructor,
    value: *mut c_void,
    _library: *mut c_void,
) -> c_int {
    let key = *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `run` accepts the values that are set below.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(run)) } != 0 {
            std::process::abort();
        }
        key
    });
    // SAFETY: the key exists; its value is null or from the previous call.
    unsafe {
        let earlier = libc::pthread_getspecific(key).cast();
        let last = Box::into_raw(Box::new(Registered { destructor, value, earlier }));
        libc::pthread_setspecific(key, last.cast_const().cast())
    }
}

/// Calls the destructors of a thread, the last one first.
unsafe extern "C" fn run(last: *mut c_void) {
    let mut next: *mut Registered = last.cast();
    while !next.is_null() {
        // SAFETY: created by `register`, and passed on once.
        let registered = unsafe { Box::from_raw(next) };
        // SAFETY: promised by the caller of `register`.
        unsafe { (registered.destructor)(registered.value) };
        next = registered.earlier;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    static CALLED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

    /// Notes its argument, and registers another call for the first one.
    unsafe extern "C" fn note(value: *mut c_void) {
        CALLED.lock().expect("no panic").push(value as usize);
        if value as usize == 1 {
            // SAFETY: any value can be noted.
            assert_eq!(unsafe { register(note, 3 as *mut c_void, std::ptr::null_mut()) }, 0);
        }
    }

    #[test]
    fn destructors_run_at_the_end_of_a_thread_in_reverse_order() {
        let thread = std::thread::spawn(|| {
            for value in [1, 2] {
                // SAFETY: any value can be noted.
                let registered =
                    unsafe { register(note, value as *mut c_void, std::ptr::null_mut()) };
                assert_eq!(registered, 0);
            }
            CALLED.lock().expect("no panic").len()
        });
        assert_eq!(thread.join().expect("no panic"), 0);
        assert_eq!(*CALLED.lock().expect("no panic"), [2, 1, 3]);
    }
}
