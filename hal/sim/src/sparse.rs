//! Zeroed memory of which only what is written takes any of the host's: the private memory of all
//! waves that could be resident is large, and few of them use all of theirs.

use crate::bytes::Bytes;
use crate::memory::{Region, RegionMut};

/// Bytes that come into being, a chunk at a time, when they are written. Clones share the chunks that
/// neither writes, once they are [shared](SparseBytes::share).
#[derive(Clone, Debug)]
pub struct SparseBytes {
    /// From the first on; empty ones, and those that are not there, are zero.
    chunks: Vec<Bytes>,
    length: u64,
}

/// Bytes of a chunk: a multiple of a page, and of the dwords of all lanes.
const CHUNK: u64 = 64 << 10;
static ZERO: [u8; CHUNK as usize] = [0; CHUNK as usize];

impl SparseBytes {
    /// So many zeros.
    pub fn new(length: u64) -> SparseBytes {
        SparseBytes { chunks: Vec::new(), length }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// The chunk around an offset, as far as there are bytes; the first has address `base`.
    #[inline]
    pub fn readable(&self, base: u64, offset: u64) -> Region<'_> {
        let start = offset / CHUNK * CHUNK;
        let bytes: &[u8] = match self.chunks.get((offset / CHUNK) as usize) {
            Some(chunk) if !chunk.is_empty() => chunk,
            _ => &ZERO,
        };
        let length = (self.length - start).min(CHUNK) as usize;
        Region { base: base + start, bytes: &bytes[..length] }
    }

    /// The same, to be written.
    #[inline]
    pub fn writable(&mut self, base: u64, offset: u64) -> RegionMut<'_> {
        let (index, start) = ((offset / CHUNK) as usize, offset / CHUNK * CHUNK);
        if self.chunks.get(index).is_none_or(|chunk| chunk.is_empty()) {
            self.make(index);
        }
        let length = (self.length - start).min(CHUNK) as usize;
        RegionMut { base: base + start, bytes: &mut self.chunks[index].own()[..length] }
    }

    #[cold]
    fn make(&mut self, index: usize) {
        if index >= self.chunks.len() {
            self.chunks.resize_with(index + 1, || Bytes::Own(Vec::new()));
        }
        self.chunks[index] = Bytes::Own(vec![0; CHUNK as usize]);
    }

    /// Lets clones from now on share what is there.
    pub fn share(&mut self) {
        let there = self.chunks.iter_mut().filter(|chunk| !chunk.is_empty());
        there.for_each(Bytes::share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_is_zero_and_takes_no_memory() {
        let mut bytes = SparseBytes::new(1 << 32);
        let region = bytes.writable(0x1000, 5 * CHUNK + 7);
        assert_eq!((region.base, region.bytes.len()), (0x1000 + 5 * CHUNK, CHUNK as usize));
        region.bytes[7] = 9;
        for (offset, expected) in
            [(0, 0), (5 * CHUNK + 7, 9), (5 * CHUNK + 8, 0), (u32::MAX.into(), 0)]
        {
            let region = bytes.readable(0x1000, offset);
            let at = 0x1000 + offset - region.base;
            assert_eq!(region.bytes[at as usize], expected, "{offset:#x}");
        }
        assert_eq!(bytes.chunks.iter().filter(|chunk| !chunk.is_empty()).count(), 1);
    }

    #[test]
    fn the_last_chunk_ends_where_the_memory_does() {
        let mut bytes = SparseBytes::new(CHUNK + 4096);
        assert_eq!(bytes.readable(0, CHUNK).bytes.len(), 4096);
        assert_eq!(bytes.writable(0, CHUNK + 4095).bytes.len(), 4096);
    }

    #[test]
    fn clones_share_chunks_until_one_writes() {
        let mut first = SparseBytes::new(2 * CHUNK);
        first.writable(0, 0).bytes[0] = 1;
        first.share();
        let mut second = first.clone();
        assert_eq!(first.readable(0, 0).bytes.as_ptr(), second.readable(0, 0).bytes.as_ptr());
        second.writable(0, 0).bytes[0] = 2;
        assert_eq!([first.readable(0, 0).bytes[0], second.readable(0, 0).bytes[0]], [1, 2]);
    }
}
