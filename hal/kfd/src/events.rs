//! Events: the runtime's threads sleep on them until a GPU has something to report.

use crate::notifier::Notifier;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An access to memory that a GPU may not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault {
    /// Node of the GPU.
    pub node: u32,
    /// Address of the page.
    pub address: u64,
    pub reason: AccessFault,
}

/// Reasons for which memory cannot be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessFault {
    /// The address is not mapped.
    NotPresent,
    /// The memory cannot be written.
    ReadOnly,
}

/// `HSA_EVENTTYPE_HW_EXCEPTION`.
const HARDWARE: u32 = 3;
/// `HSA_EVENTTYPE_MEMORY`.
const MEMORY: u32 = 8;

/// A fault that an event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedFault {
    Memory(MemoryFault),
    /// The GPU of a node cannot go on.
    Hardware {
        node: u32,
    },
}

/// All events of a machine.
#[derive(Default)]
pub struct Events {
    table: Mutex<EventTable>,
    changed: Condvar,
    /// Notified when a signal's value has changed, whether the signal has an event or not.
    pub signal_notifier: Notifier,
}

#[derive(Default)]
struct EventTable {
    events: HashMap<u32, Event>,
    /// Numbers of destroyed events, which are used again.
    free: BTreeSet<u32>,
    /// Largest number so far.
    last: u32,
    /// Number of events created so far.
    created: u64,
}

/// Defines when an event is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetMode {
    /// A wait that the event ends resets it.
    Auto,
    /// The event stays signaled until it is reset.
    Manual,
}

struct Event {
    /// Number of events that were created before this one, plus one: event numbers are used again.
    serial: u64,
    kind: u32,
    is_signaled: bool,
    reset_mode: ResetMode,
    /// Number of times that the event was signaled, plus one. A waiter that passes an older age is
    /// woken even if another waiter has reset the event.
    age: u64,
    fault: Option<ReportedFault>,
}

impl Event {
    fn signal(&mut self) {
        self.is_signaled = true;
        self.age += 1;
    }
}

/// An event to wait for, and the result of the wait.
#[derive(Clone, Debug)]
pub struct WaitedEvent {
    id: u32,
    /// Age of the event when the waiter last looked (`last_event_age`); 0 if the waiter does not
    /// use ages. After the wait, the event's age.
    pub age: u64,
    /// The last fault, for an event of faults.
    pub fault: Option<ReportedFault>,
}

impl WaitedEvent {
    /// Creates a wait for the event with a number.
    pub fn new(id: u32, age: u64) -> WaitedEvent {
        WaitedEvent { id, age, fault: None }
    }
}

/// Condition of a wait for several events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    Any,
    All,
}

/// Ages that were reported to a thread, by number of the event.
///
/// In some waits, runtimes of ROCm 6.4 and later pass an old age again instead of the one that was
/// reported to them. Without this record, they would be woken at once, again and again.
#[derive(Debug, Default)]
pub struct ReportedAges(HashMap<u32, ReportedAge>);

#[derive(Clone, Copy, Debug)]
struct ReportedAge {
    serial: u64,
    /// Age that the thread passed.
    passed: u64,
    /// Age that was reported to it.
    reported: u64,
}

impl ReportedAges {
    /// The latest age of an event that the thread is known to have seen.
    fn seen_age(&self, waited: &WaitedEvent, event: &Event) -> u64 {
        if waited.age == 0 {
            return event.age;
        }
        let is_same =
            |last: &&ReportedAge| last.serial == event.serial && last.passed == waited.age;
        self.0.get(&waited.id).filter(is_same).map_or(waited.age, |last| last.reported)
    }
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, EventTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Largest number of events at a time, `KFD_SIGNAL_EVENT_LIMIT`.
    pub const LIMIT: u32 = 4096;

    /// Creates an event and returns its number; `None` if the limit is reached.
    pub fn create(&self, kind: u32, reset_mode: ResetMode) -> Option<u32> {
        let mut table = self.lock();
        let id = match table.free.pop_first() {
            Some(id) => id,
            None if table.last + 1 == Events::LIMIT => return None,
            None => {
                table.last += 1;
                table.last
            }
        };
        table.created += 1;
        let serial = table.created;
        let event = Event { serial, kind, is_signaled: false, reset_mode, age: 1, fault: None };
        table.events.insert(id, event);
        Some(id)
    }

    /// Destroys an event. Returns `false` if there was none.
    pub fn destroy(&self, id: u32) -> bool {
        let mut table = self.lock();
        let existed = table.events.remove(&id).is_some();
        if existed {
            table.free.insert(id);
        }
        self.changed.notify_all();
        existed
    }

    /// Signals an event. Returns `false` if there is none.
    pub fn set(&self, id: u32) -> bool {
        let mut table = self.lock();
        let Some(event) = table.events.get_mut(&id) else { return false };
        event.signal();
        self.changed.notify_all();
        true
    }

    /// Resets an event. Returns `false` if there is none.
    pub fn reset(&self, id: u32) -> bool {
        let mut table = self.lock();
        let event = table.events.get_mut(&id);
        event.map(|event| event.is_signaled = false).is_some()
    }

    /// Signals all events of memory faults.
    pub fn set_memory_fault(&self, fault: MemoryFault) {
        self.set_fault(MEMORY, ReportedFault::Memory(fault));
    }

    /// Signals all events of hardware exceptions.
    pub fn set_hardware_exception(&self, node: u32) {
        self.set_fault(HARDWARE, ReportedFault::Hardware { node });
    }

    fn set_fault(&self, kind: u32, fault: ReportedFault) {
        for event in self.lock().events.values_mut().filter(|event| event.kind == kind) {
            event.fault = Some(fault);
            event.signal();
        }
        self.changed.notify_all();
    }

    /// Returns `true` if all of these events exist.
    pub fn exist(&self, events: &[WaitedEvent]) -> bool {
        let table = self.lock();
        events.iter().all(|waited| table.events.contains_key(&waited.id))
    }

    /// Waits until any or all of the events are signaled. Returns `false` after `timeout`; `None`
    /// waits forever. `ages` are those of the calling thread.
    pub fn wait(
        &self,
        events: &mut [WaitedEvent],
        wait_for: WaitFor,
        timeout: Option<Duration>,
        ages: &mut ReportedAges,
    ) -> bool {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let mut table = self.lock();
        let seen_age =
            |waited: &WaitedEvent| Some(ages.seen_age(waited, table.events.get(&waited.id)?));
        let seen: Vec<Option<u64>> = events.iter().map(seen_age).collect();
        loop {
            // A destroyed event ends a wait as well.
            let is_signaled = |(waited, seen): &(&WaitedEvent, &Option<u64>)| {
                let event = table.events.get(&waited.id);
                event.is_none_or(|event| event.is_signaled || Some(event.age) != **seen)
            };
            let count = events.iter().zip(&seen).filter(is_signaled).count();
            if count == events.len() || (wait_for == WaitFor::Any && count > 0) {
                for waited in events.iter_mut() {
                    let Some(event) = table.events.get_mut(&waited.id) else { continue };
                    waited.fault = event.fault;
                    if waited.age != 0 {
                        let Event { serial, age: reported, .. } = *event;
                        let report = ReportedAge { serial, passed: waited.age, reported };
                        ages.0.insert(waited.id, report);
                        waited.age = reported;
                    }
                    event.is_signaled &= event.reset_mode == ResetMode::Manual;
                }
                return true;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            table = match left {
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    self.changed.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(table).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Option<Duration> = Some(Duration::ZERO);

    fn create(events: &Events, kind: u32, reset_mode: ResetMode) -> WaitedEvent {
        WaitedEvent::new(events.create(kind, reset_mode).unwrap(), 0)
    }

    #[test]
    fn numbers_are_reused_and_stay_below_the_limit() {
        let events = Events::default();
        let [first, second] = [0, 0].map(|kind| create(&events, kind, ResetMode::Auto));
        assert_ne!(first.id, second.id);
        assert!(events.destroy(first.id) && !events.destroy(first.id));
        assert_eq!(create(&events, 0, ResetMode::Auto).id, first.id);
        let remaining = std::iter::from_fn(|| events.create(0, ResetMode::Auto));
        assert!(remaining.max().is_some_and(|last| last < Events::LIMIT));
    }

    #[test]
    fn a_wait_resets_auto_events_only() {
        let events = Events::default();
        for reset_mode in [ResetMode::Auto, ResetMode::Manual] {
            let event = create(&events, 0, reset_mode);
            let wait = || {
                let ages = &mut ReportedAges::default();
                events.wait(&mut [event.clone()], WaitFor::Any, NOW, ages)
            };
            assert!(!wait());
            assert!(events.set(event.id));
            assert_eq!([wait(), wait()], [true, reset_mode == ResetMode::Manual]);
            assert!(events.reset(event.id));
            assert!(!wait());
        }
        assert!(!events.set(77) && !events.reset(77));
    }

    #[test]
    fn a_waiter_with_an_age_misses_no_signal() {
        let events = Events::default();
        let mut event = create(&events, 0, ResetMode::Auto);
        event.age = 1;
        let mut ages = ReportedAges::default();
        let wait = |event: &mut WaitedEvent, ages: &mut ReportedAges| {
            events.wait(std::slice::from_mut(event), WaitFor::Any, NOW, ages)
        };
        assert!(!wait(&mut event, &mut ages));
        events.set(event.id);
        // Another waiter resets the event.
        assert!(wait(&mut WaitedEvent::new(event.id, 0), &mut ReportedAges::default()));
        assert!(wait(&mut event, &mut ages));
        assert_eq!(event.age, 2);
        assert!(!wait(&mut event, &mut ages));
    }

    #[test]
    fn a_waiter_that_passes_an_old_age_again_is_woken_once() {
        let events = Events::default();
        let id = create(&events, 0, ResetMode::Auto).id;
        let wait = |ages: &mut ReportedAges| {
            let mut waited = [WaitedEvent::new(id, 1)];
            events.wait(&mut waited, WaitFor::Any, NOW, ages).then_some(waited[0].age)
        };
        let mut ages = ReportedAges::default();
        events.set(id);
        assert_eq!([wait(&mut ages), wait(&mut ages)], [Some(2), None]);
        // Nothing was reported to another thread, and a new signal is always reported.
        assert_eq!(wait(&mut ReportedAges::default()), Some(2));
        events.set(id);
        assert_eq!([wait(&mut ages), wait(&mut ages)], [Some(3), None]);
        // Another event gets the number.
        assert!(events.destroy(id));
        assert_eq!(create(&events, 0, ResetMode::Auto).id, id);
        events.set(id);
        events.set(id);
        assert_eq!(wait(&mut ages), Some(3));
    }

    #[test]
    fn a_wait_for_all_events_needs_all_of_them() {
        let events = Events::default();
        let mut pair = [0, 0].map(|kind| create(&events, kind, ResetMode::Auto));
        events.set(pair[0].id);
        let timeout = Some(Duration::from_millis(1));
        assert!(!events.wait(&mut pair, WaitFor::All, timeout, &mut ReportedAges::default()));
        events.set(pair[1].id);
        assert!(events.wait(&mut pair, WaitFor::All, timeout, &mut ReportedAges::default()));
    }

    #[test]
    fn memory_faults_signal_only_events_of_memory_faults() {
        let events = Events::default();
        let mut memory = [create(&events, MEMORY, ResetMode::Auto)];
        let mut signal = [create(&events, 0, ResetMode::Auto)];
        let fault = MemoryFault { node: 1, address: 0x1234_5000, reason: AccessFault::NotPresent };
        events.set_memory_fault(fault);
        assert!(events.wait(&mut memory, WaitFor::Any, None, &mut ReportedAges::default()));
        assert_eq!(memory[0].fault, Some(ReportedFault::Memory(fault)));
        assert!(!events.wait(&mut signal, WaitFor::Any, NOW, &mut ReportedAges::default()));
    }
}
