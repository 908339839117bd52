//! The number of a request and its arguments (`asm-generic/ioctl.h`).

use super::abi::Plain;
use super::error::Errno;
use super::program::{bytes_of, read, with_array, write_bytes};
use std::ffi::c_void;

/// A request, as a program makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whose it is: `K` of the compute driver, `d` of a render node.
    pub family: u8,
    /// Which one.
    pub number: u8,
    bytes: usize,
    /// Whether the program gets what is changed of the argument.
    is_answered: bool,
    argument: *mut c_void,
}

impl Request {
    /// A request with the argument of `ioctl`.
    ///
    /// # Safety
    /// Where `argument` points to memory, it is as many bytes as the request says, which nobody else
    /// uses meanwhile.
    pub unsafe fn new(request: u64, argument: *mut c_void) -> Request {
        let field = |shift: u32, bits: u32| request >> shift & ((1 << bits) - 1);
        Request {
            family: field(8, 8) as u8,
            number: field(0, 8) as u8,
            bytes: field(16, 14) as usize,
            is_answered: field(31, 1) != 0,
            argument,
        }
    }

    /// Runs `call` on the arguments, and gives the program what it has changed of them.
    ///
    /// # Errors
    /// Those of `call`, and `EFAULT` where there are no arguments.
    pub fn with<T: Plain>(
        &self,
        call: impl FnOnce(&mut T) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let place = self.argument as u64;
        let mut arguments: T = read(place, self.bytes)?;
        call(&mut arguments)?;
        if !self.is_answered {
            return Ok(());
        }
        let own = bytes_of(&arguments);
        // SAFETY: promised of `argument`; no more than it has.
        unsafe { write_bytes(place, &own[..self.bytes.min(own.len())]) }
    }

    /// As [`Request::with`], for arguments that are followed by `count(arguments)` others.
    ///
    /// # Errors
    /// As [`Request::with`], and `EINVAL` if the request is not long enough for them.
    pub fn with_array<T: Plain, E: Plain>(
        &self,
        count: impl FnOnce(&T) -> u32,
        call: impl FnOnce(&mut T, &mut [E]) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let after = self.argument.wrapping_byte_add(size_of::<T>()).cast::<E>();
        self.with(|arguments: &mut T| {
            let count = count(arguments) as usize;
            let room = self.bytes.saturating_sub(size_of::<T>()) / size_of::<E>();
            if count > room {
                return Err(Errno::INVALID);
            }
            // SAFETY: they are within the bytes that the request has.
            unsafe { with_array(after as u64, count as u32, |others| call(arguments, others)) }
        })
    }
}
