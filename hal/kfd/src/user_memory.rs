//! Memory of the program, which may be unmapped at any time. The kernel makes the copies, so that
//! an unmapped address is an error and no crash. Where the system forbids that, memory is accessed
//! directly.

/// Direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    FromProgram,
    ToProgram,
}

/// Copies `bytes` bytes between the program's memory at `address` and `buffer`. Returns `false`
/// unless all of them were copied.
///
/// # Safety
/// `buffer` is valid for `bytes` bytes. If there is memory at `address` and it is written, nobody
/// else uses it.
pub unsafe fn copy_bytes(
    direction: Direction,
    address: u64,
    buffer: *mut u8,
    bytes: usize,
) -> bool {
    if bytes == 0 {
        return true;
    }
    let part = |start: *mut u8| libc::iovec { iov_base: start.cast(), iov_len: bytes };
    let (local, remote) = (part(buffer), part(address as *mut u8));
    // SAFETY: promised by the caller; an unmapped address is an error.
    let copied = unsafe {
        let process = libc::getpid();
        match direction {
            Direction::FromProgram => libc::process_vm_readv(process, &local, 1, &remote, 1, 0),
            Direction::ToProgram => libc::process_vm_writev(process, &local, 1, &remote, 1, 0),
        }
    };
    if usize::try_from(copied).is_ok_and(|copied| copied == bytes) {
        return true;
    }
    // Some containers forbid these calls, even for the calling process.
    let error = std::io::Error::last_os_error().raw_os_error();
    let is_forbidden = copied < 0 && matches!(error, Some(libc::EPERM | libc::ENOSYS));
    if !is_forbidden || address == 0 {
        return false;
    }
    let program = address as *mut u8;
    let (from, to) = match direction {
        Direction::FromProgram => (program, buffer),
        Direction::ToProgram => (buffer, program),
    };
    // SAFETY: promised by the caller, unless the program passed an invalid address: then it crashes
    // here.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    true
}

/// Reads bytes at an address; `None` unless all of them can be read.
pub fn read_bytes(address: u64, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; size];
    // SAFETY: the buffer has `size` bytes.
    let is_read = unsafe { copy_bytes(Direction::FromProgram, address, bytes.as_mut_ptr(), size) };
    is_read.then_some(bytes)
}
