//! Operands that are the same in all lanes.

use crate::instruction::Word;
use crate::wave::{ScalarIndex, Wave};
use flipwave_isa::LaneMask;

/// The value of a word that is the same in all lanes.
#[inline(always)]
pub fn scalar_word(wave: &Wave, word: Word) -> u32 {
    match word {
        Word::Scalar(index) => wave.scalar(index),
        Word::Constant(value) => value,
        Word::Scc => wave.scc.into(),
        Word::Vccz => u32::from(wave.vcc() == 0),
        Word::Execz => u32::from(wave.exec() == LaneMask::EMPTY),
        Word::Row(row) => wave.row(row).0[0],
    }
}

/// The value of two words that are the same in all lanes.
#[inline(always)]
pub fn scalar_pair(wave: &Wave, words: [Word; 2]) -> u64 {
    u64::from(scalar_word(wave, words[0])) | u64::from(scalar_word(wave, words[1])) << 32
}

/// Where VCC lies, for operations that read it without naming it.
pub const VCC_WORDS: [Word; 2] =
    [Word::Scalar(ScalarIndex::VCC), Word::Scalar(ScalarIndex(ScalarIndex::VCC.0 + 1))];
