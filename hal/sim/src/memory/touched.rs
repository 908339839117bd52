//! What compiled code touches of device memory: it notes that itself, since nobody sees its accesses.

use super::access::{Window, WindowAccess};
use super::byte_set::{LINE, Line, bits_of, line_of, lines_of};
use super::footprint::FootprintBuilder;
use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;
use std::ptr;

/// Where compiled code notes for itself what it touches of a [`TouchedRegion`], in chapters of which some
/// was touched before.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TouchedNotes {
    /// For each line a bit per byte, set where it need not be noted any more that the byte is touched.
    pub bits: *mut u64,
    /// For each 64 lines a bit per line.
    pub pages: *mut u64,
    /// For each 64 of those a bit per one; zero where nothing was touched.
    pub chapters: *mut u64,
}

impl TouchedNotes {
    /// Nowhere.
    pub const NONE: TouchedNotes =
        TouchedNotes { bits: ptr::null_mut(), pages: ptr::null_mut(), chapters: ptr::null_mut() };
}

/// A stretch of memory, and which bytes of it were touched since this was last asked.
#[derive(Debug)]
pub struct TouchedRegion {
    base: u64,
    /// For each line a bit per byte.
    bits: Vec<u64>,
    /// For each 64 lines a bit per line that has bytes which were touched.
    pages: Vec<u64>,
    /// For each 64 of those a bit per one that has such lines.
    chapters: Vec<u64>,
    /// Those that have any.
    touched: Vec<u32>,
}

impl TouchedRegion {
    /// None touched of so many bytes, the first of which begins a line.
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

    /// Where compiled code notes it.
    pub fn notes(&mut self) -> TouchedNotes {
        TouchedNotes {
            bits: self.bits.as_mut_ptr(),
            pages: self.pages.as_mut_ptr(),
            chapters: self.chapters.as_mut_ptr(),
        }
    }

    /// Notes that so many bytes from an offset on are touched, as far as there are any.
    #[inline]
    pub fn touch(&mut self, offset: u64, bytes: u64) {
        if let Some([line, mask]) = in_line(offset, bytes)
            && let Some(bits) = self.bits.get_mut(line as usize)
        {
            *bits |= mask;
            // Whether some of it was touched before is not asked: of lanes here and there nobody can predict
            // it.
            return self.touch_line(line as usize);
        }
        let end = offset.saturating_add(bytes).min(self.bits.len() as u64 * LINE);
        for [line, mask] in lines_of(offset, end.saturating_sub(offset)) {
            self.touch_bytes(line as usize, mask);
        }
    }

    /// The same of bytes of a line, a bit each.
    #[inline]
    fn touch_bytes(&mut self, line: usize, mask: u64) {
        let bits = &mut self.bits[line];
        let is_first = *bits == 0;
        *bits |= mask;
        if is_first && mask != 0 {
            self.touch_line(line);
        }
    }

    /// Notes that some of a line is touched.
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

    /// Has `take` take the lines that have bytes which were touched, and forgets them.
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

/// The line in which so many bytes from an offset on lie, and which of its bytes they are, if it is one: mostly
/// they are those of a lane.
#[inline]
fn in_line(offset: u64, bytes: u64) -> Option<Line> {
    (1..=LINE - offset % LINE).contains(&bytes).then(|| line_of(offset, bytes))
}

/// The private memory of a workgroup, and which bytes of it were touched since this was last asked.
#[derive(Debug)]
pub struct TouchedPrivate {
    /// Addresses of it.
    own: Range<u64>,
    /// Bytes that were read when they had not been written.
    read: TouchedRegion,
    written: TouchedRegion,
}

impl Default for TouchedPrivate {
    fn default() -> TouchedPrivate {
        let none = || TouchedRegion::new(0, 0);
        TouchedPrivate { own: 0..0, read: none(), written: none() }
    }
}

/// Where compiled code sees what need not be noted any more of private memory, by the line from an address
/// on.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PrivateNotes {
    pub base: u64,
    pub read: *const u64,
    pub written: *const u64,
    /// What notes the rest; null where nothing is to be noted.
    pub touched: *mut TouchedPrivate,
}

impl PrivateNotes {
    /// Nothing is to be noted.
    pub const NONE: PrivateNotes =
        PrivateNotes { base: 0, read: ptr::null(), written: ptr::null(), touched: ptr::null_mut() };
}

impl TouchedPrivate {
    /// Becomes that of another workgroup, of which nothing was touched. Of the one before all was taken.
    fn begin(&mut self, own: Range<u64>) {
        let base = own.start / LINE * LINE;
        let lines = (own.end.max(base) - base).div_ceil(LINE);
        for region in [&mut self.read, &mut self.written] {
            if region.bits.len() as u64 == lines {
                region.base = base;
            } else {
                *region = TouchedRegion::new(base, lines * LINE);
            }
        }
        self.own = own;
    }

    /// Where compiled code sees it.
    fn notes(&mut self) -> PrivateNotes {
        PrivateNotes {
            base: self.read.base,
            read: self.read.bits.as_ptr(),
            written: self.written.bits.as_ptr(),
            touched: self,
        }
    }

    /// Notes that bytes of a line, a bit each, are read or written, as far as there are any.
    #[inline]
    pub fn touch_bytes(&mut self, access: WindowAccess, line: usize, mask: u64) {
        let Some(written) = self.written.bits.get(line) else { return };
        match access {
            WindowAccess::Read => self.read.touch_bytes(line, mask & !written),
            WindowAccess::Write => self.written.touch_bytes(line, mask),
        }
    }

    /// The same of so many bytes from an offset on.
    #[inline]
    pub fn touch(&mut self, access: WindowAccess, offset: u64, bytes: u64) {
        if let Some([line, mask]) = in_line(offset, bytes) {
            return self.touch_bytes(access, line as usize, mask);
        }
        for [line, mask] in lines_of(offset, bytes) {
            self.touch_bytes(access, line as usize, mask);
        }
    }

    /// Adds what was touched to a footprint, and forgets it. What the workgroup has written before does not
    /// count as read.
    fn take(&mut self, footprint: &mut FootprintBuilder) {
        let FootprintBuilder { read, private, .. } = footprint;
        self.read.take_each(|line| read.insert_without(line, private));
        self.written.take_each(|line| private.insert_each([line]));
    }
}

/// The stretches of memory of which windows were given.
#[derive(Debug, Default)]
pub struct TouchedRegions {
    /// By the base and the number of bytes, what was read and what was written: in the order of addresses,
    /// in which sets take it fastest.
    regions: BTreeMap<(u64, u64, WindowAccess), Box<TouchedRegion>>,
    /// Of the workgroup whose turn it is.
    private: Box<TouchedPrivate>,
}

impl TouchedRegions {
    /// Most bytes of a region, so that not too much memory is needed to note what is touched.
    const LARGEST: u64 = 1 << 30;

    /// The window, or the part of it around an address, of whose bytes it is noted which are touched;
    /// nothing if its bytes do not begin a line.
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

    /// Whether they are few, and not so large that the system has memory of zeros faster than they are
    /// zeroed for others.
    pub fn is_worth_keeping(&self) -> bool {
        const MOST: usize = 32;
        const LARGEST: u64 = 1 << 28;
        let bytes: u64 = self.regions.keys().map(|(_, bytes, _)| bytes).sum();
        (1..=MOST).contains(&self.regions.len()) && bytes <= LARGEST
    }

    /// The turn of a workgroup with this private memory begins.
    pub fn begin(&mut self, private: Range<u64>) {
        self.private.begin(private);
    }

    /// Addresses of the private memory of the workgroup whose turn it is.
    pub fn private_memory(&self) -> Range<u64> {
        self.private.own.clone()
    }

    /// Where compiled code sees what is noted of that.
    pub fn private_notes(&mut self) -> PrivateNotes {
        self.private.notes()
    }

    /// Notes that bytes of that, which are all in it, are read or written.
    pub fn touch_private(&mut self, access: WindowAccess, bytes: Range<u64>) {
        let offset = bytes.start - self.private.read.base;
        self.private.touch(access, offset, bytes.end - bytes.start);
    }

    /// Adds all that was touched to a footprint, and forgets it.
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
