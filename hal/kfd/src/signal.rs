//! HSA signals: packets wait for them, and decrement them on completion.

use crate::events::Events;
use crate::map::{GpuAddress, View, Violation};
use std::sync::atomic::{AtomicU64, Ordering};

/// A signal, `amd_signal_t` (`amd_hsa_signal.h`), in memory that the GPU may access.
pub struct Signal<'a> {
    view: &'a View<'a>,
    at: GpuAddress,
    value: &'a AtomicU64,
}

impl<'a> Signal<'a> {
    // Offsets of fields of `amd_signal_t`.
    const VALUE: u64 = 8;
    const EVENT_MAILBOX: u64 = 16;
    const EVENT_ID: u64 = 24;
    const START_TIME: u64 = 32;
    const END_TIME: u64 = 40;

    /// The signal of a handle, which is its address; `None` for the handle 0.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access the signal's value.
    pub fn from_handle(view: &'a View<'a>, handle: u64) -> Result<Option<Signal<'a>>, Violation> {
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

    /// Stores the start and end time of the signal's packet, in ticks of the GPU's clock.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access these fields.
    pub fn set_times(&self, start: u64, end: u64) -> Result<(), Violation> {
        let [start_field, end_field] = [Signal::START_TIME, Signal::END_TIME]
            .map(|field| self.view.word64(self.at.plus(field)));
        start_field?.store(start, Ordering::Relaxed);
        end_field?.store(end, Ordering::Relaxed);
        Ok(())
    }

    /// Decrements the value and wakes all waiters.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access the signal's event mailbox; the value is unchanged
    /// then.
    pub fn decrement(&self, events: &Events) -> Result<(), Violation> {
        // Read before: a waiter may free the signal as soon as its value has changed.
        let notification = self.notification()?;
        self.value.fetch_sub(1, Ordering::AcqRel);
        notification.send(events);
        events.signal_notifier.notify();
        Ok(())
    }

    /// Sets bits of the value and wakes all waiters.
    ///
    /// # Errors
    /// As [`Signal::decrement`].
    pub fn set_bits(&self, bits: i64, events: &Events) -> Result<(), Violation> {
        let notification = self.notification()?;
        self.value.fetch_or(bits as u64, Ordering::AcqRel);
        notification.send(events);
        events.signal_notifier.notify();
        Ok(())
    }

    fn notification(&self) -> Result<Notification<'a>, Violation> {
        let word = self.view.word64(self.at.plus(Signal::EVENT_MAILBOX))?;
        let event = self.view.word32(self.at.plus(Signal::EVENT_ID))?.load(Ordering::Acquire);
        let mailbox = match word.load(Ordering::Acquire) {
            0 => None,
            address => Some(self.view.word64(GpuAddress(address))?),
        };
        Ok(Notification { mailbox, event })
    }
}

/// The event of a signal, and the mailbox that gets the event's number.
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
