//! Windows of the flat address space for LDS and private memory, at the bases that the ROCm kernel
//! driver sets on gfx9 (`SH_MEM_BASES`).

/// Base of the LDS window.
pub const SHARED: u64 = 1 << 48;
/// Base of the private memory window.
pub const PRIVATE: u64 = 2 << 48;

/// Bits 63:58 of flat addresses of private memory on gfx1250 (LLVM's lowering of
/// `llvm.amdgcn.is.private` compares these). The value is arbitrary: no driver's value is
/// published.
pub const GLOBAL_PRIVATE: u64 = 2 << 58;

/// Lane, and sum of its wave's base and an offset, of a flat address of private memory on gfx1250;
/// `None` for other addresses (LLVM's lowering of `addrspacecast`).
#[inline(always)]
pub fn global_private(address: u64) -> Option<(u8, u64)> {
    let is_private = (address ^ GLOBAL_PRIVATE) >> 58 == 0;
    is_private.then_some(((address >> 52 & 31) as u8, address & ((1 << 52) - 1)))
}

/// Target of a flat address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A byte of the workgroup's LDS.
    Lds(u32),
    /// A byte of the lane's private memory.
    Private(u32),
    /// Device memory.
    Global(u64),
}

/// Classifies a flat address by its upper half.
#[inline(always)]
pub fn window(address: u64) -> Window {
    match address & !0xffff_ffff {
        SHARED => Window::Lds(address as u32),
        PRIVATE => Window::Private(address as u32),
        _ => Window::Global(address),
    }
}
