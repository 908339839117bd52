//! Memory of which only what is written takes any of the host's. The private memory of all waves that
//! could be resident is large, and few of them use all of theirs; and a run that goes on from a state of
//! another one mostly writes little of the memory that it shares with that.

use super::access::{Region, RegionMut};
use super::address_space::AddressSpace;
use super::aligned::AlignedBytes;
use super::bytes::Bytes;
use std::sync::Arc;

/// Bytes that come into being, a chunk at a time, when they are written. Clones share the chunks that
/// neither writes, once they are [shared](SparseBytes::share).
#[derive(Clone, Debug)]
pub struct SparseBytes {
    /// From the first on; of empty ones, and of those that are not there, what is beneath counts.
    chunks: Vec<Bytes>,
    /// As many bytes, which others have, too; zeros if there are none.
    beneath: Option<Arc<AlignedBytes>>,
    length: u64,
    /// Of a chunk.
    chunk: u64,
    /// Chunks that were made.
    made: u64,
}

/// Bytes of a chunk where nothing speaks for others, and most of them.
const CHUNK: u64 = 64 << 10;
const MOST: u64 = 512 << 10;
static ZERO: [u8; MOST as usize] = [0; MOST as usize];

impl SparseBytes {
    /// So many zeros.
    pub fn new(length: u64) -> SparseBytes {
        SparseBytes { chunks: Vec::new(), beneath: None, length, chunk: CHUNK, made: 0 }
    }

    /// So many zeros in pieces, each of which is in one chunk, if that is not too large.
    pub fn of_pieces(length: u64, piece: u64) -> SparseBytes {
        // The least multiple that is one of a page, too.
        let odd = AddressSpace::PAGE.trailing_zeros().saturating_sub(piece.trailing_zeros());
        let pages = piece.max(1) << odd;
        let chunk = if pages <= MOST { pages * (CHUNK / pages).max(1) } else { CHUNK };
        SparseBytes { chunk, ..SparseBytes::new(length) }
    }

    /// The bytes that others have, too.
    pub fn over(beneath: Arc<AlignedBytes>) -> SparseBytes {
        let length = beneath.len() as u64;
        SparseBytes { beneath: Some(beneath), ..SparseBytes::new(length) }
    }

    /// Whether it is better to have all bytes, now that one around `offset` is written: those beneath
    /// were written to in many places.
    pub fn is_better_whole(&self, offset: u64) -> bool {
        const FEW: u64 = 16;
        self.beneath.is_some()
            && self.made >= FEW.max(self.length / self.chunk / 8)
            && self.chunks.get((offset / self.chunk) as usize).is_none_or(|chunk| chunk.is_empty())
    }

    /// All of them.
    pub fn to_whole(&self) -> AlignedBytes {
        let mut whole = AlignedBytes::new(self.length as usize);
        let mut place = 0;
        while place < whole.len() {
            let bytes = self.readable(0, place as u64).bytes;
            whole[place..place + bytes.len()].copy_from_slice(bytes);
            place += bytes.len();
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
            None => self.length.min(self.chunks.len() as u64 * self.chunk),
        }
    }

    /// The chunk around an offset, as far as there are bytes; the first has address `base`.
    #[inline]
    pub fn readable(&self, base: u64, offset: u64) -> Region<'_> {
        let start = offset / self.chunk * self.chunk;
        let length = (self.length - start).min(self.chunk) as usize;
        let bytes: &[u8] = match (self.chunks.get((offset / self.chunk) as usize), &self.beneath) {
            (Some(chunk), _) if !chunk.is_empty() => chunk,
            (_, Some(beneath)) => &beneath[start as usize..],
            _ => &ZERO,
        };
        Region { base: base + start, bytes: &bytes[..length] }
    }

    /// The same, to be written.
    #[inline]
    pub fn writable(&mut self, base: u64, offset: u64) -> RegionMut<'_> {
        let (index, start) = ((offset / self.chunk) as usize, offset / self.chunk * self.chunk);
        if self.chunks.get(index).is_none_or(|chunk| chunk.is_empty()) {
            self.make(index);
        }
        let length = (self.length - start).min(self.chunk) as usize;
        let bytes = &mut self.chunks[index].own()[..length];
        RegionMut { base: base + start, bytes, is_shared: false }
    }

    /// Whether the chunk around an offset is not there yet, or may be others' too.
    #[inline(always)]
    pub fn moves_when_written(&self, offset: u64) -> bool {
        let chunk = self.chunks.get((offset / self.chunk) as usize);
        chunk.is_none_or(|chunk| chunk.is_empty() || chunk.is_shared())
    }

    #[cold]
    fn make(&mut self, index: usize) {
        if index >= self.chunks.len() {
            self.chunks.resize_with(index + 1, || Bytes::Own(AlignedBytes::default()));
        }
        let mut bytes = AlignedBytes::new(self.chunk as usize);
        if let Some(beneath) = &self.beneath {
            let beneath = &beneath[index * self.chunk as usize..];
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
