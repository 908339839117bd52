//! Zeroed memory of which only what is written takes any of the host's: the private memory of all
//! waves that could be resident is large, and few of them use all of theirs.

use super::access::{Region, RegionMut};
use super::bytes::Bytes;

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

    /// Whether they are the same.
    pub fn is_same(&self, other: &SparseBytes) -> bool {
        let count = self.chunks.len().max(other.chunks.len()) as u64;
        let is_same = |chunk: u64| {
            let [own, other] = [self, other].map(|all| all.readable(0, chunk * CHUNK).bytes);
            std::ptr::eq(own, other) || own == other
        };
        self.length == other.length && (0..count).all(is_same)
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
        let bytes = &mut self.chunks[index].own()[..length];
        RegionMut { base: base + start, bytes, is_shared: false }
    }

    /// Whether the chunk around an offset is not there yet, or may be others' too.
    #[inline(always)]
    pub fn moves_when_written(&self, offset: u64) -> bool {
        let chunk = self.chunks.get((offset / CHUNK) as usize);
        chunk.is_none_or(|chunk| chunk.is_empty() || chunk.is_shared())
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
mod tests;
