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
    /// Device address of the first byte of the launch's private memory.
    pub launch: u64,
    /// Bytes of the launch's private memory.
    pub launch_bytes: u64,
    /// Bytes of a wave's.
    pub wave_bytes: u64,
}

impl Private {
    /// Where the first byte of the private memory lies that has the wave's whose base and offset add
    /// up to `sum`, and the offset; none if no wave of the launch has it.
    pub fn owner(&self, sum: u64) -> Option<(u64, u32)> {
        let within = sum.checked_sub(self.launch).filter(|within| *within < self.launch_bytes)?;
        let offset = within.checked_rem(self.wave_bytes)?;
        Some((sum - offset, offset as u32))
    }
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
