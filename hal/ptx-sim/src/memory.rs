//! Device memory: allocations whose pages clones share until one of them writes, and host memory that the GPU
//! may access.

use crate::host_memory::HostMemory;
use flipwave_device::{AccessKind, Address, DeviceError};
use std::ops::Range;
use std::sync::Arc;

/// Address of the first allocation, and the least distance between allocations.
const GAP: u64 = 1 << 16;
/// Bytes of a page. The last page of an allocation ends with it, so that copies of small allocations are
/// cheap; compiled code accesses a page without looking up its address again.
const PAGE: u64 = 1 << 16;
/// End of device memory, and of the addresses of host programs: below the windows of other state spaces.
const END: u64 = 1 << 47;
/// Size of device memory.
const MOST_BYTES: u64 = 1 << 36;

type Page = Arc<[u8]>;

/// Content of pages that were never written.
static ZEROES: [u8; PAGE as usize] = [0; PAGE as usize];

/// Device memory in contiguous host memory, less than 2 GiB.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Window {
    /// Address of the first byte.
    pub base: u64,
    /// Number of bytes.
    pub length: u64,
    /// The bytes. For reading only if the window is one for reading.
    pub bytes: *mut u8,
}

impl Window {
    /// A window without bytes. Compiled code may read from its host address if no lane does.
    pub const NONE: Window = Window { base: 0, length: 0, bytes: ZEROES.as_ptr().cast_mut() };
}

/// An allocation.
#[derive(Clone, PartialEq, Eq)]
struct Allocation {
    bytes: u64,
    /// The pages; `None` for pages of zeroes that were never written.
    pages: Vec<Option<Page>>,
}

impl Allocation {
    fn new(bytes: u64) -> Allocation {
        Allocation { bytes, pages: vec![None; bytes.div_ceil(PAGE) as usize] }
    }

    /// Splits a range of offsets at the ends of pages: number of the page, start in the page, and the part
    /// of the range.
    fn parts(offset: u64, bytes: usize) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            if done == bytes {
                return None;
            }
            let at = offset + done as u64;
            let start = (at % PAGE) as usize;
            let length = (bytes - done).min(PAGE as usize - start);
            let part = done..done + length;
            done += length;
            Some(((at / PAGE) as usize, start, part))
        })
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        let start = (offset % PAGE) as usize;
        if let Some(Some(page)) = self.pages.get((offset / PAGE) as usize)
            && let Some(part) = page.get(start..start + bytes.len())
        {
            bytes.copy_from_slice(part);
            return;
        }
        for (page, start, part) in Allocation::parts(offset, bytes.len()) {
            let length = part.len();
            match &self.pages[page] {
                Some(page) => bytes[part].copy_from_slice(&page[start..start + length]),
                None => bytes[part].fill(0),
            }
        }
    }

    /// Length of a page in bytes. Pages end at multiples of 16 bytes.
    fn page_bytes(&self, page: usize) -> usize {
        (self.bytes.next_multiple_of(16) - page as u64 * PAGE).min(PAGE) as usize
    }

    /// Writes bytes; returns `true` if a page has moved to other host memory.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let mut has_moved = false;
        for (page, start, part) in Allocation::parts(offset, bytes.len()) {
            let length = self.page_bytes(page);
            let page = &mut self.pages[page];
            if let Some(page) = page.as_mut().and_then(Arc::get_mut) {
                page[start..start + part.len()].copy_from_slice(&bytes[part]);
                continue;
            }
            has_moved = true;
            let page = page.get_or_insert_with(|| Arc::from(&ZEROES[..length]));
            Arc::make_mut(page)[start..start + part.len()].copy_from_slice(&bytes[part]);
        }
        has_moved
    }

    /// Number of the page at an offset, and its length as far as the allocation reaches.
    fn page_at(&self, offset: u64) -> (usize, usize) {
        let number = offset / PAGE;
        (number as usize, (self.bytes - number * PAGE).min(PAGE) as usize)
    }

    /// The page at an offset, as far as the allocation reaches; `None` for a page that cannot be written
    /// where it is.
    fn window(&mut self, offset: u64, access: AccessKind) -> Option<Window> {
        let (number, length) = self.page_at(offset);
        let (base, length) = (number as u64 * PAGE, length as u64);
        let page = self.pages.get_mut(number)?;
        let is_read = access == AccessKind::Read;
        let bytes = match (page, is_read) {
            (Some(page), false) => Arc::get_mut(page)?.as_mut_ptr(),
            (Some(page), true) => page.as_ptr().cast_mut(),
            (None, false) => return None,
            (None, true) => ZEROES.as_ptr().cast_mut(),
        };
        Some(Window { base, length, bytes })
    }
}

/// Allocations by ascending address.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    allocations: Vec<(u64, Allocation)>,
    /// Number of the allocation that the last access found: the next one is likely the same.
    last: usize,
    /// Changes whenever [windows](Memory::window) become invalid.
    generation: u64,
    /// Host memory that the GPU may access. Clones access the same memory.
    host: HostMemory,
    /// Address for the next allocation; `None` to place it after all others.
    next: Option<u64>,
}

impl PartialEq for Memory {
    fn eq(&self, other: &Memory) -> bool {
        self.allocations == other.allocations && self.host == other.host
    }
}

impl Memory {
    /// Allocates zeroed memory.
    pub fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        if let Some(start) = self.next {
            self.allocate_at(Address(start), bytes)?;
            let end = start.saturating_add(bytes);
            self.next = Some(end.saturating_add(GAP).next_multiple_of(GAP));
            return Ok(Address(start));
        }
        let end = self.allocations.last().map_or(0, |(start, last)| start + last.bytes);
        let start = (end + GAP).next_multiple_of(GAP);
        self.insert(start, bytes).map(|()| Address(start))
    }

    /// Places the following allocations without address from `start` upwards.
    pub fn allocate_from(&mut self, start: Address) {
        self.next = Some(start.0.next_multiple_of(GAP));
    }

    /// Host memory that the GPU may access.
    pub fn host_mut(&mut self) -> &mut HostMemory {
        &mut self.host
    }

    /// Allocates zeroed memory at an address.
    pub fn allocate_at(&mut self, address: Address, bytes: u64) -> Result<(), DeviceError> {
        let end = address.0.saturating_add(bytes.max(1));
        let before = self.number_of(end - 1).map(|number| &self.allocations[number]);
        if before.is_some_and(|(start, found)| start + found.bytes.max(1) > address.0) {
            return Err(DeviceError::Occupied { address, bytes });
        }
        self.insert(address.0, bytes)
    }

    fn insert(&mut self, start: u64, bytes: u64) -> Result<(), DeviceError> {
        let is_outside = start.checked_add(bytes).is_none_or(|end| end > END);
        let used: u64 = self.allocations.iter().map(|(_, found)| found.bytes).sum();
        if bytes > MOST_BYTES - used.min(MOST_BYTES) || is_outside {
            let reason = format!("the device has {MOST_BYTES} bytes, below {END:#x}");
            return Err(DeviceError::OutOfMemory { bytes, reason });
        }
        let place = self.allocations.partition_point(|(known, _)| *known < start);
        self.generation += 1;
        self.allocations.insert(place, (start, Allocation::new(bytes)));
        Ok(())
    }

    /// Frees an allocation.
    pub fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        let missing = DeviceError::NotAllocated { operation: "free", address, bytes: 0 };
        let found = self.allocations.binary_search_by_key(&address.0, |(start, _)| *start);
        self.allocations.remove(found.map_err(|_| missing)?);
        self.generation += 1;
        Ok(())
    }

    /// All allocations with their sizes.
    pub fn allocations(&self) -> Vec<(Address, u64)> {
        self.allocations.iter().map(|(start, found)| (Address(*start), found.bytes)).collect()
    }

    /// Number of the last allocation that begins at or before an address.
    fn number_of(&self, address: u64) -> Option<usize> {
        self.allocations.partition_point(|(start, _)| *start <= address).checked_sub(1)
    }

    fn find(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (start, found) = &self.allocations[self.number_of(address)?];
        Some((*start, found))
    }

    /// The allocation that contains a range, and the offset of the range.
    fn find_range(&mut self, address: u64, bytes: usize) -> Option<(&mut Allocation, u64)> {
        let offset_in = |(start, found): &(u64, Allocation)| {
            let offset = address.checked_sub(*start)?;
            let end = offset.checked_add(bytes as u64)?;
            (end <= found.bytes).then_some(offset)
        };
        let known = self.allocations.get(self.last).and_then(offset_in);
        if known.is_none() {
            self.last = self.number_of(address)?;
        }
        let found = &mut self.allocations[self.last];
        let offset = known.or_else(|| offset_in(found))?;
        Some((&mut found.1, offset))
    }

    /// The allocation that contains an address.
    pub fn around(&self, address: Address) -> Option<Range<Address>> {
        let (start, found) = self.find(address.0)?;
        let end = start + found.bytes;
        (address.0 < end).then_some(Address(start)..Address(end))
    }

    /// Reads bytes; returns `false`, and changes nothing, if they are not inside one allocation.
    pub fn read(&self, address: Address, bytes: &mut [u8]) -> bool {
        let Some((start, found)) = self.find(address.0) else {
            return self.host.read(address.0, bytes);
        };
        let offset = address.0 - start;
        let is_inside =
            offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= found.bytes);
        if is_inside {
            found.read(offset, bytes);
        }
        is_inside || self.host.read(address.0, bytes)
    }

    /// Reads bytes like [`Memory::read`], faster if the last access was to the same allocation.
    pub fn load(&mut self, address: Address, bytes: &mut [u8]) -> bool {
        let found = self.find_range(address.0, bytes.len());
        found.map(|(allocation, offset)| allocation.read(offset, bytes)).is_some()
            || self.host.read(address.0, bytes)
    }

    /// Writes bytes; returns `false`, and changes nothing, if they are not inside one allocation.
    pub fn write(&mut self, address: Address, bytes: &[u8]) -> bool {
        let Some((allocation, offset)) = self.find_range(address.0, bytes.len()) else {
            return self.host.write(address.0, bytes);
        };
        let has_moved = allocation.write(offset, bytes);
        self.generation += u64::from(has_moved);
        true
    }

    /// Address of the page around an address, and its bytes; `None` if there are none, or if they were never
    /// written.
    pub fn page(&mut self, address: u64) -> Option<(u64, &[u8])> {
        let (allocation, offset) = self.find_range(address, 1)?;
        let (number, length) = allocation.page_at(offset);
        let page = allocation.pages[number].as_ref()?;
        Some((address - offset % PAGE, &page[..length]))
    }

    /// Address of the page around an address, and its bytes; `None` if there are none, or if they must be moved
    /// before they are written.
    pub fn page_mut(&mut self, address: u64) -> Option<(u64, &mut [u8])> {
        let (allocation, offset) = self.find_range(address, 1)?;
        let (number, length) = allocation.page_at(offset);
        let page = Arc::get_mut(allocation.pages[number].as_mut()?)?;
        Some((address - offset % PAGE, &mut page[..length]))
    }

    /// The host memory around an address, for reading, or for reading and writing. It is valid until this
    /// memory is cloned, or its [generation](Memory::generation) changes. `None` if the address has no
    /// memory, or not yet any that can be written.
    pub fn window(&mut self, address: u64, access: AccessKind) -> Option<Window> {
        // Compiled code checks the alignment of offsets in a window.
        let (allocation, offset) = self.find_range(address, 1)?;
        let start = address - offset;
        let window = allocation.window(offset, access)?;
        start.is_multiple_of(16).then(|| Window { base: start + window.base, ..window })
    }

    /// A number that changes whenever windows become invalid.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Parts of a range that another memory does not share, as offsets from its start.
    pub fn unshared(&self, other: &Memory, start: Address, bytes: u64) -> Vec<Range<u64>> {
        let whole = || std::iter::once(0..bytes).collect();
        let (Some((first, a)), Some((second, b))) = (self.find(start.0), other.find(start.0))
        else {
            return whole();
        };
        let offset = start.0 - first;
        if first != second || a.bytes != b.bytes || offset.saturating_add(bytes) > a.bytes {
            return whole();
        }
        let mut parts: Vec<Range<u64>> = Vec::new();
        for (page, _, part) in Allocation::parts(offset, bytes as usize) {
            if is_shared(&a.pages[page], &b.pages[page]) {
                continue;
            }
            let part = part.start as u64..part.end as u64;
            match parts.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => parts.push(part),
            }
        }
        parts
    }

    /// Bytes of pages that another memory does not share.
    pub fn added_bytes(&self, other: &Memory) -> u64 {
        let pages = |(start, found): &(u64, Allocation)| {
            let others = other.find(*start).filter(|(known, _)| known == start);
            let others = others.map(|(_, others)| others);
            let bytes = |(number, page): (usize, &Option<Page>)| {
                let known = others.and_then(|others| others.pages.get(number));
                let is_added = known.is_none_or(|known| !is_shared(page, known));
                page.as_ref().filter(|_| is_added).map_or(0, |page| page.len() as u64)
            };
            found.pages.iter().enumerate().map(bytes).sum::<u64>()
        };
        self.allocations.iter().map(pages).sum()
    }
}

fn is_shared(a: &Option<Page>, b: &Option<Page>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_pages_until_one_writes() {
        let mut memory = Memory::default();
        let address = memory.allocate(3 * PAGE).expect("memory");
        assert!(memory.write(Address(address.0 + PAGE - 2), &[1, 2, 3, 4]));
        let mut clone = memory.clone();
        assert!(clone == memory && clone.unshared(&memory, address, 3 * PAGE).is_empty());
        assert!(clone.write(Address(address.0 + PAGE), &[9]));
        let unshared = clone.unshared(&memory, Address(address.0 + 8), 2 * PAGE);
        assert_eq!(
            unshared.iter().map(|part| (part.start, part.end)).collect::<Vec<_>>(),
            [(PAGE - 8, 2 * PAGE - 8)]
        );
        assert_eq!(clone.added_bytes(&memory), PAGE);
        let mut bytes = [0; 4];
        assert!(memory.read(Address(address.0 + PAGE - 2), &mut bytes));
        assert_eq!(bytes, [1, 2, 3, 4]);
        assert!(clone != memory);
    }

    #[test]
    fn accesses_lie_inside_one_allocation() {
        let mut memory = Memory::default();
        let address = memory.allocate(10).expect("memory");
        assert!(memory.write(Address(address.0 + 6), &[0; 4]));
        assert!(!memory.write(Address(address.0 + 7), &[0; 4]));
        assert!(!memory.read(Address(0), &mut [0]) && !memory.read(Address(u64::MAX), &mut [0; 2]));
        assert!(memory.allocate_at(Address(address.0 + 5), 1).is_err());
        assert!(memory.allocate(u64::MAX).is_err());
        assert_eq!(memory.around(Address(address.0 + 9)), Some(address..Address(address.0 + 10)));
        assert_eq!(memory.around(Address(address.0 + 10)), None);
        assert!(memory.free(address).is_ok() && memory.free(address).is_err());
    }
}
