//! Words that were decoded before. Code repeats itself: of a library's kernels nine in ten
//! instructions have stood elsewhere in the same file, and to ask LLVM again takes twenty times as
//! long as to look them up.

use crate::InstWords;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Most instructions that are kept, about 700 bytes each.
const LIMIT: usize = 1 << 17;

/// Decoded instructions by their words.
///
/// No instruction begins with all the words of a shorter one: how long one is follows from its first
/// words alone, as hardware has to know. So it does not matter which lengths are looked up first.
#[derive(Default)]
pub(crate) struct Cache {
    short: FxHashMap<u32, Arc<InstWords>>,
    double: FxHashMap<u64, Arc<InstWords>>,
    /// By the first two words.
    long: FxHashMap<u64, Vec<Long>>,
    count: usize,
}

/// An instruction of more than two words.
struct Long {
    bytes: Box<[u8]>,
    inst: Arc<InstWords>,
}

impl Cache {
    /// The instruction that `bytes` begin with, if it was met.
    pub fn get(&self, bytes: &[u8]) -> Option<Arc<InstWords>> {
        let first = u32::from_le_bytes(*bytes.first_chunk()?);
        if let Some(known) = self.short.get(&first) {
            return Some(Arc::clone(known));
        }
        let both = u64::from_le_bytes(*bytes.first_chunk()?);
        if let Some(known) = self.double.get(&both) {
            return Some(Arc::clone(known));
        }
        let long = self.long.get(&both)?.iter().find(|own| bytes.starts_with(&own.bytes))?;
        Some(Arc::clone(&long.inst))
    }

    /// Keeps what `bytes` begin with.
    pub fn add(&mut self, bytes: &[u8], inst: &Arc<InstWords>) {
        if self.count == LIMIT {
            *self = Cache::default();
        }
        let own = bytes.get(..inst.size.into()).unwrap_or_default();
        let inst = Arc::clone(inst);
        self.count += 1;
        match *own {
            [a, b, c, d] => _ = self.short.insert(u32::from_le_bytes([a, b, c, d]), inst),
            [a, b, c, d, e, f, g, h] => {
                _ = self.double.insert(u64::from_le_bytes([a, b, c, d, e, f, g, h]), inst);
            }
            _ => {
                let Some(both) = own.first_chunk() else { return };
                let all = self.long.entry(u64::from_le_bytes(*both)).or_default();
                all.push(Long { bytes: own.into(), inst });
            }
        }
    }
}
