//! Whether what LLVM decodes is all that is encoded.
//!
//! From gfx11 on every 16-bit operand of a VOP3 instruction has a bit of `op_sel`, which says
//! whether it is the low or the high half of the register (RDNA 3 ISA, "VOP3": "OPSEL"). LLVM 22
//! decodes them, but where a bit is set, too, that no operand of the operation has: then it falls
//! back to a form without halves, and drops the bits. Before gfx11 those operations have no such bits.

use crate::ffi::{Description, McOperand};
use crate::{Generation, Operation};

/// Whether LLVM's description of an instruction has the halves that are encoded in `bytes`.
pub(crate) fn is_exact(description: &Description, bytes: &[u8], generation: Generation) -> bool {
    const VOP3: u32 = 0b110101;
    let Some(word) = bytes.first_chunk().map(|word| u32::from_le_bytes(*word)) else { return true };
    let encoded = word >> 11 & 0xf;
    if generation < Generation::Gfx11 || word >> 26 != VOP3 || encoded == 0 {
        return true;
    }
    let definitions = description.operands.iter();
    let definitions = definitions.filter(|operand| matches!(operand, McOperand::Definition(_)));
    // A second result is a lane mask, whose register is in the place of these bits.
    // Of bytes the same bits are printed otherwise.
    let is_printed = [" op_sel:", " byte_sel:"].iter().any(|word| description.text.contains(word));
    if definitions.count() > 1 || is_printed {
        return true;
    }
    let types = description.operands.iter().filter_map(|operand| match operand {
        McOperand::Use { constant, .. } | McOperand::Immediate { constant, .. } => *constant,
        _ => None,
    });
    let sources = types.enumerate().filter(|(_, own)| own.is_half());
    let mut halves: u32 = sources.fold(0, |halves, (source, _)| halves | 1 << source);
    let mnemonic = description.text.split_whitespace().next().unwrap_or_default();
    let named = description.text.matches(".h").count();
    if mnemonic.ends_with("_dpp") {
        // No constant can stand in the place of most operands, which so have no type: each bit must
        // be one that is printed.
        return encoded.count_ones() as usize == named;
    }
    if Operation::of_mnemonic(mnemonic, generation).keeps_destination(generation) {
        halves |= DESTINATION;
    }
    // Some forms print the halves of registers alone, in their names, and not those of constants.
    (encoded & halves).count_ones() as usize == named
}

/// The bit of the result.
const DESTINATION: u32 = 1 << 3;
