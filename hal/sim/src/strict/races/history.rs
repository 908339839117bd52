//! Last accesses to each dword of a memory.

use super::clocks::{Clocks, Moment};
use rustc_hash::FxHashMap;

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads, and acquires the actions of those that have written the bytes.
    Acquire,
}

/// An access to bytes of a dword.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Moment and wave of the access.
    pub moment: Moment,
    /// Instruction, as an index among the sites.
    pub site: usize,
    /// A bit for each accessed byte.
    pub bytes: u8,
    /// Word that contains the stored bytes, if it is known.
    pub value: Option<u32>,
}

impl Access {
    fn meets(&self, other: &Access) -> bool {
        self.bytes & other.bytes != 0
    }

    fn covers(&self, other: &Access) -> bool {
        other.bytes & !self.bytes == 0
    }

    /// Returns `true` if both store the same value to the bytes that they share.
    fn stores_the_same(&self, other: &Access) -> bool {
        let bits = (0..4).filter(|byte| (self.bytes & other.bytes) >> byte & 1 != 0);
        let bits = bits.fold(0_u32, |bits, byte| bits | 0xff << (8 * byte));
        self.value.zip(other.value).is_some_and(|(ours, others)| (ours ^ others) & bits == 0)
    }
}

/// Recent accesses to a dword.
#[derive(Default)]
struct Cell {
    writes: Vec<Access>,
    reads: Vec<Access>,
}

/// Last accesses by address.
#[derive(Default)]
pub struct History(FxHashMap<u64, Cell>);

/// Two unordered accesses.
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    /// The earlier access.
    pub earlier: Access,
    /// Kind of the earlier access.
    pub kind: Kind,
}

impl History {
    /// Adds an access to the dword at an address; returns an earlier access that conflicts.
    pub fn touch(
        &mut self,
        clocks: &mut Clocks,
        address: u64,
        kind: Kind,
        access: Access,
    ) -> Option<Conflict> {
        let cell = self.0.entry(address).or_default();
        let wave = access.moment.wave;
        if kind == Kind::Acquire {
            for write in cell.writes.iter().filter(|write| write.moment.wave != wave) {
                clocks.release_moment(write.moment);
            }
            return None;
        }
        let is_open =
            |earlier: &&Access| earlier.meets(&access) && !clocks.is_before(earlier.moment, wave);
        let is_race = |earlier: &&Access| kind == Kind::Read || !earlier.stores_the_same(&access);
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
            cell.writes.retain(|earlier| !access.covers(earlier));
            cell.reads.retain(|earlier| !access.covers(earlier));
            cell.writes.push(access);
        } else {
            // An access that precedes this one cannot be in a race without this one being in it,
            // too.
            cell.reads.retain(|earlier| {
                !(access.covers(earlier) && clocks.is_before(earlier.moment, wave))
            });
            cell.reads.push(access);
        }
        conflict
    }
}
