//! Queues, as the runtime has made them.

use crate::map::{GpuAddress, Map, View, Violation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a queue is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// AQL packets.
    Compute,
    /// Copies.
    Sdma,
}

/// A queue. Its packets, and the places that the runtime has given, are where GPU code can write.
pub struct Queue {
    pub id: u64,
    /// The GPU's.
    pub node: u32,
    pub kind: QueueKind,
    pub ring: Ring,
    /// How many packets or bytes have been taken, and written. The engines look at the latter, not
    /// at doorbells.
    pointers: Pointers,
    map: Arc<Map>,
    /// Whether the runtime has given it up.
    pub is_gone: AtomicBool,
    /// Whether a fault has stopped it.
    pub is_stopped: AtomicBool,
    /// Whether its kernels use global wave sync: those of cooperative launches.
    pub has_global_sync: AtomicBool,
}

/// Where packets stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    start: GpuAddress,
    bytes: u64,
}

impl Ring {
    /// Bytes of a packet of a compute queue: no ring is smaller.
    pub const LEAST: u64 = 64;

    /// A ring; nothing if no ring can have this size or begin there.
    pub fn new(start: u64, bytes: u64) -> Option<Ring> {
        let is_right = bytes.is_power_of_two() && bytes >= Ring::LEAST && start.is_multiple_of(64);
        is_right.then_some(Ring { start: GpuAddress(start), bytes })
    }

    /// Where the byte with a number stands.
    pub fn place(self, number: u64) -> GpuAddress {
        self.start.plus(number % self.bytes)
    }

    /// Whether so many bytes can be in it at once.
    pub fn holds(self, bytes: u64) -> bool {
        bytes <= self.bytes
    }

    /// Checks that a GPU may access all of it.
    pub fn check(self, view: &View<'_>) -> Result<(), Violation> {
        view.check(self.start, self.bytes)
    }
}

/// The places of a queue that the runtime has given.
#[derive(Clone, Copy, Debug)]
pub struct Pointers {
    pub read: GpuAddress,
    pub write: GpuAddress,
}

impl Queue {
    pub fn new(
        id: u64,
        node: u32,
        kind: QueueKind,
        ring: Ring,
        pointers: Pointers,
        map: Arc<Map>,
    ) -> Queue {
        Queue {
            id,
            node,
            kind,
            ring,
            pointers,
            map,
            is_gone: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            has_global_sync: AtomicBool::new(false),
        }
    }

    /// What its GPU may access, held as it is.
    pub fn view(&self) -> View<'_> {
        self.map.view(self.node)
    }

    /// Checks that the GPU may access all that the runtime has given.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn check(&self) -> Result<(), Violation> {
        let view = self.view();
        self.ring.check(&view)?;
        view.word64(self.pointers.read)?;
        view.word64(self.pointers.write).map(drop)
    }

    /// `amd_queue_t` of a compute queue: its read index is a field of it.
    pub fn structure(&self) -> GpuAddress {
        const READ_DISPATCH_ID: u64 = 128;
        GpuAddress(self.pointers.read.0.wrapping_sub(READ_DISPATCH_ID))
    }

    /// The signal that reports errors to the runtime, `queue_inactive_signal` of `amd_queue_t`.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn inactive_signal(&self, view: &View<'_>) -> Result<u64, Violation> {
        const QUEUE_INACTIVE_SIGNAL: u64 = 192;
        let place = self.structure().plus(QUEUE_INACTIVE_SIGNAL);
        Ok(view.word64(place)?.load(Ordering::Acquire))
    }

    /// Packets or bytes that have been taken.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn read(&self, view: &View<'_>) -> Result<u64, Violation> {
        Ok(view.word64(self.pointers.read)?.load(Ordering::Acquire))
    }

    /// Says how many have been taken.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn set_read(&self, view: &View<'_>, index: u64) -> Result<(), Violation> {
        view.word64(self.pointers.read)?.store(index, Ordering::Release);
        Ok(())
    }

    /// Packets or bytes that have been written.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn written(&self, view: &View<'_>) -> Result<u64, Violation> {
        Ok(view.word64(self.pointers.write)?.load(Ordering::Acquire))
    }

    /// Whether there is something in it that has not been taken. One whose places are not the GPU's is
    /// refused by whoever looks into it.
    pub fn has_more(&self) -> bool {
        let view = self.view();
        !self.is_over() && self.read(&view) != self.written(&view)
    }

    /// Whether nobody is to take anything from it any more.
    pub fn is_over(&self) -> bool {
        self.is_gone.load(Ordering::Acquire) || self.is_stopped.load(Ordering::Acquire)
    }
}
