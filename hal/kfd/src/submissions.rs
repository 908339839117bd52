//! Packets of compute queues in the order in which the application has submitted them, whichever
//! queues they are in, and the range of the application in which it did.

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
    /// The range in which the application is.
    range: Option<Arc<str>>,
}

/// Packets of a queue, up to one.
struct Submission {
    queue: Arc<Queue>,
    /// The number of the packet after the last.
    end: u64,
    /// The range in which they were submitted.
    range: Option<Arc<str>>,
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
            let range = &self.range;
            let is_more =
                |last: &&mut Submission| last.queue.id == queue.id && last.range == *range;
            match self.log.back_mut().filter(is_more) {
                Some(last) => last.end = end,
                None => {
                    let (queue, range) = (Arc::clone(queue), range.clone());
                    self.log.push_back(Submission { queue, end, range });
                }
            }
        }
    }

    /// The application is in another range, or in none. What it has submitted before has to be noted.
    pub fn enter(&mut self, range: Option<Arc<str>>) {
        self.range = range;
    }

    /// The range in which a packet was submitted that was noted and is not done.
    pub fn range(&self, queue: u64, packet: u64) -> Option<Arc<str>> {
        let is_in = |own: &&Submission| own.queue.id == queue && own.end > packet;
        self.log.iter().find(is_in)?.range.clone()
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
    use crate::map::tests::{ALIAS, give};
    use crate::map::{GpuAddress, Map};
    use crate::queue::{Pointers, QueueKind, Ring};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Queues, and the page with their indices.
    struct Queues {
        page: Box<Page>,
        all: Vec<Arc<Queue>>,
    }

    #[repr(align(4096))]
    struct Page([AtomicU64; 512]);

    impl Queues {
        /// This many, numbered from 0.
        fn new(count: u64) -> Queues {
            let page = Box::new(Page([const { AtomicU64::new(0) }; 512]));
            let map = Arc::<Map>::default();
            let start = page.0.as_ptr() as u64;
            map.change(1..2, |memory| give(memory, start), |_, _| {});
            let word = |index: u64| GpuAddress(ALIAS | (start + 8 * index));
            let queue = |id| {
                let ring = Ring::new(0, 4096).unwrap();
                let pointers = Pointers { read: word(2 * id), write: word(2 * id + 1) };
                Arc::new(Queue::new(id, 1, QueueKind::Compute, ring, pointers, Arc::clone(&map)))
            };
            Queues { page, all: (0..count).map(queue).collect() }
        }

        /// As the runtime writes a packet.
        fn write_packet(&self, queue: usize) {
            self.page.0[2 * queue + 1].fetch_add(1, Ordering::AcqRel);
        }
    }

    fn take_packet(queue: &Queue) {
        let view = queue.view();
        queue.set_read(&view, queue.read(&view).unwrap() + 1).unwrap();
    }

    #[test]
    fn packets_come_in_the_order_in_which_they_were_noted() {
        let queues = Queues::new(3);
        let mut submissions = Submissions::default();
        let order = [2, 0, 0, 1, 2, 0, 1, 1];
        for queue in order {
            queues.write_packet(queue);
            submissions.note(queues.all.iter());
        }
        let mut taken = Vec::new();
        while let Some(queue) = submissions.oldest(&[]) {
            take_packet(&queue);
            taken.push(queue.id as usize);
        }
        assert_eq!(taken, order);
    }

    #[test]
    fn packets_have_the_range_in_which_they_were_submitted() {
        let queues = Queues::new(2);
        let mut submissions = Submissions::default();
        let submitted = [(0, None), (0, Some("a")), (1, Some("a")), (0, Some("a")), (0, Some("b"))];
        for (queue, range) in submitted {
            submissions.enter(range.map(Arc::from));
            queues.write_packet(queue);
            submissions.note(queues.all.iter());
        }
        let range = |own: &Submissions, queue, packet| own.range(queue, packet);
        let of_first: Vec<_> = (0..4).map(|packet| range(&submissions, 0, packet)).collect();
        let of_first: Vec<_> = of_first.iter().map(Option::as_deref).collect();
        assert_eq!(of_first, [None, Some("a"), Some("a"), Some("b")]);
        assert_eq!(range(&submissions, 1, 0).as_deref(), Some("a"));
        assert_eq!(range(&submissions, 1, 1), None, "nothing was submitted there");
    }

    #[test]
    fn a_queue_that_is_passed_keeps_its_place() {
        let queues = Queues::new(3);
        let mut submissions = Submissions::default();
        for queue in [1, 0, 2] {
            queues.write_packet(queue);
            submissions.note(queues.all.iter());
        }
        let mut oldest = |passed: &[u64]| submissions.oldest(passed).map(|queue| queue.id);
        assert_eq!([oldest(&[1]), oldest(&[1, 0]), oldest(&[0, 1, 2])], [Some(0), Some(2), None]);
        take_packet(&queues.all[0]);
        assert_eq!([oldest(&[1]), oldest(&[])], [Some(2), Some(1)]);
        queues.all[1].is_stopped.store(true, Ordering::Release);
        assert_eq!(oldest(&[]), Some(2));
        submissions.forget(2);
        assert!(submissions.oldest(&[]).is_none());
    }
}
