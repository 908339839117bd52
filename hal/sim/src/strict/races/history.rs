//! The last accesses to each dword of a memory.

use super::clocks::{Clocks, Moment};
use rustc_hash::FxHashMap;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads, and acquires what those have done who have written there.
    Acquire,
}

/// An access to bytes of a dword.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// When, and by which wave.
    pub moment: Moment,
    /// The instruction, by its place among those that have accessed memory.
    pub site: usize,
    /// A bit for each byte.
    pub bytes: u8,
    /// The word that holds the bytes stored, where that is known.
    pub value: Option<u32>,
}

impl Access {
    fn meets(&self, other: &Access) -> bool {
        self.bytes & other.bytes != 0
    }

    fn covers(&self, other: &Access) -> bool {
        other.bytes & !self.bytes == 0
    }

    /// Whether both store the same to the bytes in which they meet.
    fn stores_the_same(&self, other: &Access) -> bool {
        let bits = (0..4).filter(|byte| (self.bytes & other.bytes) >> byte & 1 != 0);
        let bits = bits.fold(0_u32, |bits, byte| bits | 0xff << (8 * byte));
        self.value.zip(other.value).is_some_and(|(own, others)| (own ^ others) & bits == 0)
    }
}

/// What was done to a dword lately.
#[derive(Default)]
struct Cell {
    writes: Vec<Access>,
    reads: Vec<Access>,
}

/// The last accesses, by address.
#[derive(Default)]
pub struct History(FxHashMap<u64, Cell>);

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    /// The earlier one.
    pub earlier: Access,
    /// What that does.
    pub kind: Kind,
}

impl History {
    /// Adds an access to the dword at an address; an earlier one that it conflicts with.
    pub fn touch(
        &mut self,
        clocks: &mut Clocks,
        address: u64,
        kind: Kind,
        own: Access,
    ) -> Option<Conflict> {
        let cell = self.0.entry(address).or_default();
        let wave = own.moment.wave;
        if kind == Kind::Acquire {
            for write in cell.writes.iter().filter(|write| write.moment.wave != wave) {
                clocks.release_moment(write.moment);
            }
            return None;
        }
        let is_open =
            |earlier: &&Access| earlier.meets(&own) && !clocks.is_before(earlier.moment, wave);
        let is_race = |earlier: &&Access| kind == Kind::Read || !earlier.stores_the_same(&own);
        let write = cell.writes.iter().filter(is_open).find(is_race);
        let conflict = match write {
            Some(earlier) => Some(Conflict { earlier: *earlier, kind: Kind::Write }),
            None if kind == Kind::Write => cell
                .reads
                .iter()
                .find(is_open)
                .map(|earlier| Conflict { earlier: *earlier, kind: Kind::Read }),
            None => None,
        };
        if kind == Kind::Write {
            cell.writes.retain(|earlier| !own.covers(earlier));
            cell.reads.retain(|earlier| !own.covers(earlier));
            cell.writes.push(own);
        } else {
            // One that is ordered before this one is in no race that this one is not in.
            cell.reads
                .retain(|earlier| !(own.covers(earlier) && clocks.is_before(earlier.moment, wave)));
            cell.reads.push(own);
        }
        conflict
    }
}
