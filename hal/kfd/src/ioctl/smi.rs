//! System management interface (SMI): reports of events such as page migrations and resets of GPUs.

use super::abi::SmiEvents;
use super::error::Errno;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// The driver's ends of the sockets that were given to programs.
#[derive(Default)]
pub struct SmiClients(Mutex<Vec<OwnedFd>>);

impl SmiClients {
    /// Opens a file to which a program writes the events that it wants to be told of. None of these
    /// events (page migrations, resets, clock throttling) happens on the embedded GPU, so that
    /// there is never anything to read.
    pub fn open(&self, args: &mut SmiEvents) -> Result<(), Errno> {
        let mut ends = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: writes two numbers.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(Errno::last());
        }
        // SAFETY: just opened, and not used elsewhere.
        let [driver, program] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(driver);
        args.anon_fd = program.into_raw_fd() as u32;
        Ok(())
    }
}
