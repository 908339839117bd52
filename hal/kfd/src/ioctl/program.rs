//! Memory of the program that a request names. It is the kernel that copies: where nothing is, or
//! nothing that can be accessed so, the answer is [`Errno::FAULT`], as it would be the driver's.

use super::abi::Plain;
use super::error::Errno;
use crate::program::{Way, copy_bytes};
use std::mem::MaybeUninit;

/// Copies bytes, as [`copy_bytes`].
///
/// # Safety
/// As there.
unsafe fn copy(way: Way, address: u64, own: *mut u8, bytes: usize) -> Result<(), Errno> {
    // SAFETY: promised by the caller.
    unsafe { copy_bytes(way, address, own, bytes) }.then_some(()).ok_or(Errno::FAULT)
}

/// Writes bytes.
///
/// # Errors
/// [`Errno::FAULT`] unless all of them can be written; some may be.
///
/// # Safety
/// If there is memory at the address, it is the program's, which has it written.
pub unsafe fn write_bytes(address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let own = bytes.as_ptr().cast_mut();
    // SAFETY: what is borrowed is read; the rest is promised by the caller.
    unsafe { copy(Way::ToProgram, address, own, bytes.len()) }
}

/// The bytes of a value.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: a `T` is bytes, none of which is padding.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }
}

/// A value of which the program has given so many bytes; the others are 0.
///
/// # Errors
/// [`Errno::FAULT`] unless all of them can be read.
pub fn read<T: Plain>(address: u64, bytes: usize) -> Result<T, Errno> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: no more bytes than it has, all of which are there; any bits are a `T`.
    unsafe {
        copy(Way::FromProgram, address, value.as_mut_ptr().cast(), bytes.min(size_of::<T>()))?;
        Ok(value.assume_init())
    }
}

/// An array.
///
/// # Errors
/// As [`read`], and `ENOMEM` for one that no program has.
pub fn read_array<E: Plain>(address: u64, count: u32) -> Result<Vec<E>, Errno> {
    const MOST: u32 = 1 << 20;
    if count > MOST {
        return Err(Errno::NO_MEMORY);
    }
    let count = count as usize;
    let mut all = Vec::<E>::with_capacity(count);
    // SAFETY: room for as many, whose bytes are all read; any bits are an `E`.
    unsafe {
        copy(Way::FromProgram, address, all.as_mut_ptr().cast(), count * size_of::<E>())?;
        all.set_len(count);
    }
    Ok(all)
}

/// Runs `call` on an array that arguments name, and gives the program what it has changed of it.
///
/// # Errors
/// Those of `call`, of [`read_array`] and of [`write_bytes`].
///
/// # Safety
/// As [`write_bytes`].
pub unsafe fn with_array<E: Plain>(
    address: u64,
    count: u32,
    call: impl FnOnce(&mut [E]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut elements: Vec<E> = read_array(address, count)?;
    call(&mut elements)?;
    let bytes = size_of_val(&elements[..]);
    // SAFETY: promised by the caller.
    unsafe { copy(Way::ToProgram, address, elements.as_mut_ptr().cast(), bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ioctl::abi::DestroyEvent;

    /// A page that can be read and written, one that can be read, and one where nothing is.
    fn pages() -> u64 {
        // SAFETY: new memory, of which the last page is given back.
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
    fn what_is_not_there_is_an_error_and_no_end() {
        let start = pages();
        let [last, read_only, beyond] = [4088, 4096, 2 * 4096].map(|offset| start + offset);
        // SAFETY: pages of the test's own.
        let write = |at| unsafe { write_bytes(at, &[1; 8]) };
        assert_eq!(write(last), Ok(()));
        let wrong = [read_only, beyond, beyond - 4, 0, 8, u64::MAX - 3, 1 << 47];
        assert_eq!(wrong.map(write), [Err(Errno::FAULT); 7]);
        let word = |at| read::<DestroyEvent>(at, 8).map(|word| [word.event_id, word.pad]);
        assert_eq!([word(last), word(read_only)], [Ok([0x0101_0101; 2]), Ok([0; 2])]);
        let wrong = [beyond, beyond - 4, 0, 8, u64::MAX - 3, 1 << 47];
        assert_eq!(wrong.map(word), [Err(Errno::FAULT); 6]);
        // SAFETY: as above.
        let with = |at, count| unsafe { with_array(at, count, |_: &mut [DestroyEvent]| Ok(())) };
        let results = [(last, 1), (last, 2), (beyond, 0), (beyond - 8, 2)];
        let results = results.map(|(at, count)| with(at, count));
        assert_eq!(results, [Ok(()), Err(Errno::FAULT), Ok(()), Err(Errno::FAULT)]);
    }
}
