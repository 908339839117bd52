//! Facts about the shared memory of a workgroup: bytes that were written, pending copies, and mbarrier objects.

use crate::program::Phase;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A thread of a workgroup: its wave and lane.
pub(super) type Thread = (u32, usize);

/// An asynchronous copy that its thread has not waited for.
#[derive(Clone, Debug)]
struct PendingCopy {
    thread: Thread,
    /// Number of the group; `None` until it is committed.
    group: Option<u64>,
    bytes: Range<usize>,
    text: String,
}

/// Facts about shared memory.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedFacts {
    /// By byte: `true` once it was written.
    defined: Vec<bool>,
    /// Pending copies by number.
    copies: BTreeMap<u64, PendingCopy>,
    /// Number of the next copy.
    next: u64,
    /// By byte: the pending copy to it.
    pending: HashMap<usize, u64>,
    /// Groups that a thread has committed.
    committed: HashMap<Thread, u64>,
    /// Words of valid mbarrier objects by address, as of the last mbarrier instruction.
    objects: BTreeMap<u64, u64>,
}

/// Bytes of an mbarrier object.
pub(super) const OBJECT_BYTES: u64 = 8;

impl SharedFacts {
    /// Nothing is known about shared memory of this size.
    pub fn new(bytes: usize) -> SharedFacts {
        SharedFacts { defined: vec![false; bytes], ..SharedFacts::default() }
    }

    fn range(&self, address: u64, bytes: u64) -> Range<usize> {
        let limit =
            |value: u64| usize::try_from(value).unwrap_or(usize::MAX).min(self.defined.len());
        limit(address)..limit(address.saturating_add(bytes))
    }

    /// Returns `true` if all bytes were written.
    pub fn is_defined(&self, address: u64, bytes: u64) -> bool {
        self.defined[self.range(address, bytes)].iter().all(|defined| *defined)
    }

    /// Sets whether bytes hold a value that was written.
    pub fn define(&mut self, address: u64, bytes: u64, is_defined: bool) {
        let range = self.range(address, bytes);
        self.defined[range].fill(is_defined);
    }

    /// Adds a copy to bytes.
    pub fn copy(&mut self, thread: Thread, address: u64, bytes: u64, text: &str) {
        let range = self.range(address, bytes);
        let number = self.next;
        self.next += 1;
        self.pending.extend(range.clone().map(|byte| (byte, number)));
        let copy = PendingCopy { thread, group: None, bytes: range, text: text.to_owned() };
        self.copies.insert(number, copy);
    }

    /// Commits the copies of a thread.
    pub fn commit(&mut self, thread: Thread) {
        let group = self.committed.entry(thread).or_default();
        *group += 1;
        for copy in self.copies.values_mut().filter(|copy| copy.thread == thread) {
            copy.group.get_or_insert(*group);
        }
    }

    /// Waits for all groups of a thread except the `most` last ones; for all copies without `most`.
    pub fn wait(&mut self, thread: Thread, most: Option<u64>) {
        let committed = self.committed.get(&thread).copied().unwrap_or(0);
        let pending = &mut self.pending;
        self.copies.retain(|number, copy| {
            let is_complete = copy.thread == thread
                && match most {
                    Some(most) => copy.group.is_some_and(|group| group + most <= committed),
                    None => true,
                };
            if is_complete {
                for byte in copy.bytes.clone() {
                    if pending.get(&byte) == Some(number) {
                        pending.remove(&byte);
                    }
                }
            }
            !is_complete
        });
    }

    /// The pending copy to one of these bytes: its text and its thread.
    pub fn pending(&self, address: u64, bytes: u64) -> Option<(&str, Thread)> {
        if self.pending.is_empty() {
            return None;
        }
        let number = self.range(address, bytes).find_map(|byte| self.pending.get(&byte))?;
        let copy = self.copies.get(number)?;
        Some((&copy.text, copy.thread))
    }

    /// The valid mbarrier object that one of these bytes belongs to.
    pub fn object(&self, address: u64, bytes: u64) -> Option<u64> {
        let first = address.saturating_sub(OBJECT_BYTES - 1);
        let found = self.objects.range(first..address.saturating_add(bytes)).next();
        found.map(|(address, _)| *address)
    }

    /// The state of the valid mbarrier object at an address.
    pub fn phase(&self, address: u64) -> Option<Phase> {
        self.objects.get(&address).map(|word| Phase::of(*word))
    }

    /// Sets the state of an mbarrier object; `None` if it is invalid from now on.
    pub fn set_phase(&mut self, address: u64, phase: Option<Phase>) {
        match phase {
            Some(phase) => _ = self.objects.insert(address, phase.word()),
            None => _ = self.objects.remove(&address),
        }
    }
}
