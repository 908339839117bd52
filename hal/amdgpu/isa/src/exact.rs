//! Check for `op_sel` bits that LLVM's disassembler drops.
//!
//! From gfx11 on every 16-bit operand of a VOP3 instruction has a bit of `op_sel` that selects the low
//! or the high half of its register (RDNA 3 ISA, "VOP3": "OPSEL"). If a bit is set that belongs to no
//! operand, LLVM 22 falls back to a form without halves and drops all the bits. Before gfx11 these
//! operations have no such bits.

use crate::ffi::{Description, McOperand};
use crate::{Generation, Operation};

/// Returns `true` if LLVM's description includes all register halves that `bytes` encode.
pub(crate) fn is_exact(description: &Description, bytes: &[u8], generation: Generation) -> bool {
    const VOP3: u32 = 0b110101;
    let Some(word) = bytes.first_chunk().map(|word| u32::from_le_bytes(*word)) else { return true };
    let encoded = word >> 11 & 0xf;
    if generation < Generation::Gfx11 || word >> 26 != VOP3 || encoded == 0 {
        return true;
    }
    let definitions = description.operands.iter();
    let definitions = definitions.filter(|operand| matches!(operand, McOperand::Definition(_)));
    // A second result is a lane mask, whose register number occupies these bits. Byte selects occupy them
    // too and are printed.
    let is_printed = [" op_sel:", " byte_sel:"].iter().any(|word| description.text.contains(word));
    if definitions.count() > 1 || is_printed {
        return true;
    }
    let types = description.operands.iter().filter_map(|operand| match operand {
        McOperand::Use { constant, .. } | McOperand::Immediate { constant, .. } => *constant,
        _ => None,
    });
    let sources = types.enumerate().filter(|(_, constant_type)| constant_type.is_half());
    let mut halves: u32 = sources.fold(0, |halves, (source, _)| halves | 1 << source);
    let mnemonic = description.text.split_whitespace().next().unwrap_or_default();
    let named = description.text.matches(".h").count();
    if mnemonic.ends_with("_dpp") {
        // Most operands of DPP forms cannot be constants and have no type, so every set bit must be printed.
        return encoded.count_ones() as usize == named;
    }
    if Operation::from_mnemonic(mnemonic, generation).preserves_destination_bits(generation) {
        halves |= DESTINATION;
    }
    // Some forms print halves of registers only, not of constants.
    (encoded & halves).count_ones() as usize == named
}

/// The `op_sel` bit of the result.
const DESTINATION: u32 = 1 << 3;
