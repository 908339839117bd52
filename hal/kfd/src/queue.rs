//! Queues, as the runtime has made them.

use crate::map::{GpuAddress, Map, View, Violation};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    read: Index,
    write: Index,
    /// What the runtime writes to announce packets. The engines look at the write index itself.
    doorbell: Box<AtomicU64>,
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

    /// Checks that a GPU may access all of it.
    pub fn check(self, view: &View<'_>) -> Result<(), Violation> {
        view.check(self.start, self.bytes)
    }
}

/// A word with the number of a packet or byte.
enum Index {
    /// One that the runtime has given.
    Given(GpuAddress),
    /// Our own, where it has given none.
    Own(Box<AtomicU64>),
}

impl Index {
    fn new(given: u64) -> Index {
        if given == 0 { Index::Own(Box::default()) } else { Index::Given(GpuAddress(given)) }
    }

    fn address(&self) -> u64 {
        match self {
            Index::Given(place) => place.0,
            Index::Own(word) => word.as_ptr() as u64,
        }
    }

    fn of<'a>(&'a self, view: &'a View<'a>) -> Result<&'a AtomicU64, Violation> {
        match self {
            Index::Given(place) => view.word64(*place),
            Index::Own(word) => Ok(word),
        }
    }
}

/// The places of a queue that the runtime has given, or 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pointers {
    pub read: u64,
    pub write: u64,
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
            read: Index::new(pointers.read),
            write: Index::new(pointers.write),
            doorbell: Box::default(),
            map,
            is_gone: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            has_global_sync: AtomicBool::new(false),
        }
    }

    pub fn doorbell_address(&self) -> u64 {
        self.doorbell.as_ptr() as u64
    }

    pub fn read_address(&self) -> u64 {
        self.read.address()
    }

    pub fn write_address(&self) -> u64 {
        self.write.address()
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
        self.read.of(&view)?;
        self.write.of(&view).map(drop)
    }

    /// `amd_queue_t` of a compute queue: its read index is a field of it.
    pub fn structure(&self) -> GpuAddress {
        const READ_DISPATCH_ID: u64 = 128;
        GpuAddress(self.read.address().wrapping_sub(READ_DISPATCH_ID))
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
        Ok(self.read.of(view)?.load(Ordering::Acquire))
    }

    /// Says how many have been taken.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn set_read(&self, view: &View<'_>, index: u64) -> Result<(), Violation> {
        self.read.of(view)?.store(index, Ordering::Release);
        Ok(())
    }

    /// Packets or bytes that have been written.
    ///
    /// # Errors
    /// [`Violation`].
    pub fn written(&self, view: &View<'_>) -> Result<u64, Violation> {
        Ok(self.write.of(view)?.load(Ordering::Acquire))
    }

    /// Whether nobody is to take anything from it any more.
    pub fn is_over(&self) -> bool {
        self.is_gone.load(Ordering::Acquire) || self.is_stopped.load(Ordering::Acquire)
    }
}
