//! Changes of GPU memory by the host.

use crate::Address;

/// A change of GPU memory by the host, not by a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Maps zeroed memory.
    Map {
        /// Start address.
        address: Address,
        /// Length in bytes.
        bytes: u64,
    },
    /// Unmaps memory.
    Unmap {
        /// Start address of the mapping.
        address: Address,
    },
    /// Writes bytes.
    Write(Patch),
    /// Copies the current contents of GPU memory, including the effects of faults.
    Copy {
        /// Source address.
        from: Address,
        /// Destination address. Source and destination may overlap.
        to: Address,
        /// Length in bytes.
        bytes: u64,
    },
}

/// Bytes to write to several address ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// Start address and length in bytes of each range. The lengths add up to the number of bytes.
    ranges: Vec<(Address, u64)>,
    /// The concatenated bytes of all ranges.
    bytes: Vec<u8>,
}

impl Patch {
    /// Creates a patch of one range.
    pub fn new(address: Address, bytes: &[u8]) -> Patch {
        let mut patch = Patch::default();
        patch.add(address, bytes);
        patch
    }

    /// Creates a patch from the start addresses and lengths of its ranges and their concatenated
    /// bytes. Returns `None` if the lengths do not add up to the number of bytes.
    pub fn from_ranges(ranges: Vec<(Address, u64)>, bytes: Vec<u8>) -> Option<Patch> {
        let total: u128 = ranges.iter().map(|(_, length)| u128::from(*length)).sum();
        (total == bytes.len() as u128).then_some(Patch { ranges, bytes })
    }

    /// Adds a range. Later ranges overwrite earlier ones where they overlap.
    pub fn add(&mut self, address: Address, bytes: &[u8]) {
        self.ranges.push((address, bytes.len() as u64));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns `true` if the patch has no ranges.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Start address and length in bytes of each range, in the order of addition.
    pub fn ranges(&self) -> &[(Address, u64)] {
        &self.ranges
    }

    /// The concatenated bytes of all ranges.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Start address and bytes of each range, in the order of addition.
    pub fn runs(&self) -> impl Iterator<Item = (Address, &[u8])> {
        let mut remaining = &self.bytes[..];
        self.ranges.iter().map(move |(address, length)| {
            let (run, after) = remaining.split_at(*length as usize);
            remaining = after;
            (*address, run)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_the_bytes_of_their_ranges() {
        let mut patch = Patch::new(Address(16), &[1, 2]);
        patch.add(Address(8), &[3]);
        let runs: Vec<(Address, &[u8])> = patch.runs().collect();
        assert_eq!(runs, [(Address(16), &[1, 2][..]), (Address(8), &[3])]);
        let same = Patch::from_ranges(patch.ranges().to_vec(), patch.bytes().to_vec());
        assert_eq!(same, Some(patch));
        assert_eq!(Patch::from_ranges(vec![(Address(0), 2)], vec![1]), None);
        let overflowing = vec![(Address(0), u64::MAX), (Address(0), 2)];
        assert_eq!(Patch::from_ranges(overflowing, vec![1]), None);
    }
}
