//! What a call answers that is not done.

/// An error number of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(libc::c_int);

impl Errno {
    /// A handle, a GPU or a value that there is not.
    pub const INVALID: Errno = Errno(libc::EINVAL);
    /// No memory is left.
    pub const NO_MEMORY: Errno = Errno(libc::ENOMEM);
    /// An address where nothing is.
    pub const FAULT: Errno = Errno(libc::EFAULT);
    /// A call that this device does not have.
    pub const NO_CALL: Errno = Errno(libc::ENOTTY);
    /// A device that is not there.
    pub const NO_DEVICE: Errno = Errno(libc::ENODEV);
    /// Something is still used.
    pub const BUSY: Errno = Errno(libc::EBUSY);

    /// What a call of the kernel returns for it.
    pub fn answer(self) -> libc::c_int {
        -self.0
    }

    /// An error of the system.
    pub fn of(error: std::io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// The last error of the system.
    pub fn last() -> Errno {
        Errno::of(std::io::Error::last_os_error())
    }
}
