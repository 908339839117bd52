//! The number of a request and its arguments (`asm-generic/ioctl.h`).

use super::abi::Plain;
use super::error::Errno;
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
    /// `argument` points to as many bytes as the request says, which nobody else uses meanwhile.
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
    /// Those of `call`, and `EFAULT` without arguments.
    pub fn with<T: Plain>(
        &self,
        call: impl FnOnce(&mut T) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        if self.argument.is_null() {
            return Err(Errno::FAULT);
        }
        let bytes = self.bytes.min(size_of::<T>());
        // SAFETY: any bits are a `T`, also none.
        let mut arguments: T = unsafe { std::mem::zeroed() };
        let own = (&raw mut arguments).cast::<u8>();
        // SAFETY: promised of `argument`; `bytes` is no more than either has.
        unsafe { std::ptr::copy_nonoverlapping(self.argument.cast::<u8>(), own, bytes) };
        call(&mut arguments)?;
        if !self.is_answered {
            return Ok(());
        }
        let own = (&raw const arguments).cast::<u8>();
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(own, self.argument.cast::<u8>(), bytes) };
        Ok(())
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

/// An array that arguments name.
///
/// # Errors
/// `EFAULT` without an array, and `ENOMEM` for one that no program has.
///
/// # Safety
/// There are `count` elements at this address, or it is 0.
pub unsafe fn read_array<E: Plain>(address: u64, count: u32) -> Result<Vec<E>, Errno> {
    const MOST: u32 = 1 << 20;
    let place = address as *const E;
    if count > MOST {
        return Err(Errno::NO_MEMORY);
    }
    if place.is_null() && count > 0 {
        return Err(Errno::FAULT);
    }
    // SAFETY: promised by the caller.
    let element = |index: usize| unsafe { place.add(index).read_unaligned() };
    Ok((0..count as usize).map(element).collect())
}

/// Runs `call` on an array that arguments name, and gives the program what it has changed of it.
///
/// # Errors
/// Those of `call` and of [`read_array`].
///
/// # Safety
/// As [`read_array`]; nobody else uses the array meanwhile.
pub unsafe fn with_array<E: Plain>(
    address: u64,
    count: u32,
    call: impl FnOnce(&mut [E]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    // SAFETY: promised by the caller.
    let mut elements: Vec<E> = unsafe { read_array(address, count) }?;
    call(&mut elements)?;
    for (index, element) in elements.into_iter().enumerate() {
        // SAFETY: as above.
        unsafe { (address as *mut E).add(index).write_unaligned(element) };
    }
    Ok(())
}
