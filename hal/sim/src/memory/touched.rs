//! What compiled code touches of device memory: it notes that itself, since nobody sees its accesses.

use super::access::{Window, WindowAccess};
use super::byte_set::{ByteSet, LINE};
use super::footprint::Footprint;
use flipwave_device::Address;
use rustc_hash::FxHashMap;

/// A stretch of memory, and which bytes of it were touched since this was last asked.
#[derive(Debug)]
pub struct TouchedRegion {
    base: u64,
    /// For each line a bit per byte.
    bits: Vec<u64>,
    /// The lines with bytes that were touched.
    lines: Vec<u32>,
}

impl TouchedRegion {
    /// None touched of so many bytes, the first of which begins a line.
    fn new(base: u64, bytes: u64) -> TouchedRegion {
        TouchedRegion { base, bits: vec![0; bytes.div_ceil(LINE) as usize], lines: Vec::new() }
    }

    /// What compiled code looks at: for each line a bit per byte, set where it need not note any more
    /// that it touches the byte.
    pub fn bits(&self) -> *const u64 {
        self.bits.as_ptr()
    }

    /// Notes that so many bytes from an offset on are touched, as far as there are any.
    pub fn touch(&mut self, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes).min(self.bits.len() as u64 * LINE);
        let mut at = offset;
        while at < end {
            let (line, first) = (at / LINE, at % LINE);
            let count = (end - at).min(LINE - first);
            let bits = &mut self.bits[line as usize];
            if *bits == 0 {
                self.lines.push(line as u32);
            }
            *bits |= u64::MAX >> (LINE - count) << first;
            at += count;
        }
    }

    /// Adds what was touched to a set, and forgets it.
    fn take(&mut self, set: &mut ByteSet) {
        set.reserve(self.lines.len());
        for line in self.lines.drain(..) {
            let bits = std::mem::take(&mut self.bits[line as usize]);
            set.insert_of_line(Address(self.base + u64::from(line) * LINE), bits);
        }
    }
}

/// The stretches of memory of which windows were given.
#[derive(Debug, Default)]
pub struct TouchedRegions {
    /// By the base and the number of bytes, what was read and what was written.
    regions: FxHashMap<(u64, u64, WindowAccess), Box<TouchedRegion>>,
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

    /// Adds all that was touched to a footprint, and forgets it.
    pub fn take(&mut self, footprint: &mut Footprint) {
        for ((_, _, access), region) in &mut self.regions {
            region.take(match access {
                WindowAccess::Read => &mut footprint.read,
                WindowAccess::Write => &mut footprint.written,
            });
        }
    }
}
