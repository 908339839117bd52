//! Interception of signal waits. The runtime's waits poll the value, which takes CPU time from the thread
//! that changes it if that is not a GPU.

use hsa_sys::signatures::{hsa_signal_load_scacquire, hsa_signal_wait_scacquire};
use hsa_sys::{HsaApiTable, KnownTables, hsa_signal_t, hsa_signal_value_t};
use std::cell::Cell;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// Sleeps until a condition is true or a timeout expires. Returns `false` without sleeping if nothing
/// would wake the thread.
pub type Sleep = fn(&mut dyn FnMut() -> bool, Duration) -> bool;

/// The runtime's functions, and the function that sleeps instead.
#[derive(Clone, Copy)]
struct Waits {
    load: hsa_signal_load_scacquire,
    relaxed: hsa_signal_wait_scacquire,
    scacquire: hsa_signal_wait_scacquire,
    sleep: Sleep,
}

/// The functions from the most recent tables: a runtime that starts again has new tables.
static WAITS: RwLock<Option<Waits>> = RwLock::new(None);

/// Replaces the application's signal waits, of any wait state, with `sleep`. Returned values and timeouts
/// are as specified in `hsa.h`. Returns `true` if the tables are changed now or were before.
///
/// # Safety
/// As [`super::watch_stores`]. A tick of the runtime's clock must be a nanosecond.
pub unsafe fn replace_waits(table: *mut HsaApiTable, sleep: Sleep) -> bool {
    // SAFETY: guaranteed by the caller; no other code uses the tables before `OnLoad` returns.
    let known = unsafe { table.as_mut().and_then(|table| table.known()) };
    let Some(KnownTables { core, .. }) = known else { return false };
    let replacement: hsa_signal_wait_scacquire = wait_relaxed;
    if std::ptr::fn_addr_eq(core.hsa_signal_wait_relaxed_fn, replacement) {
        return true;
    }
    let relaxed = std::mem::replace(&mut core.hsa_signal_wait_relaxed_fn, wait_relaxed);
    let scacquire = std::mem::replace(&mut core.hsa_signal_wait_scacquire_fn, wait_scacquire);
    let waits = Waits { load: core.hsa_signal_load_scacquire_fn, relaxed, scacquire, sleep };
    *WAITS.write().unwrap_or_else(PoisonError::into_inner) = Some(waits);
    true
}

/// The arguments of a wait.
#[derive(Clone, Copy)]
struct Wait {
    signal: hsa_signal_t,
    condition: u32,
    compared: hsa_signal_value_t,
    timeout: u64,
    state: u32,
}

impl Wait {
    /// Returns `true` if a value meets the condition (`hsa_signal_condition_t`).
    fn is_over(&self, value: hsa_signal_value_t) -> bool {
        match self.condition {
            0 => value == self.compared,
            1 => value != self.compared,
            2 => value < self.compared,
            _ => value >= self.compared,
        }
    }

    /// Waits by sleeping, or with the runtime's function if sleeping is not possible. Returns the last
    /// value observed.
    ///
    /// # Safety
    /// The signal must be alive, and `original` must be the runtime's function of the same name.
    unsafe fn run(self, waits: &Waits, original: hsa_signal_wait_scacquire) -> hsa_signal_value_t {
        let value = Cell::new(0);
        let mut is_over = || {
            // SAFETY: guaranteed by the caller.
            value.set(unsafe { (waits.load)(self.signal) });
            self.is_over(value.get())
        };
        if (waits.sleep)(&mut is_over, Duration::from_nanos(self.timeout)) {
            return value.get();
        }
        let Wait { signal, condition, compared, timeout, state } = self;
        // SAFETY: guaranteed by the caller.
        unsafe { original(signal, condition, compared, timeout, state) }
    }
}

/// Defines the functions that replace the runtime's.
macro_rules! waits {
    ($($name:ident: $original:ident,)*) => {
        $(
            unsafe extern "C" fn $name(
                signal: hsa_signal_t,
                condition: u32,
                compared: hsa_signal_value_t,
                timeout: u64,
                state: u32,
            ) -> hsa_signal_value_t {
                let waits = *WAITS.read().unwrap_or_else(PoisonError::into_inner);
                // Always present: the function is in the table only after `WAITS` is set.
                let Some(waits) = waits else { return compared };
                let wait = Wait { signal, condition, compared, timeout, state };
                // SAFETY: the caller passes a valid signal.
                unsafe { wait.run(&waits, waits.$original) }
            }
        )*
    };
}
waits! { wait_relaxed: relaxed, wait_scacquire: scacquire, }

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    unsafe extern "C" fn load(signal: hsa_signal_t) -> hsa_signal_value_t {
        // SAFETY: the handle is the address of the test's counter.
        unsafe { &*(signal.handle as *const AtomicI64) }.fetch_add(1, Ordering::Relaxed)
    }

    unsafe extern "C" fn original(
        _: hsa_signal_t,
        _: u32,
        _: hsa_signal_value_t,
        _: u64,
        _: u32,
    ) -> hsa_signal_value_t {
        -1
    }

    fn sleep(is_over: &mut dyn FnMut() -> bool, _: Duration) -> bool {
        while !is_over() {}
        true
    }

    fn cannot_sleep(_: &mut dyn FnMut() -> bool, _: Duration) -> bool {
        false
    }

    /// For each condition of `hsa.h`: the value at which the wait ends, for a counter that increases
    /// from `from`.
    #[test]
    fn wait_ends_with_the_first_value_that_meets_the_condition() {
        let run = |from: i64, condition, sleep| {
            let counter = AtomicI64::new(from);
            let signal = hsa_signal_t { handle: &raw const counter as u64 };
            let wait = Wait { signal, condition, compared: 3, timeout: 9, state: 1 };
            let waits = Waits { load, relaxed: original, scacquire: original, sleep };
            // SAFETY: the counter is alive.
            unsafe { wait.run(&waits, original) }
        };
        let found =
            [(0, 0), (3, 1), (2, 2), (0, 3)].map(|(from, condition)| run(from, condition, sleep));
        assert_eq!(found, [3, 4, 2, 3]);
        assert_eq!(run(0, 0, cannot_sleep), -1, "the runtime's function waits");
    }
}
