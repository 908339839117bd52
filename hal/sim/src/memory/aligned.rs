//! Bytes aligned to the host's cache lines.

use std::alloc::{Layout, alloc_zeroed};
use std::ops::{Deref, DerefMut};

/// Size of the host's cache lines, and of its longest vectors.
const LINE: usize = 64;

/// Bytes aligned to the host's cache lines, each of which holds a whole number of words: the words
/// that part of a wave accesses together then mostly lie in one line instead of two.
#[derive(Debug, Default)]
pub struct AlignedBytes {
    /// Allocation, up to the end of the bytes.
    bytes: Vec<u8>,
    /// Index of the first byte.
    start: usize,
}

impl AlignedBytes {
    /// Allocates `length` zeros.
    pub fn new(length: usize) -> AlignedBytes {
        AlignedBytes::within(vec![0; length + LINE - 1], length)
    }

    /// Allocates `length` zeros; `None` if the host is out of memory. The system maps the pages of
    /// large allocations when they are touched: programs reserve hundreds of megabytes and use few,
    /// and faulty runs do so repeatedly.
    pub fn try_new(length: usize) -> Option<AlignedBytes> {
        let capacity = length.checked_add(LINE - 1)?;
        let layout = Layout::array::<u8>(capacity).ok()?;
        // SAFETY: the size is at least one byte.
        let bytes = unsafe { alloc_zeroed(layout) };
        if bytes.is_null() {
            return None;
        }
        // SAFETY: allocated like a vector of that capacity, and all its bytes are zero.
        let bytes = unsafe { Vec::from_raw_parts(bytes, capacity, capacity) };
        Some(AlignedBytes::within(bytes, length))
    }

    /// Takes the first `length` bytes of a vector that begin at a line; the vector is one line
    /// minus one byte longer.
    fn within(mut bytes: Vec<u8>, length: usize) -> AlignedBytes {
        let start = to_next_line(bytes.as_ptr());
        bytes.truncate(start + length);
        AlignedBytes { bytes, start }
    }
}

/// Distance in bytes to the next line.
fn to_next_line(start: *const u8) -> usize {
    start.align_offset(LINE).min(LINE - 1)
}

impl From<&[u8]> for AlignedBytes {
    fn from(bytes: &[u8]) -> AlignedBytes {
        let mut copy: Vec<u8> = Vec::with_capacity(bytes.len() + LINE - 1);
        let start = to_next_line(copy.as_ptr());
        copy.resize(start, 0);
        copy.extend_from_slice(bytes);
        AlignedBytes { bytes: copy, start }
    }
}

impl Clone for AlignedBytes {
    fn clone(&self) -> AlignedBytes {
        AlignedBytes::from(&**self)
    }
}

impl PartialEq for AlignedBytes {
    fn eq(&self, other: &AlignedBytes) -> bool {
        **self == **other
    }
}

impl Eq for AlignedBytes {}

impl Deref for AlignedBytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl DerefMut for AlignedBytes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_copies_start_at_a_cache_line() {
        for length in [1, 63, 64, 4096, 1 << 20] {
            let mut bytes = AlignedBytes::try_new(length).expect("memory");
            assert!(bytes.len() == length && bytes.iter().all(|byte| *byte == 0));
            bytes[length - 1] = 7;
            let copy = bytes.clone();
            assert!(*copy == *bytes);
            for aligned in [&bytes, &copy, &AlignedBytes::new(length)] {
                assert!(aligned.as_ptr().addr().is_multiple_of(LINE), "{length}");
            }
        }
        assert!(AlignedBytes::try_new(0).is_some_and(|none| none.is_empty()));
        assert!(AlignedBytes::try_new(usize::MAX).is_none());
    }
}
