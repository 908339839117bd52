//! Handles: numbers that the application keeps for objects of the driver.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also if a thread has panicked with it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Distance of handles, so that they look like pointers.
const STEP: usize = 16;

/// The objects of a kind by handle. Handles are numbers that are never used again.
pub struct Handles<T> {
    next: AtomicUsize,
    objects: Mutex<HashMap<usize, Arc<T>>>,
}

impl<T> Handles<T> {
    /// No objects; handles begin with the number of the kind in their upper half.
    pub fn new(kind: usize) -> Handles<T> {
        Handles { next: AtomicUsize::new((kind << 32) + STEP), objects: Mutex::default() }
    }

    /// Adds an object and returns its handle.
    pub fn add(&self, object: T) -> usize {
        self.add_with(|_| object)
    }

    /// Adds an object that knows its handle.
    pub fn add_with(&self, make: impl FnOnce(usize) -> T) -> usize {
        let handle = self.next.fetch_add(STEP, Ordering::Relaxed);
        lock(&self.objects).insert(handle, Arc::new(make(handle)));
        handle
    }

    /// The object of a handle.
    pub fn get(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.objects).get(&handle).cloned()
    }

    /// Removes an object.
    pub fn remove(&self, handle: usize) -> Option<Arc<T>> {
        lock(&self.objects).remove(&handle)
    }

    /// The handles and their objects, in the order in which they were added.
    pub fn all(&self) -> Vec<(usize, Arc<T>)> {
        let objects = lock(&self.objects);
        let mut all: Vec<_> =
            objects.iter().map(|(handle, object)| (*handle, Arc::clone(object))).collect();
        all.sort_by_key(|(handle, _)| *handle);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_not_used_again() {
        let handles = Handles::new(3);
        let first = handles.add("first");
        assert_eq!(handles.remove(first).as_deref(), Some(&"first"));
        let second = handles.add("second");
        assert!(first != second && handles.get(first).is_none());
        assert_eq!(handles.get(second).as_deref(), Some(&"second"));
    }
}
