//! Interception of signal stores. Queue doorbells are signals.

use hsa_sys::signatures::hsa_signal_store_screlease;
use hsa_sys::{
    HsaApiTable, KnownTables, hsa_signal_store_relaxed, hsa_signal_t, hsa_signal_value_t,
};
use std::sync::{PoisonError, RwLock};

/// The runtime's functions, and the callback after each store.
#[derive(Clone, Copy)]
struct Stores {
    relaxed: hsa_signal_store_relaxed,
    screlease: hsa_signal_store_screlease,
    after_store: fn(),
}

/// The functions from the most recent tables: a runtime that starts again has new tables.
static STORES: RwLock<Option<Stores>> = RwLock::new(None);

fn stores() -> Option<Stores> {
    *STORES.read().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `after_store` whenever the application has stored a value in a signal, on the storing thread.
/// Several threads may call it concurrently. Returns `true` if the tables are changed now or were before;
/// tables of unknown versions are not changed.
///
/// Not every store rings a doorbell, and stores of the runtime itself are not intercepted.
///
/// # Safety
/// `table` must be the table that the runtime passed to `OnLoad`, and `OnLoad` must not have returned.
pub unsafe fn watch_stores(table: *mut HsaApiTable, after_store: fn()) -> bool {
    // SAFETY: guaranteed by the caller; no other code uses the tables before `OnLoad` returns.
    let known = unsafe { table.as_mut().and_then(|table| table.known()) };
    let Some(KnownTables { core, .. }) = known else { return false };
    let replacement: hsa_signal_store_relaxed = store_relaxed;
    if std::ptr::fn_addr_eq(core.hsa_signal_store_relaxed_fn, replacement) {
        return true;
    }
    let relaxed = std::mem::replace(&mut core.hsa_signal_store_relaxed_fn, store_relaxed);
    let screlease = std::mem::replace(&mut core.hsa_signal_store_screlease_fn, store_screlease);
    let stores = Stores { relaxed, screlease, after_store };
    *STORES.write().unwrap_or_else(PoisonError::into_inner) = Some(stores);
    true
}

unsafe extern "C" fn store_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t) {
    let Some(stores) = stores() else { return };
    // SAFETY: forwards the caller's arguments.
    unsafe { (stores.relaxed)(signal, value) };
    (stores.after_store)();
}

unsafe extern "C" fn store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t) {
    let Some(stores) = stores() else { return };
    // SAFETY: forwards the caller's arguments.
    unsafe { (stores.screlease)(signal, value) };
    (stores.after_store)();
}
