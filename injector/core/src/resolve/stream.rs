//! Random numbers of a plan: one independent stream per injection.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::num::NonZeroU64;

/// Random stream of injection `index` of a campaign with `seed`: ChaCha8 keyed by the seed, with the index
/// as stream number. It depends on nothing else, so workers, shards and order do not change a plan.
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub fn new(seed: u64, index: u64) -> Stream {
        // The key is the seed itself, not an expansion that depends on the version of a library.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Stream(generator)
    }

    /// Draws a number in `0..bound` with equal probabilities: D. Lemire, "Fast Random Integer Generation
    /// in an Interval", ACM TOMACS 29 (2019), algorithm 5.
    pub fn below(&mut self, bound: NonZeroU64) -> u64 {
        let bound = bound.get();
        // Number of the 2^64 words to reject so that `bound` divides the number of the others.
        let excess = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= excess {
                return (product >> 64) as u64;
            }
        }
    }

    /// Draws a random word.
    pub fn word(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Draws a random number of 64 bits.
    pub fn wide(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws `count` different bits of the lowest `width` bits, each set with equal probability: R. Floyd,
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

    /// The expected numbers are from an independent implementation of ChaCha8 (D. J. Bernstein, "ChaCha, a
    /// variant of Salsa20"), with the seed as the first 8 bytes of the key, the index as the nonce, and the
    /// arithmetic of [`Stream::below`] in unbounded integers. They guarantee that a seed denotes the same
    /// plan in every version.
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

    /// Biased methods err most at a bound of three quarters of 2^64: numbers hit by the remainder of the
    /// division are drawn twice as often as others.
    #[test]
    fn draws_are_unbiased() {
        let is_even = |draw: fn(&mut Stream, u64) -> u64| {
            let drawn = (0..3000).map(|index| draw(&mut Stream::new(1, index), 3 << 62));
            let drawn: Vec<u64> = drawn.collect();
            let in_first_third = drawn.iter().filter(|number| **number < 1 << 62).count();
            let multiples_of_three = drawn.iter().filter(|number| **number % 3 == 0).count();
            // 1000 of each are expected, with a standard deviation of 26.
            [in_first_third, multiples_of_three].map(|count| (900..1100).contains(&count))
        };
        let ours = |stream: &mut Stream, bound| stream.below(NonZeroU64::new(bound).unwrap());
        assert_eq!(is_even(ours), [true, true]);
        // Negative control: the two common biased methods fail.
        assert_eq!(is_even(|stream, bound| stream.0.next_u64() % bound), [false, true]);
        let scaled = |stream: &mut Stream, bound| {
            ((u128::from(stream.0.next_u64()) * u128::from(bound)) >> 64) as u64
        };
        assert_eq!(is_even(scaled), [true, false]);
    }

    #[test]
    fn draws_cover_the_whole_range() {
        for bound in 1..40 {
            let bound = NonZeroU64::new(bound).unwrap();
            let drawn: Vec<u64> =
                (0..1000).map(|index| Stream::new(5, index).below(bound)).collect();
            assert_eq!(drawn.iter().min(), Some(&0));
            assert_eq!(drawn.iter().max(), Some(&(bound.get() - 1)));
        }
    }
}
