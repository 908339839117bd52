//! Memory that uses host memory only for written parts. The private memory of all potentially
//! resident waves is large, and few waves use all of theirs; and a run that continues from another
//! run's state mostly writes little of the memory that it shares with it.

use super::access::{Region, RegionMut};
use super::address_space::AddressSpace;
use super::aligned::AlignedBytes;
use super::bytes::Bytes;
use std::sync::Arc;

/// Bytes that are allocated in chunks when they are written. Clones share the chunks that neither
/// writes after a call of [`SparseBytes::share`].
#[derive(Clone, Debug)]
pub struct SparseBytes {
    /// Chunks from offset 0 on; for empty and missing ones the base content applies.
    chunks: Vec<Bytes>,
    /// Base content of equal length, which is shared; zeros if there is none.
    beneath: Option<Arc<AlignedBytes>>,
    length: u64,
    /// Bytes per chunk.
    chunk: u64,
    /// Number of allocated chunks.
    made: u64,
}

/// Default and maximum size of a chunk in bytes.
const CHUNK: u64 = 64 << 10;
const MOST: u64 = 512 << 10;
static ZERO: [u8; MOST as usize] = [0; MOST as usize];

impl SparseBytes {
    /// Creates `length` zeros.
    pub fn new(length: u64) -> SparseBytes {
        SparseBytes { chunks: Vec::new(), beneath: None, length, chunk: CHUNK, made: 0 }
    }

    /// Creates `length` zeros whose pieces of `piece` bytes each lie in one chunk, if they are not
    /// too large.
    pub fn of_pieces(length: u64, piece: u64) -> SparseBytes {
        // The least multiple that is also one of a page.
        let odd = AddressSpace::PAGE.trailing_zeros().saturating_sub(piece.trailing_zeros());
        let pages = piece.max(1) << odd;
        let chunk = if pages <= MOST { pages * (CHUNK / pages).max(1) } else { CHUNK };
        SparseBytes { chunk, ..SparseBytes::new(length) }
    }

    /// Creates a copy-on-write view of shared bytes.
    pub fn over(beneath: Arc<AlignedBytes>) -> SparseBytes {
        let length = beneath.len() as u64;
        SparseBytes { beneath: Some(beneath), ..SparseBytes::new(length) }
    }

    /// Returns `true` if all bytes should be copied, now that one around `offset` is written,
    /// because many chunks of the base content have been written.
    pub fn is_better_whole(&self, offset: u64) -> bool {
        const FEW: u64 = 16;
        self.beneath.is_some()
            && self.made >= FEW.max(self.length / self.chunk / 8)
            && self.chunks.get((offset / self.chunk) as usize).is_none_or(|chunk| chunk.is_empty())
    }

    /// Copies all bytes.
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

    /// Host memory in bytes that a clone uses for its chunk table.
    pub fn host_bytes_of_chunks(&self) -> u64 {
        (self.chunks.len() * size_of::<Bytes>()) as u64
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Offset from which on all bytes are zero.
    pub fn end(&self) -> u64 {
        match self.beneath {
            Some(_) => self.length,
            None => self.length.min(self.chunks.len() as u64 * self.chunk),
        }
    }

    /// The chunk around an offset, up to the end of the bytes; `base` is the address of offset 0.
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

    /// The chunk around an offset, for writing.
    #[inline]
    pub fn writable(&mut self, base: u64, offset: u64) -> RegionMut<'_> {
        let (index, start) = ((offset / self.chunk) as usize, offset / self.chunk * self.chunk);
        if self.chunks.get(index).is_none_or(|chunk| chunk.is_empty()) {
            self.make(index);
        }
        let length = (self.length - start).min(self.chunk) as usize;
        let bytes = &mut self.chunks[index].make_writable()[..length];
        RegionMut { base: base + start, bytes, is_shared: false }
    }

    /// Returns `true` if the chunk around an offset is missing or shared.
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

    /// Makes future clones share the chunks.
    pub fn share(&mut self) {
        let there = self.chunks.iter_mut().filter(|chunk| !chunk.is_empty());
        there.for_each(Bytes::share);
    }
}

#[cfg(test)]
mod tests;
