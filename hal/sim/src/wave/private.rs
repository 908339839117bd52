//! Private memory, or scratch: where the bytes of a lane lie in device memory. Consecutive dwords
//! of a lane lie as many dwords apart as the wave has lanes, so that the lanes' dwords are adjacent
//! (AMDGPUUsage, "Private"). A launch's buffer resource swizzles to the same places.

use flipwave_isa::Lane;

/// The private memory of a wave, as the launch has placed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Private {
    /// Device address of the first byte.
    pub base: u64,
    /// Bytes of a lane.
    pub bytes: u32,
}

/// Bytes from one dword of a lane to its next, in a wave of `lanes` lanes.
#[inline(always)]
pub fn stride(lanes: u8) -> u32 {
    4 * u32::from(lanes)
}

/// Address of the byte at `offset` of a lane, in a wave of `lanes` lanes whose private memory
/// begins at `base`.
#[inline(always)]
pub fn address(base: u64, lanes: u8, lane: Lane, offset: u32) -> u64 {
    let (dword, byte) = (u64::from(offset / 4), u64::from(offset % 4));
    base.wrapping_add(dword * u64::from(stride(lanes)) + u64::from(lane.0) * 4 + byte)
}
