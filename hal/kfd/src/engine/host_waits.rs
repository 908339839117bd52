//! Packets that wait for the host, and how long later packets wait for them.

use crate::machine::Machine;
use crate::queue::Queue;
use std::time::{Duration, Instant};

/// Time that later packets wait for a packet that waits for the host: long for a host that does its
/// part, short for a person if the host itself waits for one of the later packets.
const HOST_GRACE: Duration = Duration::from_millis(200);

/// Packets that were found waiting for the host, at most one per queue.
#[derive(Default)]
pub struct HostWaits(Vec<HostWait>);

/// A packet that waits for the host.
struct HostWait {
    queue: u64,
    packet: u64,
    since: Instant,
}

impl HostWaits {
    /// Notes that a packet of a queue waits for the host. Returns `true` if it has waited so long
    /// that packets of other queues may overtake it.
    pub fn may_overtake(&mut self, machine: &Machine, queue: &Queue, packet: u64) -> bool {
        let now = Instant::now();
        match self.0.iter_mut().find(|wait| wait.queue == queue.id) {
            Some(wait) if wait.packet == packet => now - wait.since >= HOST_GRACE,
            Some(wait) => {
                (wait.packet, wait.since) = (packet, now);
                false
            }
            None => {
                self.0.retain(|wait| machine.has_queue(wait.queue));
                self.0.push(HostWait { queue: queue.id, packet, since: now });
                false
            }
        }
    }
}
