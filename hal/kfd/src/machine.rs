//! The machine that the runtime talks to: memory, events and queues of all GPUs. Its engines run on
//! their own threads.

use crate::dispatch::CopyObserver;
use crate::events::{AccessFault, Events, MemoryFault};
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

/// The machine: a host and its GPUs.
pub struct Machine {
    /// Hosts and GPUs as the runtime sees them.
    pub(crate) topology: Topology,
    /// Events that the GPUs signal.
    pub(crate) events: Events,
    map: Arc<Map>,
    changes: Mutex<Changes>,
    /// Notified when the compute engine has applied changes.
    changes_applied: Condvar,
    queues: Mutex<Queues>,
    /// Notified when there may be work for the thread that executes kernels.
    pub(crate) compute_notifier: Notifier,
    /// Notified when there may be work for the thread that copies.
    pub(crate) copy_notifier: Notifier,
    /// Address of the loader's list of code objects, see [`crate::loader`].
    loader_list: AtomicU64,
    /// Backing store of doorbells and other pages of the driver itself.
    pub(crate) driver_pages: Arc<Store>,
    /// Backing store of each GPU's memory, from node 1.
    stores: Vec<Arc<Store>>,
    copy_observer: Option<Arc<dyn CopyObserver>>,
    /// Number of copies to memory of GPUs.
    copies_to_gpus: AtomicU64,
    /// Number of the process that the engine threads are in.
    process: u32,
}

/// Changes of the GPUs' memory maps that the compute engine has yet to apply to its devices.
#[derive(Default)]
struct Changes {
    /// Changes with the GPU's node, oldest first.
    pending: VecDeque<(u32, Change)>,
    /// Number of changes posted so far.
    posted: u64,
    /// Number of changes applied so far.
    applied: u64,
}

#[derive(Default)]
struct Queues {
    /// Ordered by creation.
    all: Vec<Arc<Queue>>,
    /// Number of the queue that was created last.
    last: u64,
    /// Packets of the compute queues.
    submissions: Submissions,
}

impl Queues {
    fn note_submissions(&mut self) {
        let compute = self.all.iter().filter(|queue| queue.kind != QueueKind::Sdma);
        self.submissions.note(compute);
    }

    fn get(&self, id: u64) -> Option<&Arc<Queue>> {
        self.all.iter().find(|queue| queue.id == id)
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
    /// Creates a machine whose engines do not run, and the devices for its engines.
    pub(crate) fn without_engines(
        targets: &[Target],
        copy_observer: Option<Arc<dyn CopyObserver>>,
    ) -> Result<(Arc<Machine>, Vec<EmbeddedGpu>), MachineError> {
        let topology = Topology::new(targets)?;
        let device = |target: &Target| {
            let mut device = EmbeddedGpu::new(target.clone())?;
            // Programs are made for and tested on hardware, whose waves advance side by side.
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
            changes_applied: Condvar::new(),
            queues: Mutex::default(),
            compute_notifier: Notifier::default(),
            copy_notifier: Notifier::default(),
            loader_list: AtomicU64::new(0),
            driver_pages: store("flipwave-kfd".to_owned())?,
            stores: stores?,
            copy_observer,
            copies_to_gpus: AtomicU64::new(0),
            process: std::process::id(),
        });
        Ok((machine, devices?))
    }

    pub(crate) fn is_gpu(&self, node: u32) -> bool {
        (1..self.topology.nodes()).contains(&node)
    }

    /// Address of the loader's list of code objects; 0 while unknown.
    pub(crate) fn loader_list(&self) -> u64 {
        self.loader_list.load(Ordering::Acquire)
    }

    /// Sets the address of the loader's list of code objects.
    pub(crate) fn set_loader_list(&self, address: u64) {
        self.loader_list.store(address, Ordering::Release);
    }

    /// Backing store of a GPU's memory.
    pub(crate) fn store(&self, node: u32) -> Option<&Arc<Store>> {
        self.stores.get((node as usize).checked_sub(1)?)
    }

    /// Changes memory, and posts the differences of the GPUs' memory maps to the compute engine. If
    /// something was unmapped, also returns the number of changes that must be applied before the
    /// engine no longer uses it.
    fn change_memory<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> (T, Option<u64>) {
        let mut awaited = None;
        let result = self.map.change(1..self.topology.nodes(), change, |node, differences| {
            let mut changes = lock(&self.changes);
            let unmaps = differences.iter().any(|change| matches!(change, Change::Unmap(_)));
            changes.posted += differences.len() as u64;
            changes.pending.extend(differences.into_iter().map(|change| (node, change)));
            if unmaps {
                awaited = Some(changes.posted);
            }
        });
        self.compute_notifier.notify();
        (result, awaited)
    }

    /// Takes memory away from the GPUs that the program has unmapped without telling the driver.
    /// For engine threads: does not wait until the compute engine has applied the changes.
    pub(crate) fn remove_unmapped_memory(&self) {
        let unmapped = self.map.with(Memory::find_unmapped);
        if !unmapped.is_empty() {
            self.change_memory(|memory| memory.remove_unmapped(unmapped));
        }
    }

    /// Changes memory, and waits until no GPU uses what was unmapped: the caller may free it.
    pub(crate) fn with_memory<T>(&self, change: impl FnOnce(&mut Memory) -> T) -> T {
        let (result, awaited) = self.change_memory(change);
        // The map is unlocked again: the engine may look at it before it applies the changes.
        if let Some(number) = awaited {
            let mut changes = lock(&self.changes);
            while changes.applied < number {
                let (guard, wait) = self
                    .changes_applied
                    .wait_timeout(changes, Duration::from_secs(1))
                    .unwrap_or_else(PoisonError::into_inner);
                changes = guard;
                // A forked child has no engine threads.
                if wait.timed_out() && std::process::id() != self.process {
                    break;
                }
            }
        }
        result
    }

    /// Calls `apply` with each pending change and its GPU's node, oldest first. For the compute
    /// engine.
    pub(crate) fn apply_changes(&self, mut apply: impl FnMut(u32, Change)) {
        let mut changes = lock(&self.changes);
        while let Some((node, change)) = changes.pending.pop_front() {
            apply(node, change);
            changes.applied += 1;
        }
        drop(changes);
        self.changes_applied.notify_all();
    }

    /// Locks the memory that a GPU may access.
    pub(crate) fn view(&self, node: u32) -> View<'_> {
        self.map.view(node)
    }

    /// The memory map, for queues.
    pub(crate) fn map(&self) -> Arc<Map> {
        Arc::clone(&self.map)
    }

    /// Returns `true` if an address is host memory that GPUs may access, as opposed to memory of a
    /// GPU.
    pub fn is_on_host(&self, address: Address) -> bool {
        self.map.with(|memory| {
            let block = memory.block_around(address.0);
            memory.shared.is_shared(address.0) || block.is_some_and(|block| block.node == 0)
        })
    }

    /// Counts a copy to an address.
    pub(crate) fn count_copy(&self, to: GpuAddress) {
        if !self.is_on_host(Address(to.0)) {
            self.copies_to_gpus.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of copies that have changed memory of GPUs.
    pub(crate) fn copies_to_gpus(&self) -> u64 {
        self.copies_to_gpus.load(Ordering::Relaxed)
    }

    /// The address ranges that a GPU may access.
    pub fn mapped(&self, node: u32) -> Vec<Range<Address>> {
        let address = |range: Range<u64>| Address(range.start)..Address(range.end);
        self.view(node).ranges().map(address).collect()
    }

    /// The pages of a range of page numbers that a GPU may access and that may be nonzero. Pages
    /// that were never written are left out where the system can tell.
    pub fn touched(&self, node: u32, pages: Range<u64>) -> Vec<u64> {
        let bytes = pages.start * PAGE..pages.end * PAGE;
        let mut touched = Vec::new();
        for (range, host) in self.view(node).within(bytes) {
            let hosts = host..host + (range.end - range.start);
            let mut stores = self.stores.iter().chain([&self.driver_pages]);
            let found = match stores.find(|store| store.contains(&hosts)) {
                Some(store) => store.touched(hosts.clone()),
                None => touched_pages(hosts.clone()),
            };
            let all = || (hosts.start..hosts.end).step_by(PAGE as usize).collect();
            let found: Vec<u64> = found.unwrap_or_else(|_| all());
            touched.extend(found.into_iter().map(|page| (range.start + (page - host)) / PAGE));
        }
        touched
    }

    /// Copies memory that a GPU may access to `bytes`. Returns `false` if the GPU may not access
    /// it.
    pub fn read(&self, node: u32, address: Address, bytes: &mut [u8]) -> bool {
        self.view(node).read(GpuAddress(address.0), bytes).is_ok()
    }

    /// Tells the observer of a copy that is about to be made.
    pub(crate) fn observe_copy(&self, node: u32, from: u64, to: u64, bytes: u64) {
        if let Some(observer) = &self.copy_observer {
            observer.before_copy(self, node, Address(from), Address(to), bytes);
        }
    }

    /// Adds the queue that `make` creates for a new number, if the GPU may access the queue's
    /// memory.
    pub(crate) fn add_queue(&self, make: impl FnOnce(u64) -> Queue) -> Option<Arc<Queue>> {
        let mut queues = lock(&self.queues);
        let queue = Arc::new(make(queues.last + 1));
        queue.check().ok()?;
        queues.last += 1;
        queues.all.push(Arc::clone(&queue));
        Some(queue)
    }

    /// Destroys a queue; `false` if there is none with this number. Nothing of the queue is
    /// executed after this returns, see [`Queue::destroy`].
    pub(crate) fn remove_queue(&self, id: u64) -> bool {
        let queue = {
            let mut queues = lock(&self.queues);
            let Some(index) = queues.all.iter().position(|queue| queue.id == id) else {
                return false;
            };
            queues.submissions.forget(id);
            queues.all.remove(index)
        };
        queue.destroy();
        true
    }

    /// Stops a queue, and reports to the runtime an access to memory that its GPU may not make.
    pub(crate) fn report_memory_fault(&self, queue: &Queue, address: u64, reason: AccessFault) {
        queue.stop();
        let address = address & !(PAGE - 1);
        self.events.set_memory_fault(MemoryFault { node: queue.node, address, reason });
    }

    /// Stops a queue, and reports to the program that its GPU cannot go on.
    pub(crate) fn report_hardware_exception(&self, queue: &Queue) {
        queue.stop();
        self.events.set_hardware_exception(queue.node);
    }

    /// Returns `true` if there is a queue with this number.
    pub(crate) fn has_queue(&self, id: u64) -> bool {
        lock(&self.queues).get(id).is_some()
    }

    /// Lets the kernels of a queue use global wave sync. Returns `false` if there is no such queue.
    pub(crate) fn enable_global_sync(&self, id: u64) -> bool {
        let queues = lock(&self.queues);
        let Some(queue) = queues.get(id) else { return false };
        queue.has_global_sync.store(true, Ordering::Release);
        true
    }

    /// The SDMA queues, in order of creation.
    pub(crate) fn copy_queues(&self) -> Vec<Arc<Queue>> {
        let queues = lock(&self.queues);
        queues.all.iter().filter(|queue| queue.kind == QueueKind::Sdma).cloned().collect()
    }

    /// Logs the packets that were written to compute queues since the last call.
    pub(crate) fn note_submissions(&self) {
        lock(&self.queues).note_submissions();
        self.compute_notifier.notify();
    }

    /// Wakes the engines whose queues have packets. Called before the caller waits for a result.
    pub(crate) fn wake_engines(&self) {
        let (mut has_kernels, mut has_copies) = (false, false);
        for queue in lock(&self.queues).all.iter().filter(|queue| queue.has_packets()) {
            match queue.kind {
                QueueKind::Compute | QueueKind::Pm4 => has_kernels = true,
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

    /// Waits until `is_over`, a condition on the value of a signal, or until `timeout` has passed.
    /// Changes by the GPU are seen at once, changes by other threads of the program by polling.
    pub(crate) fn wait_until(&self, is_over: &mut dyn FnMut() -> bool, timeout: Duration) {
        if is_over() {
            return;
        }
        self.wake_engines();
        let start = Instant::now();
        loop {
            let seen = self.events.signal_notifier.count();
            let waited = start.elapsed();
            if is_over() || waited >= timeout {
                return;
            }
            let pause = poll_interval(waited).min(timeout - waited);
            self.events.signal_notifier.wait(seen, pause);
        }
    }

    /// Sets the named range (ROCTX) of packets that are submitted from now on.
    pub(crate) fn enter_range(&self, range: Option<Arc<str>>) {
        let mut queues = lock(&self.queues);
        queues.note_submissions();
        queues.submissions.enter_range(range);
    }

    /// The named range in which a packet was submitted that is not yet executed.
    pub(crate) fn submission_range(&self, queue: u64, packet: u64) -> Option<Arc<str>> {
        lock(&self.queues).submissions.range(queue, packet)
    }

    /// The compute queue with the oldest packet that is not executed, without the queues in
    /// `skipped`.
    pub(crate) fn oldest_queue(&self, skipped: &[u64]) -> Option<ActiveQueue> {
        let mut queues = lock(&self.queues);
        // The runtime also submits packets without a call that notes them.
        queues.note_submissions();
        // Never `None` here: `remove_queue` takes a queue off the list before it destroys it.
        queues.submissions.oldest_queue(skipped)?.activate()
    }
}
