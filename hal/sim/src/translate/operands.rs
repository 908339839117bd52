//! Operands as locations in the register file.

use crate::execute::lane::Kind;
use crate::instruction::{Source, Word};
use crate::memory::aperture;
use crate::wave::{RowIndex, ScalarIndex};
use flipwave_isa::{Operand, Register, RegisterRange, Value};

/// Reason why an instruction cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap(pub &'static str);

/// The operands do not match the operation.
pub const OPERANDS: Gap = Gap("the operands are not those of the operation");

/// Translates a source operand to its words.
pub fn source(operand: &Operand, kind: Kind) -> Result<Source, Gap> {
    let words = match &operand.value {
        Value::Register(range) => register_words(*range, kind)?,
        // No number, or a number that is in the instruction's immediate.
        Value::Off | Value::Symbol(_) => constant(0),
        _ => constant(operand.constant_bits().ok_or(Gap("a source that has no bits"))?),
    };
    Ok(Source { words })
}

pub fn constant(bits: u64) -> [Word; 2] {
    [Word::Constant(bits as u32), Word::Constant((bits >> 32) as u32)]
}

fn register_words(range: RegisterRange, kind: Kind) -> Result<[Word; 2], Gap> {
    let window = |base: u64, limit: u32| {
        let high = Word::Constant((base >> 32) as u32);
        // Read as one word, these registers yield their upper half.
        if kind.words() == 2 { [Word::Constant(limit), high] } else { [high; 2] }
    };
    let flag = |flag| [flag, Word::Constant(0)];
    Ok(match range.first {
        Register::Scc => flag(Word::Scc),
        Register::Vccz => flag(Word::Vccz),
        Register::Execz => flag(Word::Execz),
        // Meaningless for compute waves.
        Register::Null | Register::PopsExitingWaveId => [Word::Constant(0); 2],
        Register::LdsDirect => [Word::Scalar(ScalarIndex::LDS_DIRECT); 2],
        Register::FlatScratchBaseLo => {
            let low = ScalarIndex::FLAT_SCRATCH_BASE;
            [Word::Scalar(low), Word::Scalar(ScalarIndex(low.0 + 1))]
        }
        Register::FlatScratchBaseHi => {
            [Word::Scalar(ScalarIndex(ScalarIndex::FLAT_SCRATCH_BASE.0 + 1)); 2]
        }
        Register::SharedBase => window(aperture::SHARED, 0),
        Register::SharedLimit => window(aperture::SHARED, u32::MAX),
        Register::PrivateBase => window(aperture::PRIVATE, 0),
        Register::PrivateLimit => window(aperture::PRIVATE, u32::MAX),
        first => {
            let second = first.offset(1).filter(|_| range.words > 1).unwrap_or(first);
            [word(first)?, word(second)?]
        }
    })
}

fn word(register: Register) -> Result<Word, Gap> {
    if let Some(row) = RowIndex::nominal(register) {
        Ok(Word::Row(row))
    } else if let Some(index) = ScalarIndex::of(register) {
        Ok(Word::Scalar(index))
    } else {
        Err(Gap("a source register has no storage"))
    }
}
