//! The end of the runtime. ROCr (6.4 was seen) follows pointers to what it has just freed where an
//! application ends with virtual memory mapped for a GPU (`~MappedHandleAllowedAgent` in `runtime.cpp` asks an
//! agent that `Runtime::Unload` has deleted): such memory is unmapped before.

use hsa_sys::signatures::{hsa_init, hsa_shut_down};
use hsa_sys::{HSA_STATUS_ERROR, HsaApiTable, KnownTables, hsa_status_t, find_vmem_unmap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

/// What is mapped of virtual memory: addresses, and bytes from there on.
pub type Mapped = fn() -> Vec<(u64, u64)>;

/// The runtime's functions.
#[derive(Clone, Copy)]
struct Ends {
    init: hsa_init,
    shut_down: hsa_shut_down,
    mapped: Mapped,
}

/// Those of the tables that were changed last, as for stores.
static ENDS: RwLock<Option<Ends>> = RwLock::new(None);

/// How often the runtime has been started and not been shut down.
static USERS: AtomicI64 = AtomicI64::new(0);

/// Has virtual memory unmapped before the runtime is shut down for the last time. Whether the tables
/// could be changed, or have been before.
///
/// # Safety
/// As [`super::watch_stores`]; what `mapped` gives was mapped through the runtime.
pub unsafe fn unmap_at_end(table: *mut HsaApiTable, mapped: Mapped) -> bool {
    // SAFETY: promised by the caller: nobody else uses the tables before `OnLoad` returns.
    let known = unsafe { table.as_mut().and_then(|table| table.known()) };
    let Some(KnownTables { core, .. }) = known else { return false };
    let own: hsa_shut_down = shut_down;
    if std::ptr::fn_addr_eq(core.hsa_shut_down_fn, own) {
        return true;
    }
    let init = std::mem::replace(&mut core.hsa_init_fn, init);
    let shut_down = std::mem::replace(&mut core.hsa_shut_down_fn, shut_down);
    *ENDS.write().unwrap_or_else(PoisonError::into_inner) = Some(Ends { init, shut_down, mapped });
    // The tables are given while the runtime is started for the first time.
    USERS.store(1, Ordering::Relaxed);
    true
}

fn ends() -> Option<Ends> {
    *ENDS.read().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn init() -> hsa_status_t {
    // It is in the table because there are some.
    let Some(ends) = ends() else { return HSA_STATUS_ERROR };
    USERS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's call.
    unsafe { (ends.init)() }
}

unsafe extern "C" fn shut_down() -> hsa_status_t {
    let Some(ends) = ends() else { return HSA_STATUS_ERROR };
    let is_last = USERS.fetch_sub(1, Ordering::Relaxed) == 1;
    if let Some(unmap) = find_vmem_unmap().filter(|_| is_last) {
        for (address, bytes) in (ends.mapped)() {
            // SAFETY: the runtime has mapped it, or refuses.
            let _ = unsafe { unmap(address as *mut _, bytes as usize) };
        }
    }
    // SAFETY: the caller's call.
    unsafe { (ends.shut_down)() }
}
