//! Values that several tests share and compute only once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Values by key. The first test that needs a value computes it; others wait until it is ready.
pub struct Once<K, V> {
    values: Mutex<BTreeMap<K, Arc<OnceLock<V>>>>,
}

impl<K: Ord, V: Clone> Once<K, V> {
    /// An empty map.
    pub const fn new() -> Once<K, V> {
        Once { values: Mutex::new(BTreeMap::new()) }
    }

    /// The value for a key. `compute` is called only the first time.
    pub fn get(&self, key: K, compute: impl FnOnce() -> V) -> V {
        let cell =
            self.values.lock().expect("no panic while it is held").entry(key).or_default().clone();
        cell.get_or_init(compute).clone()
    }
}

impl<K: Ord, V: Clone> Default for Once<K, V> {
    fn default() -> Once<K, V> {
        Once::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_computed_once() {
        let once = Once::new();
        assert_eq!(once.get("a", || 1), 1);
        assert_eq!(once.get("b", || 2), 2);
        assert_eq!(once.get("a", || panic!("computed twice")), 1);
    }
}
