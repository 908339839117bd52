//! Windows of the flat address space that lead to LDS and to private memory, at the bases the
//! ROCm kernel driver sets on gfx9 (`SH_MEM_BASES`).

/// Base of the window to LDS.
pub const SHARED: u64 = 1 << 48;
/// Base of the window to private memory.
pub const PRIVATE: u64 = 2 << 48;

/// Where a flat address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A byte of the workgroup's LDS.
    Lds(u32),
    /// A byte of the lane's private memory.
    Private(u32),
    /// Device memory.
    Global(u64),
}

/// Sorts a flat address into its window by its upper half.
#[inline(always)]
pub fn window(address: u64) -> Window {
    match address & !0xffff_ffff {
        SHARED => Window::Lds(address as u32),
        PRIVATE => Window::Private(address as u32),
        _ => Window::Global(address),
    }
}
