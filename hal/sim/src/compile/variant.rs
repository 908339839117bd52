//! Variants of compiled blocks.

/// The variant in which a block is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// The code records its footprint: the bytes of device memory that it accesses.
    pub footprint: bool,
    /// The code gives NaN results the interpreter's bits. Other code bails out at a NaN, which costs
    /// nothing where none occurs.
    pub nan_exact: bool,
    /// The code contains accesses to private memory in place of flat accesses that reached non-global
    /// memory before, see [`Block::non_global_accesses`](super::block::Block::non_global_accesses).
    /// Other code bails out at them.
    pub flat_private: bool,
}

impl Variant {
    /// Number of variants.
    pub const COUNT: usize = 8;

    /// Number of the variant, below [`Variant::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.footprint)
            | usize::from(self.nan_exact) << 1
            | usize::from(self.flat_private) << 2
    }

    /// The variant, followed by those that can replace it until it is compiled, which bail out more
    /// often.
    pub fn with_fallbacks(self) -> [Variant; 4] {
        let nan_bailout = Variant { nan_exact: false, ..self };
        let flat_bailout = Variant { flat_private: false, ..self };
        [self, nan_bailout, flat_bailout, Variant { flat_private: false, ..nan_bailout }]
    }
}
