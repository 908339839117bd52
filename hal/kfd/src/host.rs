//! Words of memory that the GPU's engines and the host share: signals, queue pointers.

use crate::events::Events;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A word at an address that the runtime has given.
///
/// # Safety
/// The address is aligned, and mapped for as long as the word is used.
pub unsafe fn word64<'a>(address: u64) -> &'a AtomicU64 {
    // SAFETY: promised by the caller; all access is atomic.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

/// The same, of 32 bits.
///
/// # Safety
/// As [`word64`].
pub unsafe fn word32<'a>(address: u64) -> &'a AtomicU32 {
    // SAFETY: promised by the caller; all access is atomic.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

/// `amd_signal_t` (`amd_hsa_signal.h`), by its address, which is its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal(u64);

impl Signal {
    const VALUE: u64 = 8;
    const MAILBOX: u64 = 16;
    const EVENT: u64 = 24;
    const START: u64 = 32;
    const END: u64 = 40;

    /// The signal with a handle; `None` for the handle 0.
    ///
    /// # Safety
    /// A handle of the runtime, which keeps the signal while packets that name it are not done.
    pub unsafe fn new(handle: u64) -> Option<Signal> {
        (handle != 0).then_some(Signal(handle))
    }

    fn word(self, offset: u64) -> &'static AtomicU64 {
        // SAFETY: the signal is there, see `new`.
        unsafe { word64(self.0 + offset) }
    }

    pub fn value(self) -> i64 {
        self.word(Signal::VALUE).load(Ordering::Acquire) as i64
    }

    /// When what it stands for began and ended, in the GPU's clock.
    pub fn set_times(self, start: u64, end: u64) {
        self.word(Signal::START).store(start, Ordering::Relaxed);
        self.word(Signal::END).store(end, Ordering::Relaxed);
    }

    /// Decrements it, and wakes who waits.
    pub fn decrement(self, events: &Events) {
        // What waits may give the signal back as soon as its value has changed.
        let notify = self.notification();
        self.word(Signal::VALUE).fetch_sub(1, Ordering::AcqRel);
        notify.send(events);
    }

    /// Sets bits of it, and wakes who waits.
    pub fn set_bits(self, bits: i64, events: &Events) {
        let notify = self.notification();
        self.word(Signal::VALUE).fetch_or(bits as u64, Ordering::AcqRel);
        notify.send(events);
    }

    fn notification(self) -> Notification {
        let mailbox = self.word(Signal::MAILBOX).load(Ordering::Acquire);
        // SAFETY: as in `word`.
        let event = unsafe { word32(self.0 + Signal::EVENT) }.load(Ordering::Acquire);
        Notification { mailbox, event }
    }
}

/// Whom a signal wakes.
struct Notification {
    mailbox: u64,
    event: u32,
}

impl Notification {
    fn send(self, events: &Events) {
        if self.mailbox != 0 {
            // SAFETY: the mailbox is the runtime's pool of event slots, which stays.
            unsafe { word64(self.mailbox) }.store(self.event.into(), Ordering::Release);
            events.set(self.event);
        }
    }
}

/// The GPU's clock: nanoseconds that the host has been up.
pub fn clock() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
