//! Variables and constants of hooks.

use std::collections::BTreeMap;

/// A variable of a hook's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookSymbol {
    /// Offset of its first byte in the data.
    pub offset: u64,
    /// Its size in bytes.
    pub size: u64,
}

/// A pointer between variables, whose value is known only when the code object is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPointer {
    /// Offset of the pointer's eight bytes.
    pub at: u64,
    /// Offset of its target.
    pub to: u64,
}

/// The variables and constants of a source: `bytes` followed by `zeros` zero bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookData {
    /// Initialized bytes.
    pub bytes: Vec<u8>,
    /// Number of zero bytes that follow.
    pub zeros: u64,
    /// Alignment of the first byte, a power of two.
    pub alignment: u64,
    /// Variables by name.
    pub symbols: BTreeMap<String, HookSymbol>,
    /// Pointers in `bytes`, by ascending offset.
    pub pointers: Vec<DataPointer>,
}

impl HookData {
    /// Size in bytes, including zeros.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64 + self.zeros
    }

    /// Initial content, including zeros.
    pub fn initial(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.resize(self.size() as usize, 0);
        bytes
    }

    /// Returns `true` if there are no data.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }
}
