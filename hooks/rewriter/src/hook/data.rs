//! The variables and constants of hooks.

use std::collections::BTreeMap;

/// A variable of a hook's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookSymbol {
    /// Offset of its first byte in the data.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// A pointer that the data hold: the address of other data, known when the code object is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPointer {
    /// Offset of the eight bytes that hold it.
    pub at: u64,
    /// Offset of what it points to.
    pub to: u64,
}

/// The variables and constants of a source, in one piece: `bytes`, and after them `zeros` bytes
/// that are zero when a dispatch begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookData {
    /// What is not zero.
    pub bytes: Vec<u8>,
    /// How many bytes of zeros follow.
    pub zeros: u64,
    /// The address of the first byte must be a multiple of this, a power of two.
    pub alignment: u64,
    /// Variables, by name.
    pub symbols: BTreeMap<String, HookSymbol>,
    /// Pointers in `bytes`, by ascending offset.
    pub pointers: Vec<DataPointer>,
}

impl HookData {
    /// Size in bytes, zeros included.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64 + self.zeros
    }

    /// All bytes, zeros included, as they are when a dispatch begins.
    pub fn initial(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.resize(self.size() as usize, 0);
        bytes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }
}
