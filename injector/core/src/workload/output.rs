//! Contents of the output buffers after a run.

use std::borrow::Cow;
use std::sync::Arc;

/// Content of a buffer after a run. Outputs share equal blocks, so an output with few changes takes
/// little memory and is compared quickly.
#[derive(Clone, Debug)]
pub struct Output {
    base: Arc<[u8]>,
    /// Blocks that replace blocks of the base, each with its number, ascending.
    changed: Vec<(usize, Vec<u8>)>,
}

impl Output {
    /// Bytes per block, except for the last block.
    pub const BLOCK: usize = 4096;

    /// Returns a copy with some blocks replaced: pairs of block number and content, ascending.
    pub(crate) fn with(&self, changed: Vec<(usize, Vec<u8>)>) -> Output {
        if self.changed.is_empty() {
            Output { base: Arc::clone(&self.base), changed }
        } else {
            Output::from(self.bytes().into_owned()).with(changed)
        }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.base.len()
    }

    /// Returns `true` if the output has no bytes.
    pub fn is_empty(&self) -> bool {
        self.base.is_empty()
    }

    /// All bytes.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        if self.changed.is_empty() {
            return Cow::Borrowed(&self.base);
        }
        let mut bytes = self.base.to_vec();
        for (number, block) in &self.changed {
            let start = number * Output::BLOCK;
            bytes[start..start + block.len()].copy_from_slice(block);
        }
        Cow::Owned(bytes)
    }

    /// Blocks in which two outputs differ: the block number and its bytes in `self` and `other`. If one
    /// output is shorter, its last blocks are shorter or empty.
    pub fn differing<'a>(
        &'a self,
        other: &'a Output,
    ) -> impl Iterator<Item = (usize, [&'a [u8]; 2])> {
        let blocks = self.len().max(other.len()).div_ceil(Output::BLOCK);
        let numbers: Vec<usize> = if Arc::ptr_eq(&self.base, &other.base) {
            let changed = self.changed.iter().chain(&other.changed).map(|(number, _)| *number);
            let mut numbers: Vec<usize> = changed.collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        } else {
            (0..blocks).collect()
        };
        let both = numbers
            .into_iter()
            .map(move |number| (number, [self, other].map(|output| output.block(number))));
        both.filter(|(_, [left, right])| left != right)
    }

    /// A block, or an empty slice if there is none with this number.
    pub(crate) fn block(&self, number: usize) -> &[u8] {
        match self.changed.binary_search_by_key(&number, |(changed, _)| *changed) {
            Ok(place) => &self.changed[place].1,
            Err(_) => self.base.chunks(Output::BLOCK).nth(number).unwrap_or_default(),
        }
    }
}

impl From<Vec<u8>> for Output {
    fn from(bytes: Vec<u8>) -> Output {
        Output { base: bytes.into(), changed: Vec::new() }
    }
}

impl PartialEq for Output {
    fn eq(&self, other: &Output) -> bool {
        self.len() == other.len() && self.differing(other).next().is_none()
    }
}

impl Eq for Output {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workload;
    use crate::{Buffer, Golden};
    use flipwave_device::Address;

    const LENGTH: usize = 2 * Output::BLOCK + 10;

    /// Test bytes, with the bytes at the given positions changed.
    fn bytes(wrong: &[usize]) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..LENGTH).map(|at| at as u8).collect();
        wrong.iter().for_each(|at| bytes[*at] ^= 0x80);
        bytes
    }

    /// The output with the given bytes that shares equal blocks with `base`.
    fn beside(base: &Output, bytes: &[u8]) -> Output {
        let blocks = bytes.chunks(Output::BLOCK).map(<[u8]>::to_vec).enumerate();
        base.with(blocks.filter(|(number, block)| base.block(*number) != block).collect())
    }

    #[test]
    fn shared_outputs_equal_complete_outputs() {
        let base = Output::from(bytes(&[]));
        for wrong in [&[][..], &[0], &[4095, 4096], &[LENGTH - 1], &[5, 5000, 9000 - 800]] {
            let (shared, complete) = (beside(&base, &bytes(wrong)), Output::from(bytes(wrong)));
            assert_eq!(shared.bytes(), bytes(wrong));
            assert_eq!(shared, complete);
            assert_eq!(shared == base, wrong.is_empty());
            assert!(base.differing(&shared).eq(base.differing(&complete)));
            let again = beside(&shared, &bytes(&[1, 4097]));
            assert_eq!(again.bytes(), bytes(&[1, 4097]));
            assert_eq!(again, beside(&base, &bytes(&[1, 4097])));
        }
    }

    #[test]
    fn differing_yields_blocks_with_different_bytes() {
        let base = Output::from(bytes(&[]));
        let [first, second] =
            [&[1, LENGTH - 1][..], &[2]].map(|wrong| beside(&base, &bytes(wrong)));
        let numbers = |left: &Output, right: &Output| -> Vec<usize> {
            left.differing(right).map(|(number, _)| number).collect()
        };
        assert_eq!(numbers(&base, &first), [0, 2]);
        assert_eq!(numbers(&first, &second), [0, 2]);
        assert_eq!(numbers(&base, &second), [0]);
        assert!(numbers(&first, &first.clone()).is_empty());
    }

    #[test]
    fn outputs_of_different_length_differ() {
        let (whole, short) = (Output::from(bytes(&[])), Output::from(bytes(&[])[..100].to_vec()));
        assert_ne!(whole, short);
        assert_eq!(short.differing(&whole).count(), 3);
        assert_ne!(Output::from(Vec::new()), short);
    }

    /// For outputs anywhere in partially shared memory, and for writes anywhere in it.
    #[test]
    fn outputs_sharing_golden_blocks_equal_read_outputs() {
        let mut workload = workload();
        let device = &mut workload.device;
        let [large, small] = [1 << 20, 5000].map(|bytes| device.allocate(bytes).expect("memory"));
        let content: Vec<u8> = (0..1_u32 << 20).map(|at| (at / 3) as u8).collect();
        device.write(large, &content).expect("memory");
        device.share_memory();
        let after = device.clone();
        for (start, bytes) in [(large, 1 << 20), (Address(large.0 + 100), 600_001), (small, 5000)] {
            let buffer = Buffer { name: String::new(), address: start, bytes };
            workload.program.outputs = vec![buffer];
            let outputs = workload.outputs(&after).expect("outputs");
            let golden = Golden { outputs, statistics: Vec::new() };
            for written in [0, 99, 100, 4195, 4196, 262_144, 600_100, 600_101, (1 << 20) - 1] {
                let mut faulty = after.clone();
                faulty
                    .write(Address(large.0 + written), &[!content[written as usize]])
                    .expect("memory");
                let expected = workload.outputs(&faulty).expect("outputs");
                for known in [Some(&after), None] {
                    let found = workload.outputs_beside(&faulty, &golden, known).expect("outputs");
                    assert_eq!(found[0].bytes(), expected[0].bytes(), "{start} {written}");
                    assert!(found == expected);
                    let is_in = (start.0..start.0 + bytes as u64).contains(&(large.0 + written));
                    assert_eq!(found[0].changed.len(), usize::from(is_in), "{start} {written}");
                }
            }
        }
    }
}
