//! Vector register file of a wave: virtual room for the maximum number of registers, of which only
//! written pages occupy host memory. Thousands of waves are resident at once, and most have few
//! registers.

use super::registers::{Row, RowIndex};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

type File = [Row; RowIndex::ROOM];

/// The registers, initially zero.
pub struct Rows {
    /// Start of the allocation.
    block: NonNull<u8>,
    /// Start of the aligned file inside the allocation.
    file: NonNull<File>,
}

/// Room for an aligned file in an unaligned allocation. An allocator that is asked for more
/// alignment than its default writes zeros to all of the memory.
const LAYOUT: Layout = {
    let bytes = size_of::<File>() + align_of::<File>();
    match Layout::from_size_align(bytes, 16) {
        Ok(layout) => layout,
        Err(_) => panic!("the size is that of a register file"),
    }
};

impl Rows {
    /// A file of zeros.
    pub fn zeroed() -> Rows {
        // SAFETY: the layout's size is not zero.
        let block = unsafe { alloc_zeroed(LAYOUT) };
        let Some(block) = NonNull::new(block) else { handle_alloc_error(LAYOUT) };
        let offset = block.align_offset(align_of::<File>());
        // SAFETY: the block is longer than the file by the alignment, and the offset to an aligned
        // byte is less than that.
        let file = unsafe { block.byte_add(offset) }.cast();
        Rows { block, file }
    }

    /// Zeroes some rows, at the host's memory bandwidth.
    pub fn zero(&mut self, rows: Range<usize>) {
        let rows = &mut self[rows];
        // SAFETY: the slice has this many rows, and zeros are valid rows.
        unsafe { rows.as_mut_ptr().write_bytes(0, rows.len()) };
    }
}

impl Deref for Rows {
    type Target = File;

    #[inline(always)]
    fn deref(&self) -> &File {
        // SAFETY: aligned, and inside the block that `self` owns; any words are valid rows.
        unsafe { self.file.as_ref() }
    }
}

impl DerefMut for Rows {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut File {
        // SAFETY: see `deref`; the borrow is mutable.
        unsafe { self.file.as_mut() }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed only here.
        unsafe { dealloc(self.block.as_ptr(), LAYOUT) }
    }
}

// SAFETY: plain words with a single owner.
unsafe impl Send for Rows {}
// SAFETY: as for `Send`; changes require a mutable borrow.
unsafe impl Sync for Rows {}

#[cfg(test)]
mod tests;
