//! Threads that leave signals to the program that has them.

use std::io;
use std::mem::MaybeUninit;
use std::thread::Builder;

/// Starts a thread that no signal of the process is delivered to: whoever waits for signals, or has
/// blocked them for a time, counts on the threads that it knows of.
///
/// # Errors
/// If the system has no thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the set is filled before it is used; the mask is this thread's own, and what `before` has
    // is what it was. A new thread begins with the mask of the one that starts it.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let spawned = Builder::new().name(name.to_owned()).spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        spawned.map(|_| ())
    }
}

/// Has this process's signals delivered again, all of which it may have inherited as blocked from the
/// thread that has started it.
pub fn unblock() {
    let mut none = MaybeUninit::uninit();
    // SAFETY: the set is emptied before it is used; the mask is this thread's own.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}
