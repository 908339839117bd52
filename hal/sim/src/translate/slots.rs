//! Storage of decoded instructions by code offset.

use crate::instruction::Op;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

/// One slot for each dword where an instruction may begin. The operating system allocates pages of
/// slots when they are first used: hardly any of a library's code is.
#[derive(Default)]
pub struct Slots {
    places: Box<[AtomicPtr<Op>]>,
    /// The instructions that the slots point to.
    owned: Mutex<Vec<NonNull<Op>>>,
}

/// `Op` must be `Send` and `Sync`.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Op>();
};

// SAFETY: it owns what it points to, which may itself be sent, as the constant above says.
unsafe impl Send for Slots {}
// SAFETY: as above. Operations are shared, never changed, and never taken out.
unsafe impl Sync for Slots {}

impl Slots {
    /// Creates empty slots for `bytes`.
    pub fn of(bytes: &[u8]) -> Slots {
        let places: Box<[*mut Op]> = vec![std::ptr::null_mut(); bytes.len() / 4].into();
        // SAFETY: an `AtomicPtr` has the memory layout of a pointer, and the box is not shared.
        let places = unsafe { Box::from_raw(Box::into_raw(places) as *mut [AtomicPtr<Op>]) };
        Slots { places, owned: Mutex::default() }
    }

    /// Returns `true` if there are no slots.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The instruction in a slot, if it was decoded.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&Op> {
        let place = self.places.get(index)?.load(Ordering::Acquire);
        // SAFETY: null, or put there by `put`, whole by then, and kept until `self` is dropped.
        unsafe { place.as_ref() }
    }

    /// Stores an instruction unless the slot has one, and returns the slot's instruction; `None` if
    /// there is no such slot.
    pub fn put(&self, index: usize, op: Op) -> Option<&Op> {
        let place = self.places.get(index)?;
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        if place.load(Ordering::Acquire).is_null() {
            let op = NonNull::from(Box::leak(Box::new(op)));
            owned.push(op);
            place.store(op.as_ptr(), Ordering::Release);
        }
        drop(owned);
        self.get(index)
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let owned = self.owned.get_mut().unwrap_or_else(PoisonError::into_inner);
        for op in owned.drain(..) {
            // SAFETY: `put` leaked the box once, and no borrow of it remains.
            drop(unsafe { Box::from_raw(op.as_ptr()) });
        }
    }
}
