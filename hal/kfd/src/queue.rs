//! Queues, as the runtime has made them.

use crate::map::{GpuAddress, Map, View, Violation};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

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
    /// Whether the runtime has destroyed it.
    is_destroyed: AtomicBool,
    /// Number of [`ActiveQueue`]s.
    users: Mutex<usize>,
    /// Notified when the last user has left.
    unused: Condvar,
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
            is_destroyed: AtomicBool::new(false),
            users: Mutex::new(0),
            unused: Condvar::new(),
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
        self.is_destroyed() || self.is_stopped.load(Ordering::Acquire)
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
    /// The wait has no time limit. On hardware the driver preempts the queue's waves, and resets the
    /// GPU if they do not stop in time (`queue_preemption_timeout_ms`). Here an engine always stops:
    /// it looks at [`Queue::is_destroyed`] after each slice of a kernel, after each row of a
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
        Arc::new(Queue::new(1, 1, QueueKind::Compute, ring, pointers, Arc::default()))
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
