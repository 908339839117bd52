//! What programs that manage a system ask for: to hear of what happens to GPUs.

use super::abi::SmiEvents;
use super::error::Errno;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// Our ends of the files that were given.
#[derive(Default)]
pub struct Listeners(Mutex<Vec<OwnedFd>>);

impl Listeners {
    /// A file into which a program writes what it wants to hear of. Of all that can be asked for (pages that
    /// move, resets, clocks that are slowed down) nothing happens here, so that there is nothing to read.
    pub fn listen(&self, own: &mut SmiEvents) -> Result<(), Errno> {
        let mut ends = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: writes two numbers.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(Errno::last());
        }
        // SAFETY: just made, and nobody else's.
        let [ours, theirs] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ours);
        own.anon_fd = theirs.into_raw_fd() as u32;
        Ok(())
    }
}
