//! Random decisions derived from bytes.

/// A source of decisions, each of which consumes some bytes. After the last byte, every decision is the
/// first alternative.
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Creates a source of decisions from bytes.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes }
    }

    /// Returns `true` if no byte is left.
    pub fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let count = N.min(self.bytes.len());
        let (now, later) = self.bytes.split_at(count);
        taken[..count].copy_from_slice(now);
        self.bytes = later;
        taken
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let drawn = if limit <= 256 {
            usize::from(u8::from_le_bytes(self.take()))
        } else {
            u32::from_le_bytes(self.take()) as usize
        };
        drawn % limit
    }

    /// Returns `true` with a probability of `percent` percent.
    pub fn chance(&mut self, percent: usize) -> bool {
        // `true` for the highest numbers, so that the result is `false` after the last byte.
        self.below(100) >= 100 - percent
    }

    /// An element of `all`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Any 32-bit number.
    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    /// Any 64-bit number.
    pub fn wide(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

/// `count` pseudorandom bytes, determined by the seed (SplitMix64; Steele, Lea and Flood, 2014).
pub fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    };
    let mut bytes: Vec<u8> =
        std::iter::repeat_with(next).take(count.div_ceil(8)).flat_map(u64::to_le_bytes).collect();
    bytes.truncate(count);
    bytes
}
