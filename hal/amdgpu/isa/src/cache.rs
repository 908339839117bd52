//! Cache of decoded instructions. Code repeats itself: in a library's kernels, nine out of ten
//! instructions already occurred in the same file, and decoding them with LLVM takes 20 times as long as
//! looking them up.

use crate::InstWords;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Maximum number of cached instructions, of about 700 bytes each.
const LIMIT: usize = 1 << 17;

/// Decoded instructions, keyed by their encoding.
///
/// No encoding is a prefix of another: hardware must derive the length of an instruction from its first
/// words. The lookup order of the lengths therefore does not matter.
#[derive(Default)]
pub(crate) struct Cache {
    short: FxHashMap<u32, Arc<InstWords>>,
    double: FxHashMap<u64, Arc<InstWords>>,
    /// Instructions of more than two words, keyed by the first two.
    long: FxHashMap<u64, Vec<Long>>,
    count: usize,
}

/// An instruction of more than two words.
struct Long {
    bytes: Box<[u8]>,
    inst: Arc<InstWords>,
}

impl Cache {
    /// Returns the instruction at the start of `bytes` if it is cached.
    pub fn get(&self, bytes: &[u8]) -> Option<Arc<InstWords>> {
        let first = u32::from_le_bytes(*bytes.first_chunk()?);
        if let Some(known) = self.short.get(&first) {
            return Some(Arc::clone(known));
        }
        let both = u64::from_le_bytes(*bytes.first_chunk()?);
        if let Some(known) = self.double.get(&both) {
            return Some(Arc::clone(known));
        }
        let long = self.long.get(&both)?.iter().find(|long| bytes.starts_with(&long.bytes))?;
        Some(Arc::clone(&long.inst))
    }

    /// Adds `inst`, which is encoded at the start of `bytes`. Clears a full cache first.
    pub fn add(&mut self, bytes: &[u8], inst: &Arc<InstWords>) {
        if self.count == LIMIT {
            *self = Cache::default();
        }
        let encoding = bytes.get(..inst.size.into()).unwrap_or_default();
        let inst = Arc::clone(inst);
        self.count += 1;
        match *encoding {
            [a, b, c, d] => _ = self.short.insert(u32::from_le_bytes([a, b, c, d]), inst),
            [a, b, c, d, e, f, g, h] => {
                _ = self.double.insert(u64::from_le_bytes([a, b, c, d, e, f, g, h]), inst);
            }
            _ => {
                let Some(both) = encoding.first_chunk() else { return };
                let all = self.long.entry(u64::from_le_bytes(*both)).or_default();
                all.push(Long { bytes: encoding.into(), inst });
            }
        }
    }
}
