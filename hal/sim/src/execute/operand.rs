//! Operands with the same value in all lanes.

use crate::instruction::Word;
use crate::wave::{ScalarIndex, Wave};
use flipwave_isa::LaneMask;

/// Value of a uniform word.
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

/// Value of a uniform pair of words.
#[inline(always)]
pub fn scalar_pair(wave: &Wave, words: [Word; 2]) -> u64 {
    u64::from(scalar_word(wave, words[0])) | u64::from(scalar_word(wave, words[1])) << 32
}

/// Location of VCC, for operations that read it implicitly.
pub const VCC_WORDS: [Word; 2] =
    [Word::Scalar(ScalarIndex::VCC), Word::Scalar(ScalarIndex(ScalarIndex::VCC.0 + 1))];
