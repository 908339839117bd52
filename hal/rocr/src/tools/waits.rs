//! The application's waits for signals. The runtime's own look at the value again and again, which
//! takes the processor from whoever is to change it where that is not a GPU.

use hsa_sys::signatures::{hsa_signal_load_scacquire, hsa_signal_wait_scacquire};
use hsa_sys::{HsaApiTable, KnownTables, hsa_signal_t, hsa_signal_value_t};
use std::cell::Cell;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// Sleeps until what is asked for is so, or for so long, and whether it could: without anybody who
/// would end the sleep it does nothing.
pub type Sleep = fn(&mut dyn FnMut() -> bool, Duration) -> bool;

/// The runtime's functions, and what sleeps in their place.
#[derive(Clone, Copy)]
struct Waits {
    load: hsa_signal_load_scacquire,
    relaxed: hsa_signal_wait_scacquire,
    scacquire: hsa_signal_wait_scacquire,
    sleep: Sleep,
}

/// Those of the tables that were changed last, as for stores.
static WAITS: RwLock<Option<Waits>> = RwLock::new(None);

/// Has the application sleep where it waits for a signal, whatever way of waiting it asks for: values
/// and times are those of `hsa.h`. Whether the tables could be changed, or have been before.
///
/// # Safety
/// As [`super::watch_stores`]; and ticks of the runtime's clock are nanoseconds.
pub unsafe fn replace_waits(table: *mut HsaApiTable, sleep: Sleep) -> bool {
    // SAFETY: promised by the caller: nobody else uses the tables before `OnLoad` returns.
    let known = unsafe { table.as_mut().and_then(|table| table.known()) };
    let Some(KnownTables { core, .. }) = known else { return false };
    let own: hsa_signal_wait_scacquire = wait_relaxed;
    if std::ptr::fn_addr_eq(core.hsa_signal_wait_relaxed_fn, own) {
        return true;
    }
    let relaxed = std::mem::replace(&mut core.hsa_signal_wait_relaxed_fn, wait_relaxed);
    let scacquire = std::mem::replace(&mut core.hsa_signal_wait_scacquire_fn, wait_scacquire);
    let own = Waits { load: core.hsa_signal_load_scacquire_fn, relaxed, scacquire, sleep };
    *WAITS.write().unwrap_or_else(PoisonError::into_inner) = Some(own);
    true
}

/// The arguments of a wait.
#[derive(Clone, Copy)]
struct Wait {
    signal: hsa_signal_t,
    condition: u32,
    compared: hsa_signal_value_t,
    time: u64,
    state: u32,
}

impl Wait {
    /// Whether a value is what is waited for (`hsa_signal_condition_t`).
    fn is_over(&self, value: hsa_signal_value_t) -> bool {
        match self.condition {
            0 => value == self.compared,
            1 => value != self.compared,
            2 => value < self.compared,
            _ => value >= self.compared,
        }
    }

    /// Waits by sleeping, or as the runtime does; a value that the signal had.
    ///
    /// # Safety
    /// The signal lives, and `real` is the runtime's function of the same name.
    unsafe fn run(self, waits: &Waits, real: hsa_signal_wait_scacquire) -> hsa_signal_value_t {
        let value = Cell::new(0);
        let mut is_over = || {
            // SAFETY: promised by the caller.
            value.set(unsafe { (waits.load)(self.signal) });
            self.is_over(value.get())
        };
        if (waits.sleep)(&mut is_over, Duration::from_nanos(self.time)) {
            return value.get();
        }
        let Wait { signal, condition, compared, time, state } = self;
        // SAFETY: promised by the caller.
        unsafe { real(signal, condition, compared, time, state) }
    }
}

/// Functions in the place of the runtime's.
macro_rules! waits {
    ($($name:ident: $real:ident,)*) => {
        $(
            unsafe extern "C" fn $name(
                signal: hsa_signal_t,
                condition: u32,
                compared: hsa_signal_value_t,
                time: u64,
                state: u32,
            ) -> hsa_signal_value_t {
                let waits = *WAITS.read().unwrap_or_else(PoisonError::into_inner);
                // It is in the table because there are some.
                let Some(waits) = waits else { return compared };
                let wait = Wait { signal, condition, compared, time, state };
                // SAFETY: the caller's signal.
                unsafe { wait.run(&waits, waits.$real) }
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
        // SAFETY: a counter of the test.
        unsafe { &*(signal.handle as *const AtomicI64) }.fetch_add(1, Ordering::Relaxed)
    }

    unsafe extern "C" fn real(
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

    fn cannot(_: &mut dyn FnMut() -> bool, _: Duration) -> bool {
        false
    }

    /// Each condition of `hsa.h`: the value of a counter that goes up from `from` when it is over.
    #[test]
    fn a_wait_ends_with_the_first_value_that_fits() {
        let run = |from: i64, condition, sleep| {
            let counter = AtomicI64::new(from);
            let signal = hsa_signal_t { handle: &raw const counter as u64 };
            let wait = Wait { signal, condition, compared: 3, time: 9, state: 1 };
            let waits = Waits { load, relaxed: real, scacquire: real, sleep };
            // SAFETY: the counter lives.
            unsafe { wait.run(&waits, real) }
        };
        let found = [(0, 0), (3, 1), (2, 2), (0, 3)].map(|(from, own)| run(from, own, sleep));
        assert_eq!(found, [3, 4, 2, 3]);
        assert_eq!(run(0, 0, cannot), -1, "without sleep the runtime waits");
    }
}
