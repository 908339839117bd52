//! Generic addresses: windows of state spaces.
//!
//! Global and constant memory are device memory, whose addresses are generic addresses. Shared memory, local
//! memory and kernel parameters have windows above all device memory and above the addresses of host programs.
//! The manual leaves the locations of windows open.

use flipwave_ptx::Space;

/// Windows of state spaces in generic addresses.
pub(crate) struct Windows;

/// Size of a window in bytes.
pub(crate) const WINDOW: u64 = 1 << 32;
const SHARED: u64 = 0xff00_0000_0000;
const LOCAL: u64 = SHARED + WINDOW;
const PARAMETERS: u64 = LOCAL + WINDOW;
/// Addresses of functions: this base plus the address of the first instruction.
pub(crate) const FUNCTIONS: u64 = PARAMETERS + WINDOW;
/// Start of the memory of variables that hooks have: many bits from addresses that programs use.
pub(crate) const INSERTED: u64 = 0x1a5a_a5a5_0000;
/// Local memory of all lanes, as observers address it: lane after lane.
pub(crate) const LANES: u64 = 0xfe00_0000_0000;

impl Windows {
    /// The first generic address of a state space.
    pub fn base(space: Space) -> u64 {
        match space {
            Space::Shared => SHARED,
            Space::Local => LOCAL,
            Space::Param => PARAMETERS,
            _ => 0,
        }
    }

    /// The state space that a generic address belongs to.
    pub fn space_of(address: u64) -> Space {
        let windows = [(SHARED, Space::Shared), (LOCAL, Space::Local), (PARAMETERS, Space::Param)];
        let found = windows.iter().find(|(base, _)| (*base..base + WINDOW).contains(&address));
        found.map_or(Space::Global, |(_, space)| *space)
    }
}
