//! Byte accesses to a workgroup's LDS.

use crate::memory::atomic::Atomic;
use flipwave_device::{Address, FaultCause};
use flipwave_isa::Lane;

/// Reads bytes at an LDS address; bytes out of range are zero.
pub fn read(lds: &[u8], at: u32, length: usize) -> [u8; 16] {
    let mut bytes = [0; 16];
    let start = at as usize;
    if let Some(range) = start.checked_add(length).and_then(|end| lds.get(start..end)) {
        bytes[..length].copy_from_slice(range);
    }
    bytes
}

/// Writes at an LDS address, if in range.
pub fn write(lds: &mut [u8], at: u32, bytes: &[u8]) {
    let start = at as usize;
    if let Some(range) = start.checked_add(bytes.len()).and_then(|end| lds.get_mut(start..end)) {
        range.copy_from_slice(bytes);
    }
}

/// Reads, modifies and writes one LDS word; returns the old value. The operands are the data, and
/// the comparison value or mask.
pub fn modify(
    lds: &mut [u8],
    at: u32,
    lane: Lane,
    atomic: Atomic,
    [data, second]: [u64; 2],
) -> Result<u64, FaultCause> {
    let length = usize::from(atomic.bytes);
    if !(at as usize).is_multiple_of(length) {
        return Err(FaultCause::Misaligned {
            address: Address(crate::memory::aperture::SHARED + u64::from(at)),
            alignment: u32::from(atomic.bytes),
            lane: Some(lane),
        });
    }
    let old = u64_of(&read(lds, at, length));
    write(lds, at, &atomic.apply(old, data, second).to_le_bytes()[..length]);
    Ok(old)
}

/// The first eight bytes as an integer.
pub fn u64_of(bytes: &[u8; 16]) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[byte]))
}
