//! Names of operations.

use std::collections::HashSet;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

/// The name of an operation, such as `v_fma_f32`. Copies share the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationName(&'static str);

impl OperationName {
    /// Wraps a name that is known at compile time, or stored for the whole run of the process.
    pub const fn fixed(name: &'static str) -> OperationName {
        OperationName(name)
    }

    /// Stores a name for the rest of the process. Equal names are stored once.
    pub fn interned(name: &str) -> OperationName {
        static KNOWN: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Default::default);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let name = known.get(name).copied().unwrap_or_else(|| {
            let name: &'static str = Box::leak(name.into());
            known.insert(name);
            name
        });
        OperationName(name)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_their_text() {
        let [first, second] = [0, 1].map(|_| OperationName::interned(&["fma", ".f32"].concat()));
        assert_eq!(first, OperationName::fixed("fma.f32"));
        assert!(std::ptr::eq(first.name(), second.name()));
        assert_ne!(first, OperationName::interned("fma"));
    }
}
