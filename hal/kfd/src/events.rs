//! Events: what the runtime sleeps on until the GPU has something to report.

use crate::notifier::Notifier;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An access to memory that a GPU must not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault {
    /// The GPU's node.
    pub node: u32,
    /// The page.
    pub address: u64,
    /// Why it must not.
    pub reason: Inaccessible,
}

/// Why memory cannot be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inaccessible {
    /// Nothing is there.
    NotPresent,
    /// It cannot be written.
    ReadOnly,
}

/// `HSA_EVENTTYPE_MEMORY`.
const MEMORY: u32 = 8;

#[derive(Default)]
pub struct Events {
    known: Mutex<Known>,
    changed: Condvar,
    /// Notified when a signal's value has changed, whether the signal has an event or not.
    pub signal_notifier: Notifier,
}

#[derive(Default)]
struct Known {
    events: HashMap<u32, State>,
    /// Numbers that were given back.
    free: BTreeSet<u32>,
    last: u32,
    /// How many events there have been.
    created: u64,
}

struct State {
    /// Which of all events that there have been it is: numbers are used again.
    serial: u64,
    kind: u32,
    is_signaled: bool,
    /// Whether it stays signaled when it has been waited for.
    is_manual: bool,
    /// One more than how often it has happened: that wakes all who wait, whoever is first.
    times: u64,
    fault: Option<MemoryFault>,
}

impl State {
    fn happen(&mut self) {
        self.is_signaled = true;
        self.times += 1;
    }
}

/// An event that somebody waits for, and what is found of it.
#[derive(Clone, Debug)]
pub struct Waited {
    id: u32,
    /// How often it had happened when who waits looked last; 0 for one who does not say that. Then how
    /// often it has.
    pub age: u64,
    /// Of an event of memory faults: the last one.
    pub fault: Option<MemoryFault>,
}

impl Waited {
    /// An event by its number.
    pub fn new(id: u32, age: u64) -> Waited {
        Waited { id, age, fault: None }
    }
}

/// What a thread was told of events: that one had happened so often, when the thread said that it had
/// been another number. Runtimes of ROCm 6.4 and later forget in some waits what they were told, and
/// would be told the same at once, again and again.
#[derive(Debug, Default)]
pub struct Told(HashMap<u32, Report>);

#[derive(Clone, Copy, Debug)]
struct Report {
    serial: u64,
    /// What the thread said.
    age: u64,
    times: u64,
}

impl Told {
    /// How often the thread is known to be aware that an event has happened.
    fn known_times(&self, waited: &Waited, event: &State) -> u64 {
        let reported = self.0.get(&waited.id);
        let same = reported.filter(|own| (own.serial, own.age) == (event.serial, waited.age));
        match waited.age {
            0 => event.times,
            age => same.map_or(age, |own| own.times),
        }
    }
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most events that there can be at once, `KFD_SIGNAL_EVENT_LIMIT`.
    pub const MOST: u32 = 4096;

    /// The number of a new event of this kind, if not all are in use.
    pub fn create(&self, kind: u32, is_manual: bool, is_signaled: bool) -> Option<u32> {
        let mut known = self.lock();
        let id = match known.free.pop_first() {
            Some(id) => id,
            None if known.last + 1 == Events::MOST => return None,
            None => {
                known.last += 1;
                known.last
            }
        };
        known.created += 1;
        let serial = known.created;
        let state = State { serial, kind, is_signaled, is_manual, times: 1, fault: None };
        known.events.insert(id, state);
        Some(id)
    }

    /// Gives an event up; whether there was one.
    pub fn destroy(&self, id: u32) -> bool {
        let mut known = self.lock();
        let was_there = known.events.remove(&id).is_some();
        if was_there {
            known.free.insert(id);
        }
        self.changed.notify_all();
        was_there
    }

    /// An event happens; whether there is one.
    pub fn set(&self, id: u32) -> bool {
        let mut known = self.lock();
        let Some(event) = known.events.get_mut(&id) else { return false };
        event.happen();
        self.changed.notify_all();
        true
    }

    /// An event is as if it had not happened; whether there is one.
    pub fn reset(&self, id: u32) -> bool {
        let mut known = self.lock();
        let event = known.events.get_mut(&id);
        event.map(|event| event.is_signaled = false).is_some()
    }

    /// Reports a memory fault to whoever waits for one.
    pub fn set_memory_fault(&self, fault: MemoryFault) {
        for event in self.lock().events.values_mut().filter(|event| event.kind == MEMORY) {
            event.fault = Some(fault);
            event.happen();
        }
        self.changed.notify_all();
    }

    /// Whether there are all of these events.
    pub fn are_known(&self, all: &[Waited]) -> bool {
        let known = self.lock();
        all.iter().all(|waited| known.events.contains_key(&waited.id))
    }

    /// Waits until one of the events, or all of them, have happened, and whether they did in time;
    /// `None` waits for ever. `told` is what the thread was told before.
    pub fn wait(
        &self,
        events: &mut [Waited],
        all: bool,
        time: Option<Duration>,
        told: &mut Told,
    ) -> bool {
        let end = time.map(|time| Instant::now() + time);
        let mut known = self.lock();
        let known_times =
            |waited: &Waited| Some(told.known_times(waited, known.events.get(&waited.id)?));
        let before: Vec<Option<u64>> = events.iter().map(known_times).collect();
        loop {
            let is_over = |(waited, before): &(&Waited, &Option<u64>)| {
                let event = known.events.get(&waited.id);
                event.is_none_or(|event| event.is_signaled || Some(event.times) != **before)
            };
            let count = events.iter().zip(&before).filter(is_over).count();
            if count == events.len() || (!all && count > 0) {
                for waited in events.iter_mut() {
                    let Some(event) = known.events.get_mut(&waited.id) else { continue };
                    waited.fault = event.fault;
                    if waited.age != 0 {
                        let State { serial, times, .. } = *event;
                        told.0.insert(waited.id, Report { serial, age: waited.age, times });
                        waited.age = times;
                    }
                    event.is_signaled &= event.is_manual;
                }
                return true;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            known = match left {
                Some(Duration::ZERO) => return false,
                Some(left) => {
                    self.changed.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(known).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Option<Duration> = Some(Duration::ZERO);

    fn create(events: &Events, kind: u32, is_manual: bool) -> Waited {
        Waited::new(events.create(kind, is_manual, false).unwrap(), 0)
    }

    #[test]
    fn numbers_are_used_again_and_are_as_many_as_the_program_has_places_for() {
        let events = Events::default();
        let [first, second] = [create(&events, 0, false), create(&events, 0, false)];
        assert_ne!(first.id, second.id);
        assert!(events.destroy(first.id) && !events.destroy(first.id));
        assert_eq!(create(&events, 0, false).id, first.id);
        let others = std::iter::from_fn(|| events.create(0, false, false));
        assert!(others.max().is_some_and(|last| last < Events::MOST));
    }

    #[test]
    fn an_event_wakes_one_wait_unless_it_is_reset_by_hand() {
        let events = Events::default();
        for is_manual in [false, true] {
            let event = create(&events, 0, is_manual);
            let wait = || events.wait(&mut [event.clone()], false, NOW, &mut Told::default());
            assert!(!wait());
            assert!(events.set(event.id));
            assert_eq!([wait(), wait()], [true, is_manual]);
            assert!(events.reset(event.id));
            assert!(!wait());
        }
        assert!(!events.set(77) && !events.reset(77));
    }

    #[test]
    fn who_says_how_often_an_event_had_happened_misses_none() {
        let events = Events::default();
        let mut event = create(&events, 0, false);
        event.age = 1;
        let mut told = Told::default();
        let wait = |event: &mut Waited, told: &mut Told| {
            events.wait(std::slice::from_mut(event), false, NOW, told)
        };
        assert!(!wait(&mut event, &mut told));
        events.set(event.id);
        // Somebody else takes it.
        assert!(wait(&mut Waited::new(event.id, 0), &mut Told::default()));
        assert!(wait(&mut event, &mut told));
        assert_eq!(event.age, 2);
        assert!(!wait(&mut event, &mut told));
    }

    #[test]
    fn who_forgets_what_it_was_told_is_not_told_again() {
        let events = Events::default();
        let id = create(&events, 0, false).id;
        let wait = |told: &mut Told| {
            let mut waited = [Waited::new(id, 1)];
            events.wait(&mut waited, false, NOW, told).then_some(waited[0].age)
        };
        let mut told = Told::default();
        events.set(id);
        assert_eq!([wait(&mut told), wait(&mut told)], [Some(2), None]);
        // Another thread was not told, and what happens then is news.
        assert_eq!(wait(&mut Told::default()), Some(2));
        events.set(id);
        assert_eq!([wait(&mut told), wait(&mut told)], [Some(3), None]);
        // Another event has the number.
        assert!(events.destroy(id));
        assert_eq!(create(&events, 0, false).id, id);
        events.set(id);
        events.set(id);
        assert_eq!(wait(&mut told), Some(3));
    }

    #[test]
    fn a_wait_for_all_is_not_over_when_one_is_signaled() {
        let events = Events::default();
        let mut pair = [0, 0].map(|kind| create(&events, kind, false));
        events.set(pair[0].id);
        let time = Some(Duration::from_millis(1));
        assert!(!events.wait(&mut pair, true, time, &mut Told::default()));
        events.set(pair[1].id);
        assert!(events.wait(&mut pair, true, time, &mut Told::default()));
    }

    #[test]
    fn memory_faults_reach_the_events_that_are_for_them() {
        let events = Events::default();
        let mut memory = [create(&events, MEMORY, false)];
        let mut other = [create(&events, 0, false)];
        let fault = MemoryFault { node: 1, address: 0x1234_5000, reason: Inaccessible::NotPresent };
        events.set_memory_fault(fault);
        assert!(events.wait(&mut memory, false, None, &mut Told::default()));
        assert_eq!(memory[0].fault, Some(fault));
        assert!(!events.wait(&mut other, false, NOW, &mut Told::default()));
    }
}
