//! Decoding of ioctl requests (`asm-generic/ioctl.h`) and access to their arguments.

use super::abi::Plain;
use super::arguments::{bytes_of, read, with_array, write_bytes};
use super::error::Errno;
use std::ffi::c_void;

/// A request of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Type of the driver (`_IOC_TYPE`): `K` for KFD, `d` for a render node.
    pub driver_type: u8,
    /// Number of the call (`_IOC_NR`).
    pub number: u8,
    /// Size of the arguments (`_IOC_SIZE`).
    bytes: usize,
    /// `true` if changed arguments are copied back to the program (`_IOC_READ`).
    copies_back: bool,
    argument: *mut c_void,
}

impl Request {
    /// Decodes a request number.
    ///
    /// # Safety
    /// If `argument` points to memory, this memory has as many bytes as the request says, and
    /// nobody else uses it during the call.
    pub unsafe fn new(request: u64, argument: *mut c_void) -> Request {
        let field = |shift: u32, bits: u32| request >> shift & ((1 << bits) - 1);
        Request {
            driver_type: field(8, 8) as u8,
            number: field(0, 8) as u8,
            bytes: field(16, 14) as usize,
            copies_back: field(31, 1) != 0,
            argument,
        }
    }

    /// Calls `call` with the arguments, and copies the changed arguments back to the program.
    ///
    /// # Errors
    /// Those of `call`, and `EFAULT` for an invalid pointer to arguments.
    pub fn with<T: Plain>(
        &self,
        call: impl FnOnce(&mut T) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let address = self.argument as u64;
        let mut arguments: T = read(address, self.bytes)?;
        call(&mut arguments)?;
        if !self.copies_back {
            return Ok(());
        }
        let bytes = bytes_of(&arguments);
        // SAFETY: promised of `argument`; no more bytes than the request has.
        unsafe { write_bytes(address, &bytes[..self.bytes.min(bytes.len())]) }
    }

    /// As [`Request::with`], for arguments that are followed by an array of `count(arguments)`
    /// elements.
    ///
    /// # Errors
    /// As [`Request::with`], and `EINVAL` if the request is too short for the array.
    pub fn with_array<T: Plain, E: Plain>(
        &self,
        count: impl FnOnce(&T) -> u32,
        call: impl FnOnce(&mut T, &mut [E]) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let array = self.argument.wrapping_byte_add(size_of::<T>()) as u64;
        self.with(|arguments: &mut T| {
            let count = count(arguments) as usize;
            let room = self.bytes.saturating_sub(size_of::<T>()) / size_of::<E>();
            if count > room {
                return Err(Errno::INVALID);
            }
            // SAFETY: the array is within the bytes of the request.
            unsafe { with_array(array, count as u32, |elements| call(arguments, elements)) }
        })
    }
}
