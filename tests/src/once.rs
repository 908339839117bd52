//! What several tests need, made once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// Values by all that they are made from. The first test that wants one makes it; others that want
/// it meanwhile wait.
pub struct Once<K, V> {
    made: Mutex<BTreeMap<K, Arc<OnceLock<V>>>>,
}

impl<K: Ord, V: Clone> Once<K, V> {
    /// Nothing yet.
    pub const fn new() -> Once<K, V> {
        Once { made: Mutex::new(BTreeMap::new()) }
    }

    /// The value of a key, which `make` makes the first time.
    pub fn get(&self, key: K, make: impl FnOnce() -> V) -> V {
        let place =
            self.made.lock().expect("no panic while it is held").entry(key).or_default().clone();
        place.get_or_init(make).clone()
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
        assert_eq!(once.get("a", || panic!("made twice")), 1);
    }
}
