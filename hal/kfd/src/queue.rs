//! Queues that the runtime has created.

use crate::map::{GpuAddress, Map, View, Violation};
use crate::pm4::{LaunchRecord, Processor};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Kind of a queue's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// AQL packets: kernels and barriers.
    Compute,
    /// PM4 packets: kernels, waits and signals.
    Pm4,
    /// SDMA packets: copies.
    Sdma,
}

/// A queue. GPU code can write to its ring and to its read and write pointers.
pub struct Queue {
    pub id: u64,
    /// Node of the GPU.
    pub node: u32,
    pub kind: QueueKind,
    pub ring: Ring,
    /// The engines look at the write pointer itself, not at doorbells.
    pointers: Pointers,
    /// Record of launches from registers; `None` if the queue cannot have any.
    pub record: Option<LaunchRecord>,
    /// State of the packet processor for PM4 packets.
    processor: Mutex<Processor>,
    map: Arc<Map>,
    /// `true` once the runtime has destroyed the queue.
    is_destroyed: AtomicBool,
    /// `true` once a fault has stopped the queue.
    is_stopped: AtomicBool,
    /// `true` if the queue's kernels may use global wave sync, as those of cooperative launches do.
    pub has_global_sync: AtomicBool,
    /// Number of [`ActiveQueue`]s.
    users: Mutex<usize>,
    /// Notified when the last user has left.
    unused: Condvar,
}

/// Ring buffer of a queue's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    start: GpuAddress,
    bytes: u64,
}

impl Ring {
    /// Smallest size of a ring in bytes: that of an AQL packet.
    pub const MIN_BYTES: u64 = 64;

    /// Creates a ring; `None` for an invalid size or a misaligned start.
    pub fn new(start: u64, bytes: u64) -> Option<Ring> {
        let is_valid =
            bytes.is_power_of_two() && bytes >= Ring::MIN_BYTES && start.is_multiple_of(64);
        is_valid.then_some(Ring { start: GpuAddress(start), bytes })
    }

    /// Address of the byte at a position, counted since the creation of the queue.
    pub fn address(self, position: u64) -> GpuAddress {
        self.start.plus(position % self.bytes)
    }

    /// Returns `true` if the ring can hold `bytes` bytes.
    pub fn has_room(self, bytes: u64) -> bool {
        bytes <= self.bytes
    }

    /// Checks that a GPU may access the whole ring.
    pub fn check(self, view: &View<'_>) -> Result<(), Violation> {
        view.check(self.start, self.bytes)
    }
}

/// Addresses of the queue's indices, given by the runtime. The indices count packets of a queue of
/// AQL packets, dwords of a queue of PM4 packets, and bytes of an SDMA queue.
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
        record: Option<LaunchRecord>,
        map: Arc<Map>,
    ) -> Queue {
        Queue {
            id,
            node,
            kind,
            ring,
            pointers,
            record,
            processor: Mutex::default(),
            map,
            is_destroyed: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            has_global_sync: AtomicBool::new(false),
            users: Mutex::new(0),
            unused: Condvar::new(),
        }
    }

    /// Locks the memory that the queue's GPU may access.
    pub fn view(&self) -> View<'_> {
        self.map.view(self.node)
    }

    /// Locks the packet processor, which only the compute engine uses.
    pub fn processor(&self) -> MutexGuard<'_, Processor> {
        self.processor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the GPU may access the ring, the indices and the record of launches.
    ///
    /// # Errors
    /// The first [`Violation`].
    pub fn check(&self) -> Result<(), Violation> {
        let view = self.view();
        self.ring.check(&view)?;
        self.record.map_or(Ok(()), |record| record.check(&view))?;
        view.word64(self.pointers.read)?;
        view.word64(self.pointers.write).map(drop)
    }

    /// Address of the `amd_queue_t` of a queue of AQL packets. The read index is one of its fields.
    pub fn amd_queue(&self) -> GpuAddress {
        const READ_DISPATCH_ID: u64 = 128;
        GpuAddress(self.pointers.read.0.wrapping_sub(READ_DISPATCH_ID))
    }

    /// Handle of the signal that reports errors to the runtime, `queue_inactive_signal` of
    /// `amd_queue_t`.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access the field.
    pub fn inactive_signal(&self, view: &View<'_>) -> Result<u64, Violation> {
        const QUEUE_INACTIVE_SIGNAL: u64 = 192;
        let field = self.amd_queue().plus(QUEUE_INACTIVE_SIGNAL);
        Ok(view.word64(field)?.load(Ordering::Acquire))
    }

    /// Number of packets (PM4: dwords, SDMA: bytes) that the engine has taken.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access the index.
    pub fn read_index(&self, view: &View<'_>) -> Result<u64, Violation> {
        Ok(view.word64(self.pointers.read)?.load(Ordering::Acquire))
    }

    /// Sets the number of packets (PM4: dwords, SDMA: bytes) that the engine has taken.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access the index.
    pub fn set_read_index(&self, view: &View<'_>, index: u64) -> Result<(), Violation> {
        view.word64(self.pointers.read)?.store(index, Ordering::Release);
        Ok(())
    }

    /// Number of packets (PM4: dwords, SDMA: bytes) that were written to the queue.
    ///
    /// # Errors
    /// [`Violation`] if the GPU may not access the index.
    pub fn write_index(&self, view: &View<'_>) -> Result<u64, Violation> {
        Ok(view.word64(self.pointers.write)?.load(Ordering::Acquire))
    }

    /// Returns `true` if the engine has something to do: packets are waiting, or an index is
    /// inaccessible, for which the engine refuses the queue.
    pub fn has_packets(&self) -> bool {
        let view = self.view();
        !self.is_closed() && self.read_index(&view) != self.write_index(&view)
    }

    /// Returns `true` if the queue is destroyed or stopped: no more packets are taken from it.
    pub fn is_closed(&self) -> bool {
        self.is_destroyed() || self.is_stopped.load(Ordering::Acquire)
    }

    /// Stops the queue after a fault.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Returns `true` once the runtime has destroyed the queue. An engine that works on it abandons
    /// its packet then.
    pub fn is_destroyed(&self) -> bool {
        self.is_destroyed.load(Ordering::Acquire)
    }

    fn users(&self) -> MutexGuard<'_, usize> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an engine as a user of the queue; `None` once the queue is destroyed.
    pub fn activate(self: &Arc<Queue>) -> Option<ActiveQueue> {
        let mut users = self.users();
        // Checked under the lock: either `destroy` sees this user, or this call sees `destroy`.
        if self.is_destroyed() {
            return None;
        }
        *users += 1;
        Some(ActiveQueue(Arc::clone(self)))
    }

    /// Destroys the queue, and waits until no engine works on it.
    ///
    /// The wait has no time limit. On hardware the driver preempts the queue's waves, and resets
    /// the GPU if they do not stop in time (`queue_preemption_timeout_ms`). Here an engine always
    /// stops: it looks at [`Queue::is_destroyed`] after each slice of a kernel, after each row of a
    /// rectangular copy and after each packet. To return earlier would let the runtime reuse memory
    /// that the engine still works with.
    pub fn destroy(&self) {
        self.is_destroyed.store(true, Ordering::Release);
        let has_users = |users: &mut usize| *users > 0;
        drop(self.unused.wait_while(self.users(), has_users));
    }
}

/// A queue that an engine works on. [`Queue::destroy`] waits until it is dropped.
pub struct ActiveQueue(Arc<Queue>);

impl Deref for ActiveQueue {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        &self.0
    }
}

impl Drop for ActiveQueue {
    fn drop(&mut self) {
        let mut users = self.0.users();
        *users -= 1;
        if *users == 0 {
            self.0.unused.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    fn queue() -> Arc<Queue> {
        let ring = Ring::new(0, 4096).unwrap();
        let pointers = Pointers { read: GpuAddress(0), write: GpuAddress(8) };
        Arc::new(Queue::new(1, 1, QueueKind::Compute, ring, pointers, None, Arc::default()))
    }

    #[test]
    fn destroying_a_queue_waits_for_its_users_only() {
        let (queue, unrelated) = (queue(), queue());
        let _active = unrelated.activate().expect("a user");
        let users = [queue.activate(), queue.activate()].map(|user| user.expect("a user"));
        let (sender, destroyed) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                queue.destroy();
                sender.send(()).expect("a receiver");
            });
            for user in users {
                let early = destroyed.recv_timeout(Duration::from_millis(20));
                assert!(early.is_err(), "destroyed while a user was active");
                drop(user);
            }
            destroyed.recv_timeout(Duration::from_secs(60)).expect("destroyed");
        });
        assert!(queue.activate().is_none());
        // No user: no wait.
        queue.destroy();
    }

    #[test]
    fn a_panicking_engine_releases_its_queue() {
        let queue = queue();
        let active = queue.activate().expect("a user");
        let engine = std::thread::spawn(move || {
            let _active = active;
            panic!("expected by this test");
        });
        assert!(engine.join().is_err());
        queue.destroy();
    }
}
