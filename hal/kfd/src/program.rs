//! Memory of the program, of which nothing is sure. It is the kernel that copies, so that an address where
//! nothing is does no harm, unless the system forbids that: then it is read and written as it is.

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    FromProgram,
    ToProgram,
}

/// Copies bytes between the program's memory at an address and `own`; whether all of them could be.
///
/// # Safety
/// `own` has as many bytes. What is written is nobody else's, as far as there is something.
pub unsafe fn copy_bytes(way: Way, address: u64, own: *mut u8, bytes: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    let part = |place: *mut u8| libc::iovec { iov_base: place.cast(), iov_len: bytes };
    let (local, remote) = (part(own), part(address as *mut u8));
    // SAFETY: promised by the caller; an address where nothing is does no harm.
    let done = unsafe {
        let own = libc::getpid();
        match way {
            Way::FromProgram => libc::process_vm_readv(own, &local, 1, &remote, 1, 0),
            Way::ToProgram => libc::process_vm_writev(own, &local, 1, &remote, 1, 0),
        }
    };
    if usize::try_from(done).is_ok_and(|done| done == bytes) {
        return true;
    }
    // Some containers forbid the call, on oneself, too.
    let error = std::io::Error::last_os_error().raw_os_error();
    let is_forbidden = done < 0 && matches!(error, Some(libc::EPERM | libc::ENOSYS));
    if !is_forbidden || address == 0 {
        return false;
    }
    let place = address as *mut u8;
    let (from, to) = if way == Way::FromProgram { (place, own) } else { (own, place) };
    // SAFETY: promised by the caller, if the program has not made it up: then it ends here.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    true
}

/// Bytes at an address, if all of them can be read.
pub fn read_bytes(address: u64, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; size];
    // SAFETY: as many bytes as there is room for.
    let is_done = unsafe { copy_bytes(Way::FromProgram, address, bytes.as_mut_ptr(), size) };
    is_done.then_some(bytes)
}
