//! Pseudorandom data.

/// Pseudorandom words, equal on every run (xorshift, G. Marsaglia 2003).
pub fn random_words(count: usize) -> Vec<u64> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(next).take(count).collect()
}
