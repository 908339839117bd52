//! Chip bugs that depend on register values.

use super::violation::Finding;
use crate::execute::operand::scalar_word;
use crate::instruction::vector_memory::Space;
use crate::instruction::{Op, Run, Word};
use crate::wave::Wave;
use flipwave_isa::{ChipBug, LaneMask, Target};

/// Lanes of a scratch access in which adding the lowest bits of the vector offset, and of the
/// scalar offset with the immediate, carries (LLVM, `checkFlatScratchSVSSwizzleBug`).
pub fn scratch_swizzle(target: &Target, wave: &Wave, op: &Op) -> Option<(Finding, LaneMask)> {
    let Run::VectorMemory(access) = op.run else { return None };
    if access.space != Space::Scratch || !ChipBug::ScratchSwizzle.affects(target) {
        return None;
    }
    let (Word::Row(row), base) = (op.sources[0].words[0], op.sources[2].words[0]) else {
        return None;
    };
    if matches!(base, Word::Constant(_)) {
        return None;
    }
    let fixed = scalar_word(wave, base).wrapping_add(op.immediate as u32) & 3;
    let carries = wave.exec().lanes().filter(|lane| {
        let low_bits = wave.row(row).0[usize::from(lane.0)] & 3;
        low_bits + fixed >= 4
    });
    let lanes = LaneMask(carries.fold(0, |lanes, lane| lanes | 1 << lane.0));
    (lanes != LaneMask::EMPTY).then_some((Finding::ChipBug(ChipBug::ScratchSwizzle), lanes))
}
