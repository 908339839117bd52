//! Shutdown of the runtime. Works around a use after free in ROCr (seen in 6.4): if virtual memory is
//! still mapped for a GPU at shutdown, `~MappedHandleAllowedAgent` in `runtime.cpp` uses an agent that
//! `Runtime::Unload` has deleted. Therefore such memory is unmapped first.

use hsa_sys::signatures::{hsa_init, hsa_shut_down};
use hsa_sys::{HSA_STATUS_ERROR, HsaApiTable, KnownTables, find_vmem_unmap, hsa_status_t};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Returns the mapped ranges of virtual memory: addresses and sizes in bytes.
pub type MappedRanges = fn() -> Vec<(u64, u64)>;

/// The runtime's functions, and the source of the ranges to unmap.
#[derive(Clone, Copy)]
struct Shutdown {
    init: hsa_init,
    shut_down: hsa_shut_down,
    mapped_ranges: MappedRanges,
}

/// The functions from the most recent tables: a runtime that starts again has new tables.
static SHUTDOWN: RwLock<Option<Shutdown>> = RwLock::new(None);

/// The runtime's reference count.
static USERS: AtomicI64 = AtomicI64::new(0);

/// Unmaps virtual memory before the runtime's last shutdown. Returns `true` if the tables are changed now
/// or were before.
///
/// # Safety
/// As [`super::watch_stores`]. The runtime must have mapped the ranges returned by `mapped_ranges`.
pub unsafe fn unmap_at_shutdown(table: *mut HsaApiTable, mapped_ranges: MappedRanges) -> bool {
    // SAFETY: guaranteed by the caller; no other code uses the tables before `OnLoad` returns.
    let known = unsafe { table.as_mut().and_then(|table| table.known()) };
    let Some(KnownTables { core, .. }) = known else { return false };
    let replacement: hsa_shut_down = shut_down;
    if std::ptr::fn_addr_eq(core.hsa_shut_down_fn, replacement) {
        return true;
    }
    let init = std::mem::replace(&mut core.hsa_init_fn, init);
    let shut_down = std::mem::replace(&mut core.hsa_shut_down_fn, shut_down);
    let shutdown = Shutdown { init, shut_down, mapped_ranges };
    *SHUTDOWN.write().unwrap_or_else(PoisonError::into_inner) = Some(shutdown);
    // The runtime passes the tables during its first initialization.
    USERS.store(1, Ordering::Relaxed);
    true
}

fn shutdown() -> Option<Shutdown> {
    *SHUTDOWN.read().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn init() -> hsa_status_t {
    // Always present: the function is in the table only after `SHUTDOWN` is set.
    let Some(shutdown) = shutdown() else { return HSA_STATUS_ERROR };
    USERS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: forwards the caller's call.
    unsafe { (shutdown.init)() }
}

unsafe extern "C" fn shut_down() -> hsa_status_t {
    let Some(shutdown) = shutdown() else { return HSA_STATUS_ERROR };
    let is_last = USERS.fetch_sub(1, Ordering::Relaxed) == 1;
    if let Some(unmap) = find_vmem_unmap().filter(|_| is_last) {
        for (address, bytes) in (shutdown.mapped_ranges)() {
            // SAFETY: the runtime has mapped the range, or returns an error.
            let _ = unsafe { unmap(address as *mut _, bytes as usize) };
        }
    }
    // SAFETY: forwards the caller's call.
    unsafe { (shutdown.shut_down)() }
}
