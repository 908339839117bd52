//! Final bytes of the new text and patches of the old text.

use super::encoding::{ChainShape, Encoding, with_distance};
use super::reach::{Hop, HopLocation, Reach};
use super::stream::{CodeStream, Labels, Location, distance};
use super::{InsertPurpose, LayoutError, TextPatch};
use flipwave_isa::Pc;
use std::collections::BTreeMap;
use std::ops::Range;

/// The new text and the changes of the old text.
pub(super) struct Text {
    address: u64,
    pub bytes: Vec<u8>,
    /// Changed words of the old text, by address.
    patches: BTreeMap<u64, u32>,
}

impl Text {
    /// Writes a stream with islands and padding, and fills in branch distances and addresses.
    pub fn new(
        address: u64,
        stream: &CodeStream,
        reach: &Reach,
        labels: &Labels<'_>,
        encoding: &Encoding,
    ) -> Result<Text, LayoutError> {
        let mut text = Text { address, bytes: Vec::new(), patches: BTreeMap::new() };
        let mut from = 0;
        for step in reach.addresses.steps() {
            text.bytes.extend_from_slice(&stream.bytes[from..step.position]);
            text.fill(encoding.nop, step.label);
            from = step.position;
        }
        text.bytes.extend_from_slice(&stream.bytes[from..]);
        for hop in &reach.hops {
            text.branch(hop, reach)?;
        }
        for (position, pool) in reach.pools.iter().filter(|(_, pool)| pool.jumps) {
            let at = reach.addresses.pool(*position);
            text.put_branch(at, encoding.branch, at + pool.size)?;
        }
        for chain in &stream.addresses {
            let value = reach.addresses.of(labels.location(chain.to)?);
            text.put_address(&encoding.chain, reach.addresses.label(chain.at), value);
        }
        text.end(encoding);
        Ok(text)
    }

    /// Writes a word of the new text or, at other addresses, of the old text.
    pub fn put(&mut self, address: u64, word: u32) {
        let offset = address.checked_sub(self.address).and_then(|at| usize::try_from(at).ok());
        match offset.and_then(|at| self.bytes.get_mut(at..)).and_then(<[u8]>::first_chunk_mut) {
            Some(bytes) => *bytes = word.to_le_bytes(),
            None => _ = self.patches.insert(address, word),
        }
    }

    /// Fills in the literals of the address chain at `at` so that it computes `value`.
    pub fn put_address(&mut self, shape: &ChainShape, at: u64, value: u64) {
        let difference = value.wrapping_sub(at.wrapping_add(4));
        let halves = [difference as u32, (difference >> 32) as u32];
        for (offset, half) in shape.literals.into_iter().zip(halves) {
            self.put(at.wrapping_add(offset as u64), half);
        }
    }

    /// Addresses of the changed words of the old text.
    pub fn patched(&self) -> impl Iterator<Item = u64> {
        self.patches.keys().copied()
    }

    /// The changes of the old text.
    pub fn patches(&self) -> Vec<TextPatch> {
        let patch = |(address, word): (&u64, &u32)| TextPatch {
            address: *address,
            bytes: word.to_le_bytes().to_vec(),
        };
        self.patches.iter().map(patch).collect()
    }

    fn branch(&mut self, hop: &Hop, reach: &Reach) -> Result<(), LayoutError> {
        self.put_branch(reach.address(hop.at), hop.word, reach.destination(hop))
    }

    fn put_branch(&mut self, from: u64, word: u32, to: u64) -> Result<(), LayoutError> {
        let unreachable = LayoutError::OutOfReach { from: Pc(from), to: Pc(to) };
        let distance = distance(from, to).ok_or(unreachable)?;
        self.put(from, with_distance(word, distance));
        Ok(())
    }

    fn fill(&mut self, word: u32, until: u64) {
        while self.address + (self.bytes.len() as u64) < until {
            self.bytes.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Appends padding for the instruction prefetch.
    fn end(&mut self, encoding: &Encoding) {
        let end = (self.address + self.bytes.len() as u64).next_multiple_of(encoding.end.line);
        self.fill(encoding.end.word, end + encoding.end.line * encoding.end.lines);
    }
}

/// All ranges without original instructions, including padding and islands, by ascending address.
pub(super) fn inserted(
    stream: &CodeStream,
    reach: &Reach,
    text: &Text,
) -> Vec<(Range<u64>, InsertPurpose)> {
    let mut inserted: Vec<(Range<u64>, InsertPurpose)> = stream
        .inserted
        .iter()
        .map(|(range, purpose)| (addresses(range, reach), *purpose))
        .collect();
    for step in reach.addresses.steps() {
        let above = stream.inserted.partition_point(|(range, _)| range.start < step.position);
        let around = above.checked_sub(1).map(|last| &stream.inserted[last]);
        if around.is_none_or(|(range, _)| range.end <= step.position) {
            inserted.push((step.end..step.label, InsertPurpose::Island));
        }
    }
    let end = reach.addresses.end(stream.position());
    inserted.push((end..text.address + text.bytes.len() as u64, InsertPurpose::Island));
    inserted.retain(|(range, _)| !range.is_empty());
    inserted.sort_by_key(|(range, _)| range.start);
    inserted
}

/// Addresses of a range of positions, without islands at its ends.
pub(super) fn addresses(range: &Range<usize>, reach: &Reach) -> Range<u64> {
    reach.addresses.label(range.start)..reach.addresses.end(range.end)
}

/// The branches of the stream as hops.
pub(super) fn hops(stream: &CodeStream, labels: &Labels<'_>) -> Result<Vec<Hop>, LayoutError> {
    let hop = |branch: &super::stream::Branch| {
        let to = labels.location(branch.to)?;
        let at = HopLocation::Fixed(Location::Position(branch.at));
        Ok(Hop { at, word: branch.word, to, via: None, site: branch.site })
    };
    stream.branches.iter().map(hop).collect()
}
