//! Events: what the runtime sleeps on until the GPU has something to report.

use crate::abi::{Event, EventDescriptor, MemoryAccessFault, Status};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// `HSA_EVENTTYPE_MEMORY`.
const MEMORY: u32 = 8;

#[derive(Default)]
pub struct Events {
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Default)]
struct Known {
    events: HashMap<u32, State>,
    /// Numbers that were given back.
    free: BTreeSet<u32>,
    last: u32,
}

struct State {
    kind: u32,
    is_signaled: bool,
    /// Whether it stays signaled when it has been waited for.
    is_manual: bool,
    /// How often it was signaled: that wakes all who wait, whoever is first.
    times: u64,
    fault: Option<MemoryAccessFault>,
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Most events that there can be at once.
    pub const MOST: u32 = 1 << 16;

    /// A new event, if not all are in use. What signals it writes its number to its place among
    /// `mailboxes`, words at consecutive addresses.
    pub fn create(
        &self,
        wanted: &EventDescriptor,
        is_manual: bool,
        is_signaled: bool,
        mailboxes: u64,
    ) -> Option<Event> {
        let mut known = self.lock();
        let id = match known.free.pop_first() {
            Some(id) => id,
            None if known.last + 1 == Events::MOST => return None,
            None => {
                known.last += 1;
                known.last
            }
        };
        let kind = wanted.kind;
        known.events.insert(id, State { kind, is_signaled, is_manual, times: 0, fault: None });
        let fault = MemoryAccessFault { node: 0, address: 0, failure: 0, flags: 0 };
        let mailbox = mailboxes + 8 * u64::from(id);
        Some(Event { id, kind, fault, hardware: [0, mailbox], hardware_word: id })
    }

    pub fn destroy(&self, id: u32) {
        let mut known = self.lock();
        if known.events.remove(&id).is_some() {
            known.free.insert(id);
        }
        self.changed.notify_all();
    }

    pub fn set(&self, id: u32) -> Status {
        let mut known = self.lock();
        let Some(event) = known.events.get_mut(&id) else { return Status::InvalidHandle };
        event.is_signaled = true;
        event.times += 1;
        self.changed.notify_all();
        Status::Success
    }

    /// Reports a memory fault to whoever waits for one.
    pub fn set_memory_fault(&self, fault: MemoryAccessFault) {
        for event in self.lock().events.values_mut().filter(|event| event.kind == MEMORY) {
            event.fault = Some(fault);
            event.is_signaled = true;
            event.times += 1;
        }
        self.changed.notify_all();
    }

    /// Waits until one of the events, or all of them, are signaled; `None` waits for ever. Events
    /// of faults get them written.
    pub fn wait(&self, events: &mut [&mut Event], all: bool, time: Option<Duration>) -> Status {
        let end = time.map(|time| Instant::now() + time);
        let mut known = self.lock();
        let times = |known: &Known, event: &Event| {
            known.events.get(&{ event.id }).map(|state| (state.is_signaled, state.times))
        };
        let before: Vec<_> = events.iter().map(|event| times(&known, event)).collect();
        loop {
            let is_over = |(event, before): &(&&mut Event, &Option<(bool, u64)>)| {
                let now = times(&known, event);
                now.is_none_or(|(is_signaled, _)| is_signaled)
                    || now.map(|now| now.1) != before.map(|before| before.1)
            };
            let count = events.iter().zip(&before).filter(is_over).count();
            if count == events.len() || (!all && count > 0) {
                for event in events.iter_mut() {
                    let Some(state) = known.events.get_mut(&{ event.id }) else { continue };
                    if let Some(fault) = state.fault {
                        event.fault = fault;
                    }
                    state.is_signaled &= state.is_manual;
                }
                return Status::Success;
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            known = match left {
                Some(Duration::ZERO) => return Status::WaitTimeout,
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

    fn create(events: &Events, kind: u32, is_manual: bool) -> Event {
        let wanted = EventDescriptor { kind, node: 1, variable: 0, variable_bytes: 0 };
        events.create(&wanted, is_manual, false, 0x1000).unwrap()
    }

    #[test]
    fn each_event_has_a_mailbox_of_its_own() {
        let events = Events::default();
        let [first, second] = [create(&events, 0, false), create(&events, 0, false)];
        assert_eq!({ second.hardware }[1], { first.hardware }[1] + 8);
        assert_eq!({ first.hardware }[1], 0x1000 + 8 * u64::from(first.id));
        events.destroy(first.id);
        assert_eq!(create(&events, 0, false).id, { first.id });
    }

    #[test]
    fn an_event_wakes_one_wait_unless_it_is_reset_by_hand() {
        let events = Events::default();
        for is_manual in [false, true] {
            let mut event = create(&events, 0, is_manual);
            let mut wait = || events.wait(&mut [&mut event], false, Some(Duration::ZERO));
            assert_eq!(wait(), Status::WaitTimeout);
            assert_eq!(events.set(event.id), Status::Success);
            let mut wait = || events.wait(&mut [&mut event], false, Some(Duration::ZERO));
            assert_eq!(wait(), Status::Success);
            let again = if is_manual { Status::Success } else { Status::WaitTimeout };
            assert_eq!(wait(), again);
        }
    }

    #[test]
    fn a_wait_for_all_is_not_over_when_one_is_signaled() {
        let events = Events::default();
        let mut pair = [0, 0].map(|kind| create(&events, kind, false));
        events.set(pair[0].id);
        let [first, second] = &mut pair;
        let time = Some(Duration::from_millis(1));
        assert_eq!(events.wait(&mut [first, second], true, time), Status::WaitTimeout);
        events.set(second.id);
        assert_eq!(events.wait(&mut [first, second], true, time), Status::Success);
    }

    #[test]
    fn memory_faults_reach_the_events_that_are_for_them() {
        let events = Events::default();
        let mut memory = create(&events, MEMORY, false);
        let mut other = create(&events, 0, false);
        let fault = MemoryAccessFault { node: 1, address: 0x1234_5000, failure: 1, flags: 0 };
        events.set_memory_fault(fault);
        assert_eq!(events.wait(&mut [&mut memory], false, None), Status::Success);
        assert_eq!({ memory.fault.address }, 0x1234_5000);
        let time = Some(Duration::ZERO);
        assert_eq!(events.wait(&mut [&mut other], false, time), Status::WaitTimeout);
    }
}
