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

    /// `count` different ones of the lowest `width` bits, each set of them equally likely: R. Floyd,
    /// "A sample of brilliance", Communications of the ACM 30 (1987).
    pub fn bits(&mut self, width: u32, count: u32) -> u32 {
        let mut mask = 0u32;
        for last in width.saturating_sub(count)..width {
            let bound = NonZeroU64::MIN.saturating_add(last.into());
            let drawn = 1 << self.below(bound) as u32;
            mask |= if mask & drawn == 0 { drawn } else { 1 << last };
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From an implementation of ChaCha8 of its own (D. J. Bernstein, "ChaCha, a variant of
    /// Salsa20"): the seed as the first 8 bytes of the key, the index as the nonce, and the
    /// arithmetic of [`Stream::below`] in unbounded integers. These numbers are the promise
    /// that a seed means the same plan in every version.
    #[test]
    fn streams_are_chacha8_keyed_by_seed_and_index() {
        let bound = NonZeroU64::new(1_000_003).unwrap();
        for (seed, index, place, word) in [
            (42, 0, 348_255, 0x169d_f72b),
            (42, 1, 776_866, 0x6015_6b49),
            (u64::MAX, (1 << 40) + 7, 876_776, 0xc45c_ff8b),
        ] {
            let mut stream = Stream::new(seed, index);
            assert_eq!((stream.below(bound), stream.word()), (place, word), "{seed} {index}");
        }
    }

    /// Three quarters of 2^64 is the bound at which careless draws err most: what the remainder
    /// of the division hits, it hits twice as often as the rest.
    #[test]
    fn no_number_is_drawn_more_often_than_another() {
        let is_even = |draw: fn(&mut Stream, u64) -> u64| {
            let drawn = (0..3000).map(|index| draw(&mut Stream::new(1, index), 3 << 62));
            let drawn: Vec<u64> = drawn.collect();
            let in_first_third = drawn.iter().filter(|number| **number < 1 << 62).count();
            let multiples_of_three = drawn.iter().filter(|number| **number % 3 == 0).count();
            // Of each, 1000 expected, with a standard deviation of 26.
            [in_first_third, multiples_of_three].map(|count| (900..1100).contains(&count))
        };
        let ours = |stream: &mut Stream, bound| stream.below(NonZeroU64::new(bound).unwrap());
        assert_eq!(is_even(ours), [true, true]);
        // The two usual careless draws fail the same test.
        assert_eq!(is_even(|stream, bound| stream.0.next_u64() % bound), [false, true]);
        let scaled = |stream: &mut Stream, bound| {
            ((u128::from(stream.0.next_u64()) * u128::from(bound)) >> 64) as u64
        };
        assert_eq!(is_even(scaled), [true, false]);
    }

    #[test]
    fn draws_stay_below_their_bound_and_reach_its_ends() {
        for bound in 1..40 {
            let bound = NonZeroU64::new(bound).unwrap();
            let drawn: Vec<u64> =
                (0..1000).map(|index| Stream::new(5, index).below(bound)).collect();
            assert_eq!(drawn.iter().min(), Some(&0));
            assert_eq!(drawn.iter().max(), Some(&(bound.get() - 1)));
        }
    }
}
