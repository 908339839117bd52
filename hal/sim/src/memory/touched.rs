//! Records of the device memory that compiled code accesses. The code writes them itself, since its
//! accesses are not observed.

use super::access::{Window, WindowAccess};
use flipwave_machine::{FootprintBuilder, LINE, Line, bits_of, line_of, lines_of};
use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::ptr;

/// Pointers with which compiled code records accesses to a [`TouchedRegion`], in chapters that have
/// been touched before.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TouchedNotes {
    /// For each line, a bit per byte, set if an access to the byte need not be recorded any more.
    pub bits: *mut u64,
    /// For each 64 lines, a bit per line.
    pub pages: *mut u64,
    /// For each 64 of those, a bit per entry; zero if nothing was touched.
    pub chapters: *mut u64,
}

impl TouchedNotes {
    /// Null pointers, for disabled recording.
    pub const NONE: TouchedNotes =
        TouchedNotes { bits: ptr::null_mut(), pages: ptr::null_mut(), chapters: ptr::null_mut() };
}

/// A range of memory, and its bytes accessed since they were last taken.
#[derive(Debug)]
pub struct TouchedRegion {
    base: u64,
    /// For each line, a bit per accessed byte.
    bits: Vec<u64>,
    /// For each 64 lines, a bit per line with accessed bytes.
    pages: Vec<u64>,
    /// For each 64 of those, a bit per entry with such lines.
    chapters: Vec<u64>,
    /// Indices of the nonzero chapters.
    touched: Vec<u32>,
}

impl TouchedRegion {
    /// Creates a region of `bytes` bytes without accesses; `base` starts a line.
    fn new(base: u64, bytes: u64) -> TouchedRegion {
        let lines = bytes.div_ceil(LINE) as usize;
        let zeros = |count| vec![0; count];
        TouchedRegion {
            base,
            bits: zeros(lines),
            pages: zeros(lines.div_ceil(64)),
            chapters: zeros(lines.div_ceil(64 * 64)),
            touched: Vec::new(),
        }
    }

    /// Pointers for compiled code.
    pub fn notes(&mut self) -> TouchedNotes {
        TouchedNotes {
            bits: self.bits.as_mut_ptr(),
            pages: self.pages.as_mut_ptr(),
            chapters: self.chapters.as_mut_ptr(),
        }
    }

    /// Records an access to `bytes` bytes at an offset, truncated at the region's end.
    #[inline]
    pub fn touch(&mut self, offset: u64, bytes: u64) {
        if let Some([line, mask]) = in_line(offset, bytes)
            && let Some(bits) = self.bits.get_mut(line as usize)
        {
            *bits |= mask;
            // Does not check whether the line was touched before: with scattered lanes the branch
            // is unpredictable.
            return self.touch_line(line as usize);
        }
        let end = offset.saturating_add(bytes).min(self.bits.len() as u64 * LINE);
        for [line, mask] in lines_of(offset, end.saturating_sub(offset)) {
            self.touch_bytes(line as usize, mask);
        }
    }

    /// Records an access to bytes of a line, given as a mask.
    #[inline]
    fn touch_bytes(&mut self, line: usize, mask: u64) {
        let bits = &mut self.bits[line];
        let is_first = *bits == 0;
        *bits |= mask;
        if is_first && mask != 0 {
            self.touch_line(line);
        }
    }

    /// Marks a line as accessed.
    #[inline]
    fn touch_line(&mut self, line: usize) {
        let (page, chapter) = (line / 64, line / (64 * 64));
        self.pages[page] |= 1 << (line % 64);
        let pages = &mut self.chapters[chapter];
        let is_first = *pages == 0;
        *pages |= 1 << (page % 64);
        if is_first {
            self.touched.push(chapter as u32);
        }
    }

    /// Passes the lines with accessed bytes to `take`, and clears them.
    #[inline]
    fn take_each(&mut self, mut take: impl FnMut(Line)) {
        let TouchedRegion { base, bits, pages, chapters, touched } = self;
        touched.sort_unstable();
        for chapter in touched.drain(..).map(|chapter| chapter as usize) {
            for page in bits_of(mem::take(&mut chapters[chapter])) {
                let page = chapter * 64 + page;
                for line in bits_of(mem::take(&mut pages[page])) {
                    let line = page * 64 + line;
                    take([*base / LINE + line as u64, mem::take(&mut bits[line])]);
                }
            }
        }
    }
}

/// The line that contains `bytes` bytes at an offset, and their mask, if they lie in one line, as
/// the bytes of one lane mostly do.
#[inline]
fn in_line(offset: u64, bytes: u64) -> Option<Line> {
    (1..=LINE - offset % LINE).contains(&bytes).then(|| line_of(offset, bytes))
}

/// The private memory of a workgroup, and its bytes accessed since they were last taken.
#[derive(Debug)]
pub struct TouchedPrivate {
    /// Addresses of the private memory.
    addresses: Range<u64>,
    /// Bytes that were read before they were written.
    read: TouchedRegion,
    written: TouchedRegion,
}

impl Default for TouchedPrivate {
    fn default() -> TouchedPrivate {
        let none = || TouchedRegion::new(0, 0);
        TouchedPrivate { addresses: 0..0, read: none(), written: none() }
    }
}

/// Pointers with which compiled code skips accesses to private memory that need not be recorded any
/// more; indexed by the line, starting at `base`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PrivateNotes {
    pub base: u64,
    pub read: *const u64,
    pub written: *const u64,
    /// Recorder of other accesses; null if nothing is recorded.
    pub touched: *mut TouchedPrivate,
}

impl PrivateNotes {
    /// Disabled recording.
    pub const NONE: PrivateNotes =
        PrivateNotes { base: 0, read: ptr::null(), written: ptr::null(), touched: ptr::null_mut() };
}

impl TouchedPrivate {
    /// Switches to another workgroup, without accesses. All records of the previous one must have
    /// been taken.
    fn begin(&mut self, addresses: Range<u64>) {
        let base = addresses.start / LINE * LINE;
        let lines = (addresses.end.max(base) - base).div_ceil(LINE);
        for region in [&mut self.read, &mut self.written] {
            if region.bits.len() as u64 == lines {
                region.base = base;
            } else {
                *region = TouchedRegion::new(base, lines * LINE);
            }
        }
        self.addresses = addresses;
    }

    /// Pointers for compiled code.
    fn notes(&mut self) -> PrivateNotes {
        PrivateNotes {
            base: self.read.base,
            read: self.read.bits.as_ptr(),
            written: self.written.bits.as_ptr(),
            touched: self,
        }
    }

    /// Records reads or writes of bytes of a line, given as a mask, truncated at the memory's end.
    #[inline]
    pub fn touch_bytes(&mut self, access: WindowAccess, line: usize, mask: u64) {
        let Some(written) = self.written.bits.get(line) else { return };
        match access {
            WindowAccess::Read => self.read.touch_bytes(line, mask & !written),
            WindowAccess::Write => self.written.touch_bytes(line, mask),
        }
    }

    /// Records reads or writes of `bytes` bytes at an offset.
    #[inline]
    pub fn touch(&mut self, access: WindowAccess, offset: u64, bytes: u64) {
        if let Some([line, mask]) = in_line(offset, bytes) {
            return self.touch_bytes(access, line as usize, mask);
        }
        for [line, mask] in lines_of(offset, bytes) {
            self.touch_bytes(access, line as usize, mask);
        }
    }

    /// Adds the accesses to a footprint, and clears them. Reads of bytes that the workgroup wrote
    /// before do not count.
    fn take(&mut self, footprint: &mut FootprintBuilder) {
        let FootprintBuilder { read, private, .. } = footprint;
        self.read.take_each(|line| read.insert_without(line, private));
        self.written.take_each(|line| private.insert_each([line]));
    }
}

/// Regions of memory with windows, and their accesses.
#[derive(Debug, Default)]
pub struct TouchedRegions {
    /// Reads and writes, by base, number of bytes and kind: in address order, in which sets are
    /// fastest.
    regions: BTreeMap<(u64, u64, WindowAccess), Box<TouchedRegion>>,
    /// Private memory of the current workgroup.
    private: Box<TouchedPrivate>,
}

impl TouchedRegions {
    /// Maximum bytes per region, to limit the memory for records.
    const LARGEST: u64 = 1 << 30;

    /// The window, or the part of it around an address, with recording of accesses; `None` if its
    /// bytes do not start a line.
    pub fn noting(&mut self, window: Window, address: u64, access: WindowAccess) -> Option<Window> {
        if !window.base.is_multiple_of(LINE) {
            return None;
        }
        let start = address.wrapping_sub(window.base) / Self::LARGEST * Self::LARGEST;
        let length = window.length.checked_sub(start)?.min(Self::LARGEST);
        let base = window.base + start;
        let new = || Box::new(TouchedRegion::new(base, length));
        let region = self.regions.entry((base, length, access)).or_insert_with(new);
        Some(Window {
            base,
            length,
            bytes: window.bytes.wrapping_add(start as usize),
            touched: &raw mut **region,
        })
    }

    /// Returns `true` if the regions are few, and so small that zeroing them for reuse is faster
    /// than allocating zeroed memory.
    pub fn is_worth_keeping(&self) -> bool {
        const MOST: usize = 32;
        const LARGEST: u64 = 1 << 28;
        let bytes: u64 = self.regions.keys().map(|(_, bytes, _)| bytes).sum();
        (1..=MOST).contains(&self.regions.len()) && bytes <= LARGEST
    }

    /// Starts the turn of a workgroup with this private memory.
    pub fn begin(&mut self, private: Range<u64>) {
        self.private.begin(private);
    }

    /// Addresses of the current workgroup's private memory.
    pub fn private_memory(&self) -> Range<u64> {
        self.private.addresses.clone()
    }

    /// Pointers with which compiled code records accesses to the current workgroup's private
    /// memory.
    pub fn private_notes(&mut self) -> PrivateNotes {
        self.private.notes()
    }

    /// Records reads or writes of bytes of the private memory.
    pub fn touch_private(&mut self, access: WindowAccess, bytes: Range<u64>) {
        let offset = bytes.start - self.private.read.base;
        self.private.touch(access, offset, bytes.end - bytes.start);
    }

    /// Adds all accesses to a footprint, and clears them.
    pub fn take(&mut self, footprint: &mut FootprintBuilder) {
        self.private.take(footprint);
        for ((_, _, access), region) in &mut self.regions {
            let set = match access {
                WindowAccess::Read => &mut footprint.read,
                WindowAccess::Write => &mut footprint.written,
            };
            region.take_each(|line| set.insert_line(line));
        }
    }
}
