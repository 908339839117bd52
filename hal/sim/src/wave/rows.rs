//! The vector registers of a wave: room for all that a wave can have, of which only what is written
//! takes any of the host's memory. Thousands of waves are resident at once, and most have few.

use super::registers::{Row, RowIndex};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

type File = [Row; RowIndex::ROOM];

/// The registers, zero at first.
pub struct Rows {
    /// What was allocated.
    block: NonNull<u8>,
    /// The file in it.
    file: NonNull<File>,
}

/// Room for the file wherever the allocation begins. An allocator that is asked for more alignment
/// than it gives by itself writes the zeros, all of them.
const LAYOUT: Layout = {
    let bytes = size_of::<File>() + align_of::<File>();
    match Layout::from_size_align(bytes, 16) {
        Ok(layout) => layout,
        Err(_) => panic!("the size is that of a register file"),
    }
};

impl Rows {
    /// All zero.
    pub fn zeroed() -> Rows {
        // SAFETY: the layout has a size.
        let block = unsafe { alloc_zeroed(LAYOUT) };
        let Some(block) = NonNull::new(block) else { handle_alloc_error(LAYOUT) };
        let offset = block.align_offset(align_of::<File>());
        // SAFETY: the block has as many bytes more than the file as the alignment, and the offset to
        // an aligned byte is less.
        let file = unsafe { block.byte_add(offset) }.cast();
        Rows { block, file }
    }

    /// Zeroes some, as fast as the host writes memory.
    pub fn zero(&mut self, rows: Range<usize>) {
        let rows = &mut self[rows];
        // SAFETY: so many rows are there, and zeros are rows.
        unsafe { rows.as_mut_ptr().write_bytes(0, rows.len()) };
    }
}

impl Deref for Rows {
    type Target = File;

    #[inline(always)]
    fn deref(&self) -> &File {
        // SAFETY: aligned, inside the block, which is ours; zeros and words are rows.
        unsafe { self.file.as_ref() }
    }
}

impl DerefMut for Rows {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut File {
        // SAFETY: as above, and borrowed mutably.
        unsafe { self.file.as_mut() }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not given back before.
        unsafe { dealloc(self.block.as_ptr(), LAYOUT) }
    }
}

// SAFETY: plain words that this owns alone.
unsafe impl Send for Rows {}
// SAFETY: as above; they are changed through a mutable borrow only.
unsafe impl Sync for Rows {}

#[cfg(test)]
mod tests;
