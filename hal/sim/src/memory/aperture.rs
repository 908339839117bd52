//! Windows of the flat address space that lead to LDS and to private memory, at the bases the
//! ROCm kernel driver sets on gfx9 (`SH_MEM_BASES`).

/// Base of the window to LDS.
pub const SHARED: u64 = 1 << 48;
/// Base of the window to private memory.
pub const PRIVATE: u64 = 2 << 48;

/// Of gfx1250, what flat addresses of private memory have in bits 63:58 (LLVM's lowering of
/// `llvm.amdgcn.is.private` compares these). The value is our own: no driver's is published.
pub const GLOBAL_PRIVATE: u64 = 2 << 58;

/// The lane, and the sum of its wave's base and an offset, of a flat address of private memory of
/// gfx1250; none of other addresses (LLVM's lowering of `addrspacecast`).
#[inline(always)]
pub fn global_private(address: u64) -> Option<(u8, u64)> {
    let is_private = (address ^ GLOBAL_PRIVATE) >> 58 == 0;
    is_private.then_some(((address >> 52 & 31) as u8, address & ((1 << 52) - 1)))
}

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
