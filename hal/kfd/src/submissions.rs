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
    /// The number of the packet behind the last.
    end: u64,
}

impl Submission {
    fn is_done(&self) -> bool {
        self.queue.is_over() || self.queue.read() >= self.end
    }
}

impl Submissions {
    /// Notes what has come into these queues since the last time.
    pub fn note<'a>(&mut self, queues: impl Iterator<Item = &'a Arc<Queue>>) {
        for queue in queues {
            let end = queue.written();
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
    use crate::queue::{Pointers, QueueKind};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Queues that are numbered from 0, and the numbers of packets written to each.
    fn queues(written: &[AtomicU64]) -> Vec<Arc<Queue>> {
        let queue = |(id, written): (usize, &AtomicU64)| {
            let pointers = Pointers { read: 0, write: written.as_ptr() as u64 };
            Arc::new(Queue::new(id as u64, 1, QueueKind::Compute, (0, 4096), pointers))
        };
        written.iter().enumerate().map(queue).collect()
    }

    #[test]
    fn packets_come_in_the_order_in_which_they_were_noted() {
        let written: [AtomicU64; 3] = Default::default();
        let queues = queues(&written);
        let mut submissions = Submissions::default();
        let order = [2, 0, 0, 1, 2, 0, 1, 1];
        for queue in order {
            written[queue].fetch_add(1, Ordering::AcqRel);
            submissions.note(queues.iter());
        }
        let mut taken = Vec::new();
        while let Some(queue) = submissions.oldest(&[]) {
            queue.set_read(queue.read() + 1);
            taken.push(queue.id as usize);
        }
        assert_eq!(taken, order);
    }

    #[test]
    fn a_queue_that_is_passed_keeps_its_place() {
        let written: [AtomicU64; 3] = Default::default();
        let queues = queues(&written);
        let mut submissions = Submissions::default();
        for queue in [1, 0, 2] {
            written[queue].fetch_add(1, Ordering::AcqRel);
            submissions.note(queues.iter());
        }
        let mut oldest = |passed: &[u64]| submissions.oldest(passed).map(|queue| queue.id);
        assert_eq!([oldest(&[1]), oldest(&[1, 0]), oldest(&[0, 1, 2])], [Some(0), Some(2), None]);
        queues[0].set_read(1);
        assert_eq!([oldest(&[1]), oldest(&[])], [Some(2), Some(1)]);
        queues[1].is_stopped.store(true, Ordering::Release);
        assert_eq!(oldest(&[]), Some(2));
        submissions.forget(2);
        assert!(submissions.oldest(&[]).is_none());
    }
}
