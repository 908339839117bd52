//! Packets of compute queues in the order in which the application has submitted them, whichever
//! queues they are in.

use crate::queue::Queue;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The packets that were noted and are not known to be done.
#[derive(Default)]
pub struct Submissions {
    /// The oldest first.
    log: VecDeque<Submission>,
    /// How many packets of a queue have been noted, by its number.
    noted: HashMap<u64, u64>,
}

/// Packets of a queue, up to one.
struct Submission {
    queue: Arc<Queue>,
    /// The number of the packet after the last.
    end: u64,
}

impl Submission {
    fn is_done(&self) -> bool {
        // A queue whose index is not the GPU's is refused when its next packet is looked for.
        let is_read = |view| self.queue.read(&view).is_ok_and(|read| read >= self.end);
        self.queue.is_over() || is_read(self.queue.view())
    }
}

impl Submissions {
    /// Notes what has come into these queues since the last time.
    pub fn note<'a>(&mut self, queues: impl Iterator<Item = &'a Arc<Queue>>) {
        for queue in queues {
            let Ok(end) = queue.written(&queue.view()) else { continue };
            let noted = self.noted.entry(queue.id).or_default();
            if end <= *noted {
                continue;
            }
            *noted = end;
            match self.log.back_mut().filter(|last| last.queue.id == queue.id) {
                Some(last) => last.end = end,
                None => self.log.push_back(Submission { queue: Arc::clone(queue), end }),
            }
        }
    }

    /// The queue with the oldest packet that is not done, but for queues with these numbers.
    pub fn oldest(&mut self, passed: &[u64]) -> Option<Arc<Queue>> {
        while self.log.front().is_some_and(Submission::is_done) {
            self.log.pop_front();
        }
        let is_next = |own: &&Submission| !own.is_done() && !passed.contains(&own.queue.id);
        self.log.iter().find(is_next).map(|own| Arc::clone(&own.queue))
    }

    /// Forgets a queue that is destroyed.
    pub fn forget(&mut self, queue: u64) {
        self.log.retain(|own| own.queue.id != queue);
        self.noted.remove(&queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::Map;
    use crate::queue::{Pointers, QueueKind, Ring};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// This many queues, numbered from 0, with indices of their own.
    fn queues(count: u64) -> Vec<Arc<Queue>> {
        let (map, ring) = (Arc::<Map>::default(), Ring::new(0, 4096).unwrap());
        let queue = |id| {
            let (pointers, map) = (Pointers::default(), Arc::clone(&map));
            Arc::new(Queue::new(id, 1, QueueKind::Compute, ring, pointers, map))
        };
        (0..count).map(queue).collect()
    }

    /// As the runtime writes a packet.
    fn write_packet(queue: &Queue) {
        // SAFETY: a word of the queue's own.
        let written = unsafe { AtomicU64::from_ptr(queue.write_address() as *mut u64) };
        written.fetch_add(1, Ordering::AcqRel);
    }

    fn take_packet(queue: &Queue) {
        let view = queue.view();
        queue.set_read(&view, queue.read(&view).unwrap() + 1).unwrap();
    }

    #[test]
    fn packets_come_in_the_order_in_which_they_were_noted() {
        let queues = queues(3);
        let mut submissions = Submissions::default();
        let order = [2, 0, 0, 1, 2, 0, 1, 1];
        for queue in order {
            write_packet(&queues[queue]);
            submissions.note(queues.iter());
        }
        let mut taken = Vec::new();
        while let Some(queue) = submissions.oldest(&[]) {
            take_packet(&queue);
            taken.push(queue.id as usize);
        }
        assert_eq!(taken, order);
    }

    #[test]
    fn a_queue_that_is_passed_keeps_its_place() {
        let queues = queues(3);
        let mut submissions = Submissions::default();
        for queue in [1, 0, 2] {
            write_packet(&queues[queue]);
            submissions.note(queues.iter());
        }
        let mut oldest = |passed: &[u64]| submissions.oldest(passed).map(|queue| queue.id);
        assert_eq!([oldest(&[1]), oldest(&[1, 0]), oldest(&[0, 1, 2])], [Some(0), Some(2), None]);
        take_packet(&queues[0]);
        assert_eq!([oldest(&[1]), oldest(&[])], [Some(2), Some(1)]);
        queues[1].is_stopped.store(true, Ordering::Release);
        assert_eq!(oldest(&[]), Some(2));
        submissions.forget(2);
        assert!(submissions.oldest(&[]).is_none());
    }
}
