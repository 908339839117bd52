//! Maps positions of a [`CodeStream`] to addresses.

use super::stream::{CodeStream, Location};

/// Padding and islands before a position of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressStep {
    /// The position.
    pub position: usize,
    /// Address of the end of the code before.
    pub end: u64,
    /// Address of the islands, after padding of the branch before.
    pub pool: u64,
    /// Address of the code at the position.
    pub label: u64,
}

/// Addresses of all positions.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamAddresses {
    base: u64,
    steps: Vec<AddressStep>,
}

impl StreamAddresses {
    /// Computes the addresses of a stream that starts at `base`. `padded` contains positions preceded by
    /// a word of padding, `pools` positions preceded by islands with their size in bytes; both ascend.
    pub fn new(
        base: u64,
        stream: &CodeStream,
        padded: impl Iterator<Item = usize>,
        pools: impl Iterator<Item = (usize, u64)>,
    ) -> StreamAddresses {
        let mut padded = padded.peekable();
        let mut pools = pools.peekable();
        let mut alignments = stream.alignments.iter().copied().peekable();
        let mut addresses = StreamAddresses { base, steps: Vec::new() };
        loop {
            let next = [
                padded.peek().copied(),
                pools.peek().map(|(position, _)| *position),
                alignments.peek().map(|(position, _)| *position),
            ];
            let Some(position) = next.into_iter().flatten().min() else { break };
            let end = addresses.label(position);
            let mut pool = end;
            while padded.next_if_eq(&position).is_some() {
                pool += 4;
            }
            let mut padding = pool;
            while let Some((_, size)) = pools.next_if(|(at, _)| *at == position) {
                padding += size;
            }
            let mut label = padding;
            while let Some((_, alignment)) = alignments.next_if(|(at, _)| *at == position) {
                label = label.next_multiple_of(alignment);
            }
            addresses.steps.push(AddressStep { position, end, pool, label });
        }
        addresses
    }

    /// Padding and islands, by ascending position.
    pub fn steps(&self) -> &[AddressStep] {
        &self.steps
    }

    /// Address of the code at a position.
    pub fn label(&self, position: usize) -> u64 {
        let above = self.steps.partition_point(|step| step.position <= position);
        self.after_steps(above, position)
    }

    /// Address of the end of the code before a position.
    pub fn end(&self, position: usize) -> u64 {
        let above = self.steps.partition_point(|step| step.position < position);
        self.after_steps(above, position)
    }

    /// Address of the islands before a position, or of the position if there are none.
    pub fn pool(&self, position: usize) -> u64 {
        match self.steps.binary_search_by_key(&position, |step| step.position) {
            Ok(index) => self.steps[index].pool,
            Err(above) => self.after_steps(above, position),
        }
    }

    /// Address of a location.
    pub fn of(&self, location: Location) -> u64 {
        match location {
            Location::Position(position) => self.label(position),
            Location::Address(address) => address,
        }
    }

    /// Address of a position preceded by the first `above` steps.
    fn after_steps(&self, above: usize, position: usize) -> u64 {
        match self.steps[..above].last() {
            Some(step) => step.label + (position - step.position) as u64,
            None => self.base + position as u64,
        }
    }
}
