//! The random numbers of a plan: one independent stream per injection.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::num::NonZeroU64;

/// The stream of injection `index` of a campaign with `seed`: ChaCha8 keyed by the seed, with
/// the index as stream number. A stream depends on nothing else, so neither workers nor shards
/// nor order change a plan.
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub fn new(seed: u64, index: u64) -> Stream {
        // The key is the seed itself, not what some version of a library expands it to.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Stream(generator)
    }

    /// A number in `0..bound`, each equally likely: D. Lemire, "Fast Random Integer Generation
    /// in an Interval", ACM TOMACS 29 (2019), algorithm 5.
    pub fn below(&mut self, bound: NonZeroU64) -> u64 {
        let bound = bound.get();
        // Of the 2^64 words, this many must be refused for `bound` to divide the rest.
        let excess = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= excess {
                return (product >> 64) as u64;
            }
        }
    }

    /// A random word.
    pub fn word(&mut self) -> u32 {
        self.0.next_u32()
    }
}
