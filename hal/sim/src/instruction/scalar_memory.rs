//! The operations of scalar memory.

use super::element::Element;
use crate::memory::atomic;
use crate::memory::atomic::Atomic;

/// A scalar memory operation. Sources: 0 the base, 1 a scalar offset, 2 the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarAccess {
    /// How the address is made.
    pub space: Space,
    /// What is done there.
    pub transfer: Transfer,
    /// Whether the scalar offset counts elements of what is accessed (gfx1250).
    pub is_scaled: bool,
}

/// How the address is made (ISA manual, "Scalar memory operations", "Addressing").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// 64-bit base.
    Address,
    /// Buffer resource: loads out of its range give zero, stores and atomics there vanish.
    Buffer,
    /// 64-bit base; the offset register counts in units of 64 bytes, a dword of all lanes.
    Scratch,
}

/// What is done at the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// So many words to registers.
    Load(u8),
    /// A byte or half word to a register.
    LoadPart(Element),
    /// So many words to memory.
    Store(u8),
    /// Read, modify, write.
    Atomic {
        /// The operation.
        atomic: Atomic,
        /// Whether the old value is returned.
        returns: bool,
    },
    /// A 64-bit counter that only goes up: wave instructions executed by the wave.
    Clock,
}

impl Transfer {
    /// Bytes that are accessed.
    pub fn bytes(self) -> u8 {
        match self {
            Transfer::Load(words) | Transfer::Store(words) => 4 * words,
            Transfer::LoadPart(element) => element.bytes() as u8,
            Transfer::Atomic { atomic, .. } => atomic.bytes,
            Transfer::Clock => 8,
        }
    }
}

/// The scalar memory operation of a canonical name; `returns` is the modifier that makes an
/// atomic return the old value.
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
