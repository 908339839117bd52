//! Code with hooks that an application has loaded.

use flipwave_rocr::tools::CodeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What belongs to code with hooks, by what it was loaded for: of a code object all kernels, or one.
pub struct HookedCodes<T>(Mutex<Table<T>>);

type Table<T> = HashMap<(CodeId, Option<Arc<str>>), Arc<T>>;

impl<T> Default for HookedCodes<T> {
    fn default() -> HookedCodes<T> {
        HookedCodes(Mutex::default())
    }
}

impl<T> HookedCodes<T> {
    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes code for all kernels of a code object, or for one.
    pub fn add(&self, id: CodeId, kernel: Option<Arc<str>>, code: T) {
        self.lock().insert((id, kernel), Arc::new(code));
    }

    /// Forgets what [`HookedCodes::add`] has noted.
    pub fn remove(&self, id: CodeId, kernel: Option<Arc<str>>) -> Option<Arc<T>> {
        self.lock().remove(&(id, kernel))
    }

    /// The code that a kernel has: its own, or that of all kernels.
    pub fn of(&self, id: CodeId, kernel: &Arc<str>) -> Option<Arc<T>> {
        let codes = self.lock();
        codes.get(&(id, Some(Arc::clone(kernel)))).or_else(|| codes.get(&(id, None))).cloned()
    }
}
