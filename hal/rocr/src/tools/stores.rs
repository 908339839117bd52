//! What is called when the application gives signals values: doorbells of queues are signals.

use hsa_sys::signatures::hsa_signal_store_screlease;
use hsa_sys::{
    HsaApiTable, KnownTables, hsa_signal_store_relaxed, hsa_signal_t, hsa_signal_value_t,
};
use std::sync::{PoisonError, RwLock};

/// The runtime's functions, and what is called after one has been called.
#[derive(Clone, Copy)]
struct Stores {
    relaxed: hsa_signal_store_relaxed,
    screlease: hsa_signal_store_screlease,
    done: fn(),
}

/// Those of the tables that were changed last: the runtime has new ones when it starts again.
static STORES: RwLock<Option<Stores>> = RwLock::new(None);

fn stores() -> Option<Stores> {
    *STORES.read().unwrap_or_else(PoisonError::into_inner)
}

/// Has `done` called whenever the application has stored a value in a signal, in the thread that has
/// done so and before it goes on. It may be called by several threads at once. Returns whether the
/// tables could be changed, or have been before: those of unknown versions are left alone.
///
/// Not every store is that of a doorbell, and the runtime itself rings without being seen.
///
/// # Safety
/// `table` is what the runtime has given to `OnLoad`, which has not returned yet.
pub unsafe fn watch_stores(table: *mut HsaApiTable, done: fn()) -> bool {
    // SAFETY: promised by the caller: nobody else uses the tables before `OnLoad` returns.
    let known = unsafe { table.as_mut().and_then(|table| table.known()) };
    let Some(KnownTables { core, .. }) = known else { return false };
    let own: hsa_signal_store_relaxed = store_relaxed;
    if std::ptr::fn_addr_eq(core.hsa_signal_store_relaxed_fn, own) {
        return true;
    }
    let relaxed = std::mem::replace(&mut core.hsa_signal_store_relaxed_fn, store_relaxed);
    let screlease = std::mem::replace(&mut core.hsa_signal_store_screlease_fn, store_screlease);
    let own = Stores { relaxed, screlease, done };
    *STORES.write().unwrap_or_else(PoisonError::into_inner) = Some(own);
    true
}

unsafe extern "C" fn store_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t) {
    let Some(stores) = stores() else { return };
    // SAFETY: the caller's arguments.
    unsafe { (stores.relaxed)(signal, value) };
    (stores.done)();
}

unsafe extern "C" fn store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t) {
    let Some(stores) = stores() else { return };
    // SAFETY: the caller's arguments.
    unsafe { (stores.screlease)(signal, value) };
    (stores.done)();
}
