//! Operations of scalar memory.

use super::element::Element;
use crate::memory::atomic;
use crate::memory::atomic::Atomic;

/// A scalar memory operation. Sources: 0 the base, 1 a scalar offset, 2 the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarAccess {
    /// Addressing mode.
    pub space: Space,
    /// Operation at the address.
    pub transfer: Transfer,
    /// `true` if the scalar offset counts elements of the accessed size (gfx1250).
    pub is_scaled: bool,
}

/// Addressing mode (ISA manual, "Scalar memory operations", "Addressing").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// 64-bit base address.
    Address,
    /// Buffer resource: out-of-range loads return zero, out-of-range stores and atomics are
    /// dropped.
    Buffer,
    /// 64-bit base address; the offset register has units of 64 bytes, a dword of all lanes.
    Scratch,
}

/// Operation at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Words to registers.
    Load(u8),
    /// A byte or half word to a register.
    LoadPart(Element),
    /// Words to memory.
    Store(u8),
    /// Read, modify, write.
    Atomic {
        /// The operation.
        atomic: Atomic,
        /// `true` if the old value is returned.
        returns: bool,
    },
    /// Monotonic 64-bit counter: wave instructions executed by the wave.
    Clock,
}

impl Transfer {
    /// Number of accessed bytes.
    pub fn bytes(self) -> u8 {
        match self {
            Transfer::Load(words) | Transfer::Store(words) => 4 * words,
            Transfer::LoadPart(element) => element.bytes() as u8,
            Transfer::Atomic { atomic, .. } => atomic.bytes,
            Transfer::Clock => 8,
        }
    }
}

/// Returns the scalar memory operation with a canonical name; `returns` is the modifier that makes
/// an atomic return the old value.
pub fn find(name: &str, returns: bool) -> Option<ScalarAccess> {
    if matches!(name, "s_memtime" | "s_memrealtime" | "s_get_shader_cycles_u64") {
        return Some(ScalarAccess {
            space: Space::Address,
            transfer: Transfer::Clock,
            is_scaled: false,
        });
    }
    let name = name.strip_prefix("s_")?;
    let (space, name) = if let Some(name) = name.strip_prefix("buffer_") {
        (Space::Buffer, name)
    } else if let Some(name) = name.strip_prefix("scratch_") {
        (Space::Scratch, name)
    } else {
        (Space::Address, name)
    };
    let (verb, what) = name.split_once('_')?;
    let words = || match what.strip_prefix("dword")? {
        "" => Some(1),
        width => width.strip_prefix('x')?.parse().ok(),
    };
    let transfer = match verb {
        "load" => match words() {
            Some(words) => Transfer::Load(words),
            None => Transfer::LoadPart(Element::named(what)?),
        },
        "store" => Transfer::Store(words()?),
        "atomic" => Transfer::Atomic { atomic: atomic::find_memory(what)?, returns },
        _ => return None,
    };
    Some(ScalarAccess { space, transfer, is_scaled: false })
}
