//! Signal masks of threads and of the service.

use std::io;
use std::mem::MaybeUninit;
use std::thread::Builder;

/// Starts a thread that receives no signals of the process: an application that waits for signals, or
/// blocks them temporarily, expects them only on its own threads.
///
/// # Errors
/// If the system cannot create a thread.
pub fn spawn_with_signals_blocked(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let (mut all, mut old_mask) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the set is filled before its use; only the mask of this thread changes, and the old mask
    // is restored. A new thread inherits the mask of the thread that starts it.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old_mask.as_mut_ptr());
        let spawned = Builder::new().name(name.to_owned()).spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, old_mask.as_ptr(), std::ptr::null_mut());
        spawned.map(|_| ())
    }
}

/// Unblocks all signals of this thread. A process inherits the mask of the thread that starts it, which
/// may block all signals.
pub fn unblock() {
    let mut none = MaybeUninit::uninit();
    // SAFETY: the set is emptied before its use; only the mask of this thread changes.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
}
