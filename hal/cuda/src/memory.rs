//! Memory of the application that GPUs may access: allocations in the address ranges of devices, and host
//! memory.

use crate::handles::lock;
use crate::status::Status;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

/// First address of the memory of devices. Host programs have no memory there.
const START: u64 = 0x2000_0000_0000;
/// Addresses of a device: the first half for allocations, the second half for variables of modules.
const DEVICE: u64 = 1 << 38;
/// Alignment of allocations, and the unit in which they are mapped, in bytes.
const ALIGNMENT: u64 = 1 << 16;
const UNIT: u64 = 512;
/// Addresses for host memory that the driver allocates.
const HOST: u64 = 0x3000_0000_0000;
const HOST_END: u64 = 0x4000_0000_0000;
/// Size of a page of the host in bytes.
const PAGE: u64 = 4096;

/// Kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Device memory.
    Device,
    /// Managed memory: host memory that the driver allocated.
    Managed,
    /// Host memory that the driver allocated, with the flags of the allocation.
    Host(u32),
    /// Host memory that the application registered, with the flags of the registration.
    Registered(u32),
}

/// An allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The first address.
    pub start: u64,
    /// The requested size in bytes.
    pub bytes: u64,
    /// The kind.
    pub kind: Kind,
    /// Number of the device that the memory was allocated on.
    pub device: usize,
    /// Handle of the context that the memory was allocated in.
    pub context: usize,
}

impl Allocation {
    /// Bytes that the GPU may access.
    pub fn mapped_bytes(&self) -> u64 {
        match self.kind {
            Kind::Device => self.bytes.next_multiple_of(UNIT),
            _ => self.bytes,
        }
    }
}

/// Address from which the variables of a device's modules are placed.
pub fn variables_of(device: usize) -> u64 {
    START + device as u64 * DEVICE + DEVICE / 2
}

/// The device whose memory contains an address, allocated or not.
pub fn device_of(address: u64) -> Option<usize> {
    let offset = address.checked_sub(START)?;
    usize::try_from(offset / DEVICE).ok().filter(|device| *device < 16)
}

/// The allocations of all devices, by first address.
#[derive(Default)]
pub struct Allocations {
    all: Mutex<BTreeMap<u64, Allocation>>,
}

impl Allocations {
    /// Reserves the addresses of devices, so that the application gets no memory there and accesses of the host
    /// are faults.
    pub fn reserve(devices: usize) {
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_FIXED_NOREPLACE;
        let bytes = devices as u64 * DEVICE;
        // SAFETY: maps memory that cannot be accessed, and replaces none. If the system refuses, the addresses
        // are used all the same: they are addresses of the simulated device alone.
        unsafe { libc::mmap(START as *mut _, bytes as usize, libc::PROT_NONE, flags, -1, 0) };
    }

    /// Finds a place for device memory.
    pub fn add_device(
        &self,
        device: usize,
        context: usize,
        bytes: u64,
    ) -> Result<Allocation, Status> {
        let first = START + device as u64 * DEVICE;
        let mut all = lock(&self.all);
        let start = place(&all, first..first + DEVICE / 2, bytes).ok_or(Status::OUT_OF_MEMORY)?;
        let allocation = Allocation { start, bytes, kind: Kind::Device, device, context };
        all.insert(start, allocation);
        Ok(allocation)
    }

    /// Allocates host memory that GPUs may access, at an address that is the same in each run.
    pub fn add_host(
        &self,
        device: usize,
        context: usize,
        bytes: u64,
        kind: Kind,
    ) -> Result<Allocation, Status> {
        let size = bytes.checked_next_multiple_of(PAGE).ok_or(Status::OUT_OF_MEMORY)?;
        let mut all = lock(&self.all);
        let wanted = place(&all, HOST..HOST_END, size).ok_or(Status::OUT_OF_MEMORY)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let map = |flags| {
            // SAFETY: new memory, which replaces none.
            unsafe { libc::mmap(wanted as *mut _, size as usize, protection, flags, -1, 0) }
        };
        let mut start = map(flags | libc::MAP_FIXED_NOREPLACE);
        if start == libc::MAP_FAILED {
            // The application has memory there.
            start = map(flags);
        }
        if start == libc::MAP_FAILED {
            return Err(Status::OUT_OF_MEMORY);
        }
        let allocation = Allocation { start: start as u64, bytes, kind, device, context };
        all.insert(start as u64, allocation);
        Ok(allocation)
    }

    /// Adds memory of the application.
    pub fn add_registered(&self, allocation: Allocation) -> Result<(), Status> {
        let mut all = lock(&self.all);
        let end = allocation.start.checked_add(allocation.bytes).ok_or(Status::INVALID_VALUE)?;
        let before = all.range(..end).next_back();
        if before.is_some_and(|(start, found)| start + found.bytes > allocation.start) {
            return Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
        }
        all.insert(allocation.start, allocation);
        Ok(())
    }

    /// Removes an allocation that begins at an address and that `is_right` accepts.
    pub fn remove(&self, start: u64, is_right: impl Fn(Kind) -> bool) -> Option<Allocation> {
        let mut all = lock(&self.all);
        let found = all.get(&start).copied().filter(|found| is_right(found.kind))?;
        all.remove(&start);
        Some(found)
    }

    /// The allocation that contains an address.
    pub fn around(&self, address: u64) -> Option<Allocation> {
        let all = lock(&self.all);
        let (start, found) = all.range(..=address).next_back()?;
        (address - start < found.bytes.max(1)).then_some(*found)
    }

    /// All allocations.
    pub fn all(&self) -> Vec<Allocation> {
        lock(&self.all).values().copied().collect()
    }

    /// Bytes of device memory in use.
    pub fn used(&self, device: usize) -> u64 {
        let all = lock(&self.all);
        let of_device =
            all.values().filter(|found| found.device == device && found.kind == Kind::Device);
        of_device.map(Allocation::mapped_bytes).sum()
    }
}

/// The first place in a range for an allocation.
fn place(all: &BTreeMap<u64, Allocation>, range: Range<u64>, bytes: u64) -> Option<u64> {
    let mut start = range.start;
    for (known, allocation) in all.range(range.clone()) {
        if known.saturating_sub(start) >= bytes.saturating_add(UNIT) {
            break;
        }
        start = (known + allocation.mapped_bytes() + 1).next_multiple_of(ALIGNMENT);
    }
    let end = start.checked_add(bytes.checked_next_multiple_of(UNIT)?)?;
    (end <= range.end).then_some(start)
}

/// Returns memory to the system. Nobody may use it afterwards.
pub fn unmap(allocation: &Allocation) {
    if matches!(allocation.kind, Kind::Managed | Kind::Host(_)) {
        let bytes = allocation.bytes.next_multiple_of(PAGE) as usize;
        // SAFETY: memory of `add_host`; the application has freed it.
        unsafe { libc::munmap(allocation.start as *mut _, bytes) };
    }
}

/// The range of an allocation.
pub fn range(allocation: &Allocation) -> Range<flipwave_device::Address> {
    use flipwave_device::Address;
    Address(allocation.start)..Address(allocation.start + allocation.mapped_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_freed_memory_are_used_again() {
        let allocations = Allocations::default();
        let add = |bytes| allocations.add_device(0, 1, bytes).map(|found| found.start - START);
        assert_eq!([add(100), add(1 << 16), add(1)], [Ok(0), Ok(1 << 16), Ok(3 << 16)]);
        assert!(allocations.remove(START + (1 << 16), |kind| kind == Kind::Device).is_some());
        assert_eq!([add(1 << 20), add(5)], [Ok(4 << 16), Ok(1 << 16)]);
        assert_eq!(add(DEVICE), Err(Status::OUT_OF_MEMORY));
        assert_eq!(allocations.around(START + 99).map(|found| found.bytes), Some(100));
        assert_eq!(allocations.around(START + 100), None);
        assert_eq!(device_of(START + DEVICE), Some(1));
    }

    #[test]
    fn host_memory_has_the_same_addresses_in_each_run() {
        let allocations = Allocations::default();
        let add = |bytes| allocations.add_host(0, 1, bytes, Kind::Managed).expect("memory");
        let (first, second) = (add(10), add(1 << 17));
        assert_eq!([first.start - HOST, second.start - HOST], [0, 1 << 16]);
        // SAFETY: memory of the driver, which nobody else uses.
        unsafe { *((second.start + (1 << 17) - 1) as *mut u8) = 1 };
        assert_eq!(allocations.add_host(0, 1, u64::MAX, Kind::Managed), Err(Status::OUT_OF_MEMORY));
        for memory in [first, second] {
            assert!(allocations.remove(memory.start, |kind| kind == Kind::Managed).is_some());
            unmap(&memory);
        }
    }

    #[test]
    fn registered_memory_does_not_overlap() {
        let allocations = Allocations::default();
        let memory = |start, bytes| Allocation {
            start,
            bytes,
            kind: Kind::Registered(0),
            device: 0,
            context: 0,
        };
        assert_eq!(allocations.add_registered(memory(0x1000, 0x100)), Ok(()));
        let overlap = Err(Status::HOST_MEMORY_ALREADY_REGISTERED);
        assert_eq!(allocations.add_registered(memory(0x10ff, 1)), overlap);
        assert_eq!(allocations.add_registered(memory(0x800, 0x801)), overlap);
        assert_eq!(allocations.add_registered(memory(0x1100, 1)), Ok(()));
        assert_eq!(allocations.add_registered(memory(u64::MAX, 2)), Err(Status::INVALID_VALUE));
    }
}
