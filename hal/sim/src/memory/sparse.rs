//! Memory of which only what is written takes any of the host's. The private memory of all waves that
//! could be resident is large, and few of them use all of theirs; and a run that goes on from a state of
//! another one mostly writes little of the memory that it shares with that.

use super::access::{Region, RegionMut};
use super::bytes::Bytes;
use std::sync::Arc;

/// Bytes that come into being, a chunk at a time, when they are written. Clones share the chunks that
/// neither writes, once they are [shared](SparseBytes::share).
#[derive(Clone, Debug)]
pub struct SparseBytes {
    /// From the first on; of empty ones, and of those that are not there, what is beneath counts.
    chunks: Vec<Bytes>,
    /// As many bytes, which others have, too; zeros if there are none.
    beneath: Option<Arc<Vec<u8>>>,
    length: u64,
    /// Chunks that were made.
    made: u64,
}

/// Bytes of a chunk: a multiple of a page, and of the dwords of all lanes.
const CHUNK: u64 = 64 << 10;
static ZERO: [u8; CHUNK as usize] = [0; CHUNK as usize];

impl SparseBytes {
    /// So many zeros.
    pub fn new(length: u64) -> SparseBytes {
        SparseBytes { chunks: Vec::new(), beneath: None, length, made: 0 }
    }

    /// The bytes that others have, too.
    pub fn over(beneath: Arc<Vec<u8>>) -> SparseBytes {
        let length = beneath.len() as u64;
        SparseBytes { beneath: Some(beneath), ..SparseBytes::new(length) }
    }

    /// Whether it is better to have all bytes, now that one around `offset` is written: those beneath
    /// were written to in many places.
    pub fn is_better_whole(&self, offset: u64) -> bool {
        const FEW: u64 = 16;
        self.beneath.is_some()
            && self.made >= FEW.max(self.length / CHUNK / 8)
            && self.chunks.get((offset / CHUNK) as usize).is_none_or(|chunk| chunk.is_empty())
    }

    /// All of them.
    pub fn to_whole(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.length as usize);
        while (whole.len() as u64) < self.length {
            whole.extend_from_slice(self.readable(0, whole.len() as u64).bytes);
        }
        whole
    }

    /// Bytes of the host that a clone takes for them that shares them.
    pub fn host_bytes_of_chunks(&self) -> u64 {
        (self.chunks.len() * size_of::<Bytes>()) as u64
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// From where on there are nothing but zeros.
    pub fn end(&self) -> u64 {
        match self.beneath {
            Some(_) => self.length,
            None => self.length.min(self.chunks.len() as u64 * CHUNK),
        }
    }

    /// The chunk around an offset, as far as there are bytes; the first has address `base`.
    #[inline]
    pub fn readable(&self, base: u64, offset: u64) -> Region<'_> {
        let start = offset / CHUNK * CHUNK;
        let length = (self.length - start).min(CHUNK) as usize;
        let bytes: &[u8] = match (self.chunks.get((offset / CHUNK) as usize), &self.beneath) {
            (Some(chunk), _) if !chunk.is_empty() => chunk,
            (_, Some(beneath)) => &beneath[start as usize..],
            _ => &ZERO,
        };
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
        let mut bytes = vec![0; CHUNK as usize];
        if let Some(beneath) = &self.beneath {
            let beneath = &beneath[index * CHUNK as usize..];
            let count = beneath.len().min(bytes.len());
            bytes[..count].copy_from_slice(&beneath[..count]);
        }
        self.chunks[index] = Bytes::Own(bytes);
        self.made += 1;
    }

    /// Lets clones from now on share what is there.
    pub fn share(&mut self) {
        let there = self.chunks.iter_mut().filter(|chunk| !chunk.is_empty());
        there.for_each(Bytes::share);
    }
}

#[cfg(test)]
mod tests;
