//! Layout of the values of vector operations in registers.

/// Interpretation of a source, for modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One word of bits, an integer or a single-precision number.
    Word,
    /// Single precision, whose denormals may be flushed.
    F32,
    /// The low half word, half precision.
    F16,
    /// The low half word, integer.
    Half,
    /// Two words.
    Wide,
    /// Double precision.
    F64,
    /// Single precision, or half precision in the half word that the source selects; read as single
    /// precision (`v_fma_mix`).
    Mixed,
    /// Like `Mixed`, with bfloat16 in place of half precision.
    MixedBrain,
    /// Two halves of a word, each with its own select and sign modifiers.
    Packed,
    /// Two words, each with its own select and sign modifiers.
    PackedWords,
    /// One bit per lane from a scalar register pair.
    Mask,
}

impl Kind {
    /// 32-bit words of a register operand of this kind.
    pub fn words(self) -> u8 {
        match self {
            Kind::Wide | Kind::F64 | Kind::PackedWords | Kind::Mask => 2,
            _ => 1,
        }
    }
}

/// Destination of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultKind {
    /// Words per lane.
    Rows(u8),
    /// A bit per lane in a scalar register pair.
    Mask,
    /// Words per lane, and a bit per lane in a scalar register pair.
    RowsAndMask(u8),
}
