//! Submission order of the packets of all compute queues, and the named range (ROCTX) in which the
//! application submitted each.

use crate::queue::Queue;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Log of submitted packets that are not known to be executed.
#[derive(Default)]
pub struct Submissions {
    /// Oldest first.
    log: VecDeque<Submission>,
    /// Number of packets logged so far, by number of the queue.
    logged: HashMap<u64, u64>,
    /// Range that the application is in now.
    range: Option<Arc<str>>,
}

/// Consecutive packets of a queue.
struct Submission {
    queue: Arc<Queue>,
    /// Number of the last packet, plus one.
    end: u64,
    /// Range in which the packets were submitted.
    range: Option<Arc<str>>,
}

impl Submission {
    fn is_done(&self) -> bool {
        // A queue with an inaccessible index is not done: it is refused when its next packet is
        // read.
        let is_executed = |view| self.queue.read_index(&view).is_ok_and(|read| read >= self.end);
        self.queue.is_closed() || is_executed(self.queue.view())
    }
}

impl Submissions {
    /// Logs the packets that were written to these queues since the last call.
    pub fn note<'a>(&mut self, queues: impl Iterator<Item = &'a Arc<Queue>>) {
        for queue in queues {
            let Ok(end) = queue.write_index(&queue.view()) else { continue };
            let logged = self.logged.entry(queue.id).or_default();
            if end <= *logged {
                continue;
            }
            *logged = end;
            let range = &self.range;
            let continues =
                |last: &&mut Submission| last.queue.id == queue.id && last.range == *range;
            match self.log.back_mut().filter(continues) {
                Some(last) => last.end = end,
                None => {
                    let (queue, range) = (Arc::clone(queue), range.clone());
                    self.log.push_back(Submission { queue, end, range });
                }
            }
        }
    }

    /// Sets the range of the packets that are submitted from now on. Call [`Submissions::note`]
    /// before, to log the earlier packets with their range.
    pub fn enter_range(&mut self, range: Option<Arc<str>>) {
        self.range = range;
    }

    /// The range in which a logged packet was submitted.
    pub fn range(&self, queue: u64, packet: u64) -> Option<Arc<str>> {
        let contains =
            |submission: &&Submission| submission.queue.id == queue && submission.end > packet;
        self.log.iter().find(contains)?.range.clone()
    }

    /// The queue with the oldest packet that is not executed, without the queues in `skipped`.
    pub fn oldest_queue(&mut self, skipped: &[u64]) -> Option<Arc<Queue>> {
        while self.log.front().is_some_and(Submission::is_done) {
            self.log.pop_front();
        }
        let is_next = |submission: &&Submission| {
            !submission.is_done() && !skipped.contains(&submission.queue.id)
        };
        self.log.iter().find(is_next).map(|submission| Arc::clone(&submission.queue))
    }

    /// Removes a destroyed queue from the log.
    pub fn forget(&mut self, queue: u64) {
        self.log.retain(|submission| submission.queue.id != queue);
        self.logged.remove(&queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::tests::{ALIAS, map_page};
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
        /// Creates `count` queues, numbered from 0.
        fn new(count: u64) -> Queues {
            let page = Box::new(Page([const { AtomicU64::new(0) }; 512]));
            let map = Arc::<Map>::default();
            let start = page.0.as_ptr() as u64;
            map.change(1..2, |memory| map_page(memory, start), |_, _| {});
            let word = |index: u64| GpuAddress(ALIAS | (start + 8 * index));
            let queue = |id| {
                let ring = Ring::new(0, 4096).unwrap();
                let pointers = Pointers { read: word(2 * id), write: word(2 * id + 1) };
                Arc::new(Queue::new(
                    id,
                    1,
                    QueueKind::Compute,
                    ring,
                    pointers,
                    None,
                    Arc::clone(&map),
                ))
            };
            Queues { page, all: (0..count).map(queue).collect() }
        }

        /// Submits a packet as the runtime does.
        fn write_packet(&self, queue: usize) {
            self.page.0[2 * queue + 1].fetch_add(1, Ordering::AcqRel);
        }
    }

    fn take_packet(queue: &Queue) {
        let view = queue.view();
        queue.set_read_index(&view, queue.read_index(&view).unwrap() + 1).unwrap();
    }

    #[test]
    fn packets_are_taken_in_the_order_of_submission() {
        let queues = Queues::new(3);
        let mut submissions = Submissions::default();
        let order = [2, 0, 0, 1, 2, 0, 1, 1];
        for queue in order {
            queues.write_packet(queue);
            submissions.note(queues.all.iter());
        }
        let mut taken = Vec::new();
        while let Some(queue) = submissions.oldest_queue(&[]) {
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
            submissions.enter_range(range.map(Arc::from));
            queues.write_packet(queue);
            submissions.note(queues.all.iter());
        }
        let range = |queue, packet| submissions.range(queue, packet);
        let first_queue: Vec<_> = (0..4).map(|packet| range(0, packet)).collect();
        let first_queue: Vec<_> = first_queue.iter().map(Option::as_deref).collect();
        assert_eq!(first_queue, [None, Some("a"), Some("a"), Some("b")]);
        assert_eq!(range(1, 0).as_deref(), Some("a"));
        assert_eq!(range(1, 1), None, "a packet that was not submitted");
    }

    #[test]
    fn a_skipped_queue_keeps_its_place_in_the_order() {
        let queues = Queues::new(3);
        let mut submissions = Submissions::default();
        for queue in [1, 0, 2] {
            queues.write_packet(queue);
            submissions.note(queues.all.iter());
        }
        let mut oldest = |skipped: &[u64]| submissions.oldest_queue(skipped).map(|queue| queue.id);
        assert_eq!([oldest(&[1]), oldest(&[1, 0]), oldest(&[0, 1, 2])], [Some(0), Some(2), None]);
        take_packet(&queues.all[0]);
        assert_eq!([oldest(&[1]), oldest(&[])], [Some(2), Some(1)]);
        queues.all[1].stop();
        assert_eq!(oldest(&[]), Some(2));
        submissions.forget(2);
        assert!(submissions.oldest_queue(&[]).is_none());
    }
}
