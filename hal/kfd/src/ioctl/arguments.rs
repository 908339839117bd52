//! Access to the program's memory that a request names. The kernel makes the copies: an invalid
//! address is [`Errno::FAULT`], as for the kernel's driver.

use super::abi::Plain;
use super::error::Errno;
use crate::user_memory::{Direction, copy_bytes};
use std::mem::MaybeUninit;

/// Copies bytes, see [`copy_bytes`].
///
/// # Safety
/// As for [`copy_bytes`].
unsafe fn copy(
    direction: Direction,
    address: u64,
    buffer: *mut u8,
    bytes: usize,
) -> Result<(), Errno> {
    // SAFETY: promised by the caller.
    unsafe { copy_bytes(direction, address, buffer, bytes) }.then_some(()).ok_or(Errno::FAULT)
}

/// Writes bytes to the program's memory.
///
/// # Errors
/// [`Errno::FAULT`] unless all of them can be written; some may be.
///
/// # Safety
/// If there is memory at the address, the program expects that it is overwritten.
pub unsafe fn write_bytes(address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let buffer = bytes.as_ptr().cast_mut();
    // SAFETY: the buffer is only read; the rest is promised by the caller.
    unsafe { copy(Direction::ToProgram, address, buffer, bytes.len()) }
}

/// The bytes of a value.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: a `T` has no padding.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
}

/// Reads a value of which the program has the first `bytes` bytes; the others are 0.
///
/// # Errors
/// [`Errno::FAULT`] unless all of them can be read.
pub fn read<T: Plain>(address: u64, bytes: usize) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::zeroed();
    let bytes = bytes.min(size_of::<T>());
    // SAFETY: no more bytes than the value has; every bit pattern is a `T`.
    unsafe {
        copy(Direction::FromProgram, address, value.as_mut_ptr().cast(), bytes)?;
        Ok(value.assume_init())
    }
}

/// Reads an array.
///
/// # Errors
/// As [`read`], and `ENOMEM` for an array of more than 2^20 elements.
pub fn read_array<E: Plain>(address: u64, count: u32) -> Result<Vec<E>, Errno> {
    const MAX_COUNT: u32 = 1 << 20;
    if count > MAX_COUNT {
        return Err(Errno::NO_MEMORY);
    }
    let count = count as usize;
    let mut elements = Vec::<E>::with_capacity(count);
    let bytes = count * size_of::<E>();
    // SAFETY: the vector has room for `count` elements, all of which are read; every bit pattern is
    // an `E`.
    unsafe {
        copy(Direction::FromProgram, address, elements.as_mut_ptr().cast(), bytes)?;
        elements.set_len(count);
    }
    Ok(elements)
}

/// Calls `call` with an array of the program, and copies the changed array back.
///
/// # Errors
/// Those of `call`, of [`read_array`] and of [`write_bytes`].
///
/// # Safety
/// As for [`write_bytes`].
pub unsafe fn with_array<E: Plain>(
    address: u64,
    count: u32,
    call: impl FnOnce(&mut [E]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut elements: Vec<E> = read_array(address, count)?;
    call(&mut elements)?;
    let bytes = size_of_val(&elements[..]);
    // SAFETY: promised by the caller.
    unsafe { copy(Direction::ToProgram, address, elements.as_mut_ptr().cast(), bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ioctl::abi::DestroyEvent;

    /// Maps a writable page, a read-only page and an unmapped page.
    fn pages() -> u64 {
        // SAFETY: new memory, of which the last page is unmapped again.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(std::ptr::null_mut(), 3 * 4096, access, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            libc::mprotect(start.byte_add(4096), 4096, libc::PROT_READ);
            libc::munmap(start.byte_add(2 * 4096), 4096);
            start as u64
        }
    }

    #[test]
    fn inaccessible_memory_is_an_error_and_no_crash() {
        let start = pages();
        let [last, read_only, unmapped] = [4088, 4096, 2 * 4096].map(|offset| start + offset);
        // SAFETY: pages of this test.
        let write = |address| unsafe { write_bytes(address, &[1; 8]) };
        assert_eq!(write(last), Ok(()));
        let wrong = [read_only, unmapped, unmapped - 4, 0, 8, u64::MAX - 3, 1 << 47];
        assert_eq!(wrong.map(write), [Err(Errno::FAULT); 7]);
        let word = |address| read::<DestroyEvent>(address, 8).map(|word| [word.event_id, word.pad]);
        assert_eq!([word(last), word(read_only)], [Ok([0x0101_0101; 2]), Ok([0; 2])]);
        let wrong = [unmapped, unmapped - 4, 0, 8, u64::MAX - 3, 1 << 47];
        assert_eq!(wrong.map(word), [Err(Errno::FAULT); 6]);
        // SAFETY: as above.
        let with =
            |address, count| unsafe { with_array(address, count, |_: &mut [DestroyEvent]| Ok(())) };
        let arrays = [(last, 1), (last, 2), (unmapped, 0), (unmapped - 8, 2)];
        let results = arrays.map(|(address, count)| with(address, count));
        assert_eq!(results, [Ok(()), Err(Errno::FAULT), Ok(()), Err(Errno::FAULT)]);
    }
}
