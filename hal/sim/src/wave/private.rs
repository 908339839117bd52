//! Private memory (scratch): the layout of a lane's bytes in device memory. Consecutive dwords of a
//! lane have a stride of one dword per lane of the wave, so that the lanes' dwords are adjacent
//! (AMDGPUUsage, "Private"). The swizzle of a launch's buffer resource has the same layout.

use flipwave_isa::Lane;

/// Location of a wave's private memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Private {
    /// Device address of the first byte.
    pub base: u64,
    /// Bytes per lane.
    pub bytes: u32,
    /// Device address of the first byte of the launch's private memory.
    pub launch: u64,
    /// Bytes of the launch's private memory.
    pub launch_bytes: u64,
    /// Bytes per wave.
    pub wave_bytes: u64,
}

impl Private {
    /// Returns the base of the private memory of the wave whose base plus an offset is `sum`, and
    /// the offset; `None` if the launch has no such wave.
    pub fn owner(&self, sum: u64) -> Option<(u64, u32)> {
        let within = sum.checked_sub(self.launch).filter(|within| *within < self.launch_bytes)?;
        let offset = within.checked_rem(self.wave_bytes)?;
        Some((sum - offset, offset as u32))
    }
}

/// Byte distance between consecutive dwords of a lane, in a wave of `lanes` lanes.
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
