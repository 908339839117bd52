//! Signals: what packets wait for, and what is decremented when they are done.

use crate::events::Events;
use crate::map::{GpuAddress, View, Violation};
use std::sync::atomic::{AtomicU64, Ordering};

/// `amd_signal_t` (`amd_hsa_signal.h`), in memory that the GPU may access.
pub struct Signal<'a> {
    view: &'a View<'a>,
    at: GpuAddress,
    value: &'a AtomicU64,
}

impl<'a> Signal<'a> {
    const VALUE: u64 = 8;
    const MAILBOX: u64 = 16;
    const EVENT: u64 = 24;
    const START: u64 = 32;
    const END: u64 = 40;

    /// The signal with a handle, which is its address; `None` for the handle 0.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access it.
    pub fn of(view: &'a View<'a>, handle: u64) -> Result<Option<Signal<'a>>, Violation> {
        if handle == 0 {
            return Ok(None);
        }
        let at = GpuAddress(handle);
        let value = view.word64(at.plus(Signal::VALUE))?;
        Ok(Some(Signal { view, at, value }))
    }

    pub fn value(&self) -> i64 {
        self.value.load(Ordering::Acquire) as i64
    }

    /// When what it stands for began and ended, in the GPU's clock.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn set_times(&self, start: u64, end: u64) -> Result<(), Violation> {
        let [first, last] =
            [Signal::START, Signal::END].map(|at| self.view.word64(self.at.plus(at)));
        first?.store(start, Ordering::Relaxed);
        last?.store(end, Ordering::Relaxed);
        Ok(())
    }

    /// Decrements it, and wakes who waits.
    ///
    /// # Errors
    /// [`Violation`] if it names somebody to wake whom the GPU cannot reach; nothing is done then.
    pub fn decrement(&self, events: &Events) -> Result<(), Violation> {
        // What waits may give the signal back as soon as its value has changed.
        let notify = self.notification()?;
        self.value.fetch_sub(1, Ordering::AcqRel);
        notify.send(events);
        events.signal_notifier.notify();
        Ok(())
    }

    /// Sets bits of it, and wakes who waits.
    ///
    /// # Errors
    /// As [`Signal::decrement`].
    pub fn set_bits(&self, bits: i64, events: &Events) -> Result<(), Violation> {
        let notify = self.notification()?;
        self.value.fetch_or(bits as u64, Ordering::AcqRel);
        notify.send(events);
        events.signal_notifier.notify();
        Ok(())
    }

    fn notification(&self) -> Result<Notification<'a>, Violation> {
        let mailbox = self.view.word64(self.at.plus(Signal::MAILBOX))?.load(Ordering::Acquire);
        let event = self.view.word32(self.at.plus(Signal::EVENT))?.load(Ordering::Acquire);
        let mailbox = match mailbox {
            0 => None,
            address => Some(self.view.word64(GpuAddress(address))?),
        };
        Ok(Notification { mailbox, event })
    }
}

/// Whom a signal wakes.
struct Notification<'a> {
    mailbox: Option<&'a AtomicU64>,
    event: u32,
}

impl Notification<'_> {
    fn send(self, events: &Events) {
        if let Some(mailbox) = self.mailbox {
            mailbox.store(self.event.into(), Ordering::Release);
            events.set(self.event);
        }
    }
}
