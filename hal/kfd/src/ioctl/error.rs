//! Errors of calls.

/// An error number of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(libc::c_int);

impl Errno {
    /// `EINVAL`: an unknown handle or GPU, or an invalid value.
    pub const INVALID: Errno = Errno(libc::EINVAL);
    /// `ENOMEM`: not enough memory.
    pub const NO_MEMORY: Errno = Errno(libc::ENOMEM);
    /// `EFAULT`: an unmapped address.
    pub const FAULT: Errno = Errno(libc::EFAULT);
    /// `ENOTTY`: an unknown call.
    pub const NO_CALL: Errno = Errno(libc::ENOTTY);
    /// `ENODEV`: an unknown device.
    pub const NO_DEVICE: Errno = Errno(libc::ENODEV);
    /// `EBUSY`: the object is in use.
    pub const BUSY: Errno = Errno(libc::EBUSY);

    /// The error as a return value of a system call: negative.
    pub fn to_return_value(self) -> libc::c_int {
        -self.0
    }

    /// The error number of an I/O error; `EIO` if it has none.
    pub fn from_io(error: std::io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }

    /// The last error of the system.
    pub fn last() -> Errno {
        Errno::from_io(std::io::Error::last_os_error())
    }
}
