//! The bytes of an allocation.

use super::aligned::AlignedBytes;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

/// How many there are from which on what is shared is copied in parts when it is written.
pub const LARGE: usize = 256 << 10;

/// Bytes that clones may share until one of them writes.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// Nobody else has them; a clone copies them.
    Own(AlignedBytes),
    /// Clones have them too.
    Shared(Arc<AlignedBytes>),
    /// Memory of the host, which has them at the same time, and so have clones.
    Host(HostBytes),
}

/// Memory of the host process.
#[derive(Clone, Debug)]
pub struct HostBytes {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a range of addresses; whoever made it promised that any thread may access what is there.
unsafe impl Send for HostBytes {}
// SAFETY: as above.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// The host's memory at these host addresses; `None` at address 0.
    ///
    /// # Safety
    /// The range is mapped, readable and writable, for as long as this or a clone of it is there.
    /// The host and other devices may access it at the same time: racing accesses give some mixture
    /// of what is written, as they do on hardware.
    pub unsafe fn new(range: Range<u64>) -> Option<HostBytes> {
        let start = NonNull::new(range.start as *mut u8)?;
        Some(HostBytes { start, length: (range.end - range.start) as usize })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: promised by whoever made it. What others write meanwhile is not relied on: each
        // access of a wave asks for the bytes anew.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Bytes {
    /// Lets clones from now on share the bytes.
    pub fn share(&mut self) {
        if let Bytes::Own(bytes) = self {
            *self = Bytes::Shared(Arc::new(std::mem::take(bytes)));
        }
    }

    /// Whether clones may have them too.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        matches!(self, Bytes::Shared(_))
    }

    /// Whether they are the host's too.
    #[inline(always)]
    pub fn is_host(&self) -> bool {
        matches!(self, Bytes::Host(_))
    }

    /// The bytes, to be written: from now on nobody else has them.
    #[inline(always)]
    pub fn own(&mut self) -> &mut [u8] {
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
