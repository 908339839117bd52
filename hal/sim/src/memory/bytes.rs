//! The bytes of an allocation.

use super::aligned::AlignedBytes;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

/// Size from which on shared bytes are copied in parts when they are written.
pub const LARGE: usize = 256 << 10;

/// Bytes that clones may share until one of them writes.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Exclusive; a clone copies them.
    Own(AlignedBytes),
    /// Shared with clones.
    Shared(Arc<AlignedBytes>),
    /// Memory that the host accesses at the same time; clones refer to the same memory.
    Host(HostBytes),
}

/// Memory of the host process.
#[derive(Clone, Debug)]
pub struct HostBytes {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a range of addresses; the creator promised that any thread may access it.
unsafe impl Send for HostBytes {}
// SAFETY: as for `Send`.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// Host memory at these host addresses; `None` at address 0.
    ///
    /// # Safety
    /// The range must be mapped, readable and writable, as long as this value or a clone exists.
    /// The host and other devices may access it at the same time: racing accesses produce some
    /// mixture of the written values, as on hardware.
    pub unsafe fn new(range: Range<u64>) -> Option<HostBytes> {
        let start = NonNull::new(range.start as *mut u8)?;
        Some(HostBytes { start, length: (range.end - range.start) as usize })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: promised by the creator. No code relies on the absence of concurrent writes: each
        // access of a wave requests the bytes again.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for the shared borrow.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Bytes {
    /// Makes future clones share the bytes.
    pub fn share(&mut self) {
        if let Bytes::Own(bytes) = self {
            *self = Bytes::Shared(Arc::new(std::mem::take(bytes)));
        }
    }

    /// Returns `true` if clones may share the bytes.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        matches!(self, Bytes::Shared(_))
    }

    /// Returns `true` for memory of the host.
    #[inline(always)]
    pub fn is_host(&self) -> bool {
        matches!(self, Bytes::Host(_))
    }

    /// Returns the bytes for writing; shared bytes are copied first.
    #[inline(always)]
    pub fn make_writable(&mut self) -> &mut [u8] {
        if let Bytes::Shared(_) = self {
            self.copy();
        }
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Host(bytes) => bytes.bytes_mut(),
            Bytes::Shared(_) => &mut [],
        }
    }

    #[cold]
    fn copy(&mut self) {
        if let Bytes::Shared(shared) = self {
            *self = Bytes::Own(Arc::unwrap_or_clone(std::mem::take(shared)));
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
            Bytes::Host(bytes) => bytes.bytes(),
        }
    }
}

#[cfg(test)]
mod tests;
