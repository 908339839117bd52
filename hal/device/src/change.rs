//! What happens to memory without a kernel.

use crate::Address;

/// What happens to a GPU's memory without a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Zeroed memory is there from now on.
    Map {
        /// Where it begins.
        address: Address,
        /// Its length in bytes.
        bytes: u64,
    },
    /// Memory is gone.
    Unmap {
        /// Where it began.
        address: Address,
    },
    /// The host writes these bytes, and no others.
    Write(Patch),
    /// Bytes are copied within the GPU's memory: what is there at that time, faulty or not.
    Copy {
        /// Where they are.
        from: Address,
        /// Where they are put. Both places may overlap.
        to: Address,
        /// How many.
        bytes: u64,
    },
}

/// Bytes for many places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// Where each run begins, and how many bytes it has: all together as many as there are.
    places: Vec<(Address, u64)>,
    /// The bytes of all runs, one after the other.
    bytes: Vec<u8>,
}

impl Patch {
    /// Bytes for one place.
    pub fn new(address: Address, bytes: &[u8]) -> Patch {
        let mut patch = Patch::default();
        patch.add(address, bytes);
        patch
    }

    /// Bytes that follow each other, for places of this many bytes each; nothing where those are
    /// not as many in all.
    pub fn of(places: Vec<(Address, u64)>, bytes: Vec<u8>) -> Option<Patch> {
        let wanted: u128 = places.iter().map(|(_, length)| u128::from(*length)).sum();
        (wanted == bytes.len() as u128).then_some(Patch { places, bytes })
    }

    /// Adds bytes for another place; where places overlap, what was added last counts.
    pub fn add(&mut self, address: Address, bytes: &[u8]) {
        self.places.push((address, bytes.len() as u64));
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Where bytes go, and how many, in the order in which they were added.
    pub fn places(&self) -> &[(Address, u64)] {
        &self.places
    }

    /// The bytes of all places, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Each place with its bytes.
    pub fn runs(&self) -> impl Iterator<Item = (Address, &[u8])> {
        let mut rest = &self.bytes[..];
        self.places.iter().map(move |(address, length)| {
            let (run, after) = rest.split_at(*length as usize);
            rest = after;
            (*address, run)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_their_bytes_and_no_others() {
        let mut patch = Patch::new(Address(16), &[1, 2]);
        patch.add(Address(8), &[3]);
        let runs: Vec<(Address, &[u8])> = patch.runs().collect();
        assert_eq!(runs, [(Address(16), &[1, 2][..]), (Address(8), &[3])]);
        let same = Patch::of(patch.places().to_vec(), patch.bytes().to_vec());
        assert_eq!(same, Some(patch));
        assert_eq!(Patch::of(vec![(Address(0), 2)], vec![1]), None);
        assert_eq!(Patch::of(vec![(Address(0), u64::MAX), (Address(0), 2)], vec![1]), None);
    }
}
