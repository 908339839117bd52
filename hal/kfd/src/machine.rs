//! The machine that the runtime talks to: memory, events and queues of all GPUs. Its engines run on
//! threads of their own.

use crate::driver::CopyWatch;
use crate::events::Events;
use crate::map::{GpuAddress, Map, View};
use crate::memory::{Change, Memory, PAGE};
use crate::notifier::{Notifier, poll_interval};
use crate::queue::{ActiveQueue, Queue, QueueKind};
use crate::store::{Store, touched_pages};
use crate::submissions::Submissions;
use crate::topology::{Topology, TopologyError};
use flipwave_device::{Address, DeviceError};
use flipwave_isa::Target;
use flipwave_sim::{EmbeddedGpu, Policy, Stalls};
use std::collections::VecDeque;
use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The machine.
pub struct Machine {
    /// What the runtime reads of it.
    pub(crate) topology: Topology,
    /// What its GPUs signal with.
    pub(crate) events: Events,
    map: Arc<Map>,
    changes: Mutex<Changes>,
    applied: Condvar,
    queues: Mutex<Queues>,
    /// Notified when there may be work for the thread that executes kernels.
    pub(crate) compute_notifier: Notifier,
    /// Notified when there may be work for the thread that copies.
    pub(crate) copy_notifier: Notifier,
    /// The loader's list of code objects, see [`crate::code`].
    loader_list: AtomicU64,
    /// What doorbells and other pages of the driver itself are made of.
    pub(crate) pages: Arc<Store>,
    /// The memory of each GPU, from node 1 on.
    stores: Vec<Arc<Store>>,
    copy_watch: Option<Arc<dyn CopyWatch>>,
    /// The process whose threads execute.
    process: u32,
}

/// What the thread that executes has still to receive.
#[derive(Default)]
struct Changes {
    waiting: VecDeque<(u32, Change)>,
    posted: u64,
    applied: u64,
}

#[derive(Default)]
struct Queues {
    all: Vec<Arc<Queue>>,
    last: u64,
    /// What is in those for kernels.
    submissions: Submissions,
}

impl Queues {
    fn note_submissions(&mut self) {
        let compute = self.all.iter().filter(|queue| queue.kind == QueueKind::Compute);
        self.submissions.note(compute);
    }
}

/// Errors returned when starting a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The requested GPUs cannot form a machine.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The embedded GPU cannot be created.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The address space for the GPUs' memory cannot be reserved.
    #[error("cannot reserve the GPUs' memory: {0}")]
    Memory(std::io::Error),
    /// An engine's thread cannot be started.
    #[error("cannot start the GPU's threads: {0}")]
    Thread(std::io::Error),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine {
    /// A machine whose engines do not run, and its GPUs.
    pub(crate) fn idle(
        targets: &[Target],
        copy_watch: Option<Arc<dyn CopyWatch>>,
    ) -> Result<(Arc<Machine>, Vec<EmbeddedGpu>), MachineError> {
        let topology = Topology::of(targets)?;
        let device = |target: &Target| {
            let mut device = EmbeddedGpu::new(target.clone())?;
            // Programs are made and tested on waves that go on side by side.
            let policy = Policy { stalls: Stalls::Report, first_turn: Some(1), ..device.policy() };
            device.set_policy(policy);
            Ok(device)
        };
        let devices: Result<Vec<EmbeddedGpu>, DeviceError> = targets.iter().map(device).collect();
        let store = |name: String| {
            let store = Store::new(&CString::new(name).unwrap_or_default());
            store.map(Arc::new).map_err(MachineError::Memory)
        };
        let nodes = 1..topology.nodes();
        let stores: Result<Vec<Arc<Store>>, MachineError> =
            nodes.map(|node| store(format!("flipwave-gpu-{node}"))).collect();
        let machine = Arc::new(Machine {
            topology,
            events: Events::default(),
            map: Arc::default(),
            changes: Mutex::default(),
            applied: Condvar::new(),
            queues: Mutex::default(),
            compute_notifier: Notifier::default(),
            copy_notifier: Notifier::default(),
            loader_list: AtomicU64::new(0),
            pages: store("flipwave-kfd".to_owned())?,
            stores: stores?,
            copy_watch,
            process: std::process::id(),
        });
        Ok((machine, devices?))
    }

    pub(crate) fn is_gpu(&self, node: u32) -> bool {
        (1..self.topology.nodes()).contains(&node)
    }

    /// The loader's list of code objects; 0 while it is not known.
    pub(crate) fn loader_list(&self) -> u64 {
        self.loader_list.load(Ordering::Acquire)
    }

    /// Says where the loader's list is.
    pub(crate) fn set_loader_list(&self, address: u64) {
        self.loader_list.store(address, Ordering::Release);
    }

    /// The memory of the GPU of a node.
    pub(crate) fn store(&self, node: u32) -> Option<&Arc<Store>> {
        self.stores.get((node as usize).checked_sub(1)?)
    }

    /// Changes memory, and shows the GPUs what of it they may access; besides, the number of the
    /// change after which nothing uses what they may not any more.
    fn change_memory<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> (T, Option<u64>) {
        let mut must_wait = None;
        let result = self.map.change(1..self.topology.nodes(), change, |node, news| {
            let mut changes = lock(&self.changes);
            let unmaps = news.iter().any(|one| matches!(one, Change::Unmap(_)));
            changes.posted += news.len() as u64;
            changes.waiting.extend(news.into_iter().map(|one| (node, one)));
            if unmaps {
                must_wait = Some(changes.posted);
            }
        });
        self.compute_notifier.notify();
        (result, must_wait)
    }

    /// Keeps the GPUs from what the program has given back to the system. For their own threads: which
    /// executes has still to take the changes.
    pub(crate) fn forget_lost_memory(&self) {
        let lost = self.map.with(Memory::lost);
        if !lost.is_nothing() {
            self.change_memory(|memory| memory.lose(lost));
        }
    }

    /// Changes memory, and shows the GPUs what of it they may access. What they may not any more is
    /// safe to be unmapped when this returns.
    pub(crate) fn with_memory<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> T {
        let (result, must_wait) = self.change_memory(change);
        // The map is free again: the thread that is waited for may ask what is mapped.
        if let Some(number) = must_wait {
            let mut changes = lock(&self.changes);
            while changes.applied < number {
                let (back, wait) = self
                    .applied
                    .wait_timeout(changes, Duration::from_secs(1))
                    .unwrap_or_else(PoisonError::into_inner);
                changes = back;
                // In a child of the process nobody executes.
                if wait.timed_out() && std::process::id() != self.process {
                    break;
                }
            }
        }
        result
    }

    /// Gives what has changed since the last time to the thread that executes.
    pub(crate) fn take_changes(&self, mut apply: impl FnMut(u32, Change)) {
        let mut changes = lock(&self.changes);
        while let Some((node, change)) = changes.waiting.pop_front() {
            apply(node, change);
            changes.applied += 1;
        }
        drop(changes);
        self.applied.notify_all();
    }

    /// What the GPU of a node may access, held as it is.
    pub(crate) fn view(&self, node: u32) -> View<'_> {
        self.map.view(node)
    }

    /// All memory, for queues.
    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map)
    }

    /// Whether the memory at an address is the host's, which the GPU may access, and not the GPU's.
    pub fn is_on_host(&self, address: Address) -> bool {
        self.map.with(|memory| {
            let around = memory.block_around(address.0);
            memory.shared.contains(address.0) || around.is_some_and(|block| block.node == 0)
        })
    }

    /// The ranges that the GPU of a node may access.
    pub fn mapped(&self, node: u32) -> Vec<Range<Address>> {
        let address = |range: Range<u64>| Address(range.start)..Address(range.end);
        self.view(node).ranges().map(address).collect()
    }

    /// Of these pages, numbers of addresses, those that a GPU may access and that were ever touched:
    /// the others are zero. All of a part where the system does not say which.
    pub fn touched(&self, node: u32, pages: Range<u64>) -> Vec<u64> {
        let bytes = pages.start * PAGE..pages.end * PAGE;
        let mut touched = Vec::new();
        for (range, host) in self.view(node).within(bytes) {
            let hosts = host..host + (range.end - range.start);
            let store = self.stores.iter().chain([&self.pages]).find(|own| own.holds(&hosts));
            let found = match store {
                Some(store) => store.touched(hosts.clone()),
                None => touched_pages(hosts.clone()),
            };
            let all = || (hosts.start..hosts.end).step_by(PAGE as usize).collect();
            let found: Vec<u64> = found.unwrap_or_else(|_| all());
            touched.extend(found.into_iter().map(|at| (range.start + (at - host)) / PAGE));
        }
        touched
    }

    /// Copies bytes that the GPU of a node may access; whether it may.
    pub fn read(&self, node: u32, address: Address, bytes: &mut [u8]) -> bool {
        self.view(node).read(GpuAddress(address.0), bytes).is_ok()
    }

    /// Shows a copy to whoever watches.
    pub(crate) fn show_copy(&self, node: u32, from: u64, to: u64, bytes: u64) {
        if let Some(watch) = &self.copy_watch {
            watch.copies(self, node, Address(from), Address(to), bytes);
        }
    }

    /// Adds a queue with a number of its own, if its GPU may access all that it is made of.
    pub(crate) fn add_queue(&self, make: impl FnOnce(u64) -> Queue) -> Option<Arc<Queue>> {
        let mut queues = lock(&self.queues);
        let queue = Arc::new(make(queues.last + 1));
        queue.check().ok()?;
        queues.last += 1;
        queues.all.push(Arc::clone(&queue));
        Some(queue)
    }

    /// Destroys a queue; `false` if there is none with this number. Nothing of the queue is executed
    /// after this returns, see [`Queue::destroy`].
    pub(crate) fn remove_queue(&self, id: u64) -> bool {
        let queue = {
            let mut queues = lock(&self.queues);
            let Some(index) = queues.all.iter().position(|own| own.id == id) else {
                return false;
            };
            queues.submissions.forget(id);
            queues.all.remove(index)
        };
        queue.destroy();
        true
    }

    /// Whether there is a queue with this number.
    pub(crate) fn has_queue(&self, id: u64) -> bool {
        lock(&self.queues).all.iter().any(|own| own.id == id)
    }

    /// Lets the kernels of a queue use global wave sync; whether there is such a queue.
    pub(crate) fn give_global_sync(&self, id: u64) -> bool {
        let queues = lock(&self.queues);
        let queue = queues.all.iter().find(|own| own.id == id);
        queue.is_some_and(|own| {
            own.has_global_sync.store(true, Ordering::Release);
            true
        })
    }

    /// The queues for copies, in the order in which they were made.
    pub(crate) fn copy_queues(&self) -> Vec<Arc<Queue>> {
        let queues = lock(&self.queues);
        queues.all.iter().filter(|queue| queue.kind == QueueKind::Sdma).cloned().collect()
    }

    /// Notes which packets compute queues have got since the last time.
    pub(crate) fn note_submissions(&self) {
        lock(&self.queues).note_submissions();
        self.compute_notifier.notify();
    }

    /// Has the engines look at queues that have something for them: whoever calls is about to wait.
    pub(crate) fn wake_engines(&self) {
        let (mut has_kernels, mut has_copies) = (false, false);
        for queue in lock(&self.queues).all.iter().filter(|queue| queue.has_more()) {
            match queue.kind {
                QueueKind::Compute => has_kernels = true,
                QueueKind::Sdma => has_copies = true,
            }
        }
        if has_kernels {
            self.compute_notifier.notify();
        }
        if has_copies {
            self.copy_notifier.notify();
        }
    }

    /// Sleeps until the value of a signal is what somebody waits for, or for so long. What the GPU
    /// changes is seen at once, what others change soon.
    pub(crate) fn wait_until(&self, is_over: &mut dyn FnMut() -> bool, time: Duration) {
        if is_over() {
            return;
        }
        self.wake_engines();
        let start = Instant::now();
        loop {
            let seen = self.events.signal_notifier.count();
            let waited = start.elapsed();
            if is_over() || waited >= time {
                return;
            }
            self.events.signal_notifier.wait(seen, poll_interval(waited).min(time - waited));
        }
    }

    /// Packets that are submitted from now on are of this range of the application.
    pub(crate) fn enter_range(&self, range: Option<Arc<str>>) {
        let mut queues = lock(&self.queues);
        queues.note_submissions();
        queues.submissions.enter(range);
    }

    /// The range in which the application has submitted a packet of a queue that is not done.
    pub(crate) fn range_of(&self, queue: u64, packet: u64) -> Option<Arc<str>> {
        lock(&self.queues).submissions.range(queue, packet)
    }

    /// The compute queue with the oldest packet that is not done, but for queues with these numbers.
    pub(crate) fn oldest(&self, passed: &[u64]) -> Option<ActiveQueue> {
        let mut queues = lock(&self.queues);
        // What the runtime submits by itself is noted by nobody else.
        queues.note_submissions();
        // `remove_queue` takes a queue off the list before it destroys it.
        queues.submissions.oldest(passed)?.activate()
    }
}
