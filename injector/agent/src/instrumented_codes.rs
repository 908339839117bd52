//! The instrumented code that an application has loaded.

use flipwave_rocr::tools::CodeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Data of type `T` about instrumented code, by code object and kernel. Code without a kernel serves all
/// kernels of its code object.
pub struct InstrumentedCodes<T>(Mutex<Table<T>>);

type Table<T> = HashMap<(CodeId, Option<Arc<str>>), Arc<T>>;

impl<T> Default for InstrumentedCodes<T> {
    fn default() -> InstrumentedCodes<T> {
        InstrumentedCodes(Mutex::default())
    }
}

impl<T> InstrumentedCodes<T> {
    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the code for `kernel`, or for all kernels of a code object.
    pub fn add(&self, id: CodeId, kernel: Option<Arc<str>>, code: T) {
        self.lock().insert((id, kernel), Arc::new(code));
    }

    /// Removes code added with [`InstrumentedCodes::add`].
    pub fn remove(&self, id: CodeId, kernel: Option<Arc<str>>) -> Option<Arc<T>> {
        self.lock().remove(&(id, kernel))
    }

    /// The code for a kernel: that of the kernel, or else that of all kernels.
    pub fn get(&self, id: CodeId, kernel: &Arc<str>) -> Option<Arc<T>> {
        let codes = self.lock();
        codes.get(&(id, Some(Arc::clone(kernel)))).or_else(|| codes.get(&(id, None))).cloned()
    }
}
