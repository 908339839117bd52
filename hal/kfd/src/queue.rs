//! Queues, as the runtime has made them.

use crate::host::word64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a queue is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// AQL packets.
    Compute,
    /// Copies.
    Sdma,
}

/// A queue.
#[derive(Debug)]
pub struct Queue {
    pub id: u64,
    /// The GPU's.
    pub node: u32,
    pub kind: QueueKind,
    /// The packets.
    pub ring: u64,
    pub ring_bytes: u64,
    read_pointer: u64,
    write_pointer: u64,
    /// What the runtime writes to tell of packets, and pointers of queues for which it has none.
    /// The engines look at the write pointer itself.
    words: Box<[AtomicU64; 3]>,
    /// Whether the runtime has given it up.
    pub is_gone: AtomicBool,
    /// Whether a fault has stopped it.
    pub is_stopped: AtomicBool,
}

/// The places of a queue that the runtime has given, or 0.
pub struct Pointers {
    pub read: u64,
    pub write: u64,
}

impl Queue {
    pub fn new(
        id: u64,
        node: u32,
        kind: QueueKind,
        (ring, ring_bytes): (u64, u64),
        pointers: Pointers,
    ) -> Queue {
        let words: Box<[AtomicU64; 3]> = Box::default();
        let or_own =
            |given: u64, own: &AtomicU64| if given == 0 { own.as_ptr() as u64 } else { given };
        Queue {
            id,
            node,
            kind,
            ring,
            ring_bytes,
            read_pointer: or_own(pointers.read, &words[1]),
            write_pointer: or_own(pointers.write, &words[2]),
            words,
            is_gone: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        }
    }

    pub fn doorbell_address(&self) -> u64 {
        self.words[0].as_ptr() as u64
    }

    pub fn read_address(&self) -> u64 {
        self.read_pointer
    }

    pub fn write_address(&self) -> u64 {
        self.write_pointer
    }

    /// `amd_queue_t` of a compute queue: its read index is a field of it.
    pub fn structure(&self) -> u64 {
        const READ_DISPATCH_ID: u64 = 128;
        self.read_pointer - READ_DISPATCH_ID
    }

    /// The signal that tells the runtime of errors, `queue_inactive_signal` of `amd_queue_t`.
    pub fn inactive_signal(&self) -> u64 {
        const QUEUE_INACTIVE_SIGNAL: u64 = 192;
        // SAFETY: a field of the runtime's structure, which stays until the queue is destroyed.
        unsafe { word64(self.structure() + QUEUE_INACTIVE_SIGNAL) }.load(Ordering::Acquire)
    }

    /// Packets or bytes that have been taken.
    pub fn read(&self) -> u64 {
        // SAFETY: the runtime's, until the queue is destroyed, or our own.
        unsafe { word64(self.read_pointer) }.load(Ordering::Acquire)
    }

    pub fn set_read(&self, index: u64) {
        // SAFETY: as in `read`.
        unsafe { word64(self.read_pointer) }.store(index, Ordering::Release);
    }

    /// Packets or bytes that have been written.
    pub fn written(&self) -> u64 {
        // SAFETY: as in `read`.
        unsafe { word64(self.write_pointer) }.load(Ordering::Acquire)
    }

    /// Whether nobody is to take anything from it any more.
    pub fn is_over(&self) -> bool {
        self.is_gone.load(Ordering::Acquire) || self.is_stopped.load(Ordering::Acquire)
    }
}
