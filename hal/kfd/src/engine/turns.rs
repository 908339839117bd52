//! Turns: the compute engines of several GPUs work one after another, in the order in which they asked.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A fair lock around what all engines share: who waits longest comes next.
#[derive(Default)]
pub struct Turns<T> {
    tickets: Mutex<Tickets>,
    changed: Condvar,
    /// Locked only by the thread whose ticket is served.
    shared: Mutex<T>,
}

/// Tickets are numbered in the order in which turns are asked for.
#[derive(Default)]
struct Tickets {
    next: u64,
    served: u64,
}

impl<T> Turns<T> {
    pub fn new(shared: T) -> Turns<T> {
        Turns { tickets: Mutex::default(), changed: Condvar::new(), shared: Mutex::new(shared) }
    }

    /// Waits for this thread's turn, which lasts until the result is dropped.
    pub fn take(&self) -> Turn<'_, T> {
        Turn { turns: self, shared: Some(self.wait(self.tickets())) }
    }

    fn tickets(&self) -> MutexGuard<'_, Tickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, mut tickets: MutexGuard<'_, Tickets>) -> MutexGuard<'_, T> {
        let own = tickets.next;
        tickets.next += 1;
        drop(self.changed.wait_while(tickets, |tickets| tickets.served != own));
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.tickets().served += 1;
        self.changed.notify_all();
    }
}

/// A thread's turn.
pub struct Turn<'a, T> {
    turns: &'a Turns<T>,
    /// `None` only while other threads have their turns.
    shared: Option<MutexGuard<'a, T>>,
}

impl<T> Turn<'_, T> {
    /// Gives a turn to all threads that wait for one.
    pub fn pass(&mut self) {
        self.shared = None;
        // Under one lock: a thread that got its turn meanwhile would otherwise come next again.
        let mut tickets = self.turns.tickets();
        tickets.served += 1;
        self.turns.changed.notify_all();
        self.shared = Some(self.turns.wait(tickets));
    }
}

impl<T> Deref for Turn<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.shared.as_deref().expect("only `pass` releases it")
    }
}

impl<T> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.shared.as_deref_mut().expect("only `pass` releases it")
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.shared = None;
        self.turns.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_alternate_between_threads_that_pass_them() {
        let turns = Turns::new(Vec::new());
        let first = turns.take();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let turns = &turns;
                scope.spawn(move || {
                    let mut turn = turns.take();
                    for _ in 0..100 {
                        turn.push(thread);
                        turn.pass();
                    }
                });
                // Each waits before the next one starts.
                while turns.tickets().next < thread + 2 {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        let order = turns.take();
        assert_eq!(order[..], [0, 1].repeat(100)[..]);
    }

    #[test]
    fn a_panicking_thread_ends_its_turn() {
        let turns = Turns::new(7);
        let panicked = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let _turn = turns.take();
                panic!("expected by this test");
            });
            thread.join().is_err()
        });
        assert!(panicked);
        assert_eq!(*turns.take(), 7);
    }
}
