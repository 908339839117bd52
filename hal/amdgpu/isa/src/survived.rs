//! Instructions that LLVM 22's disassembler does not survive, so that it never sees them. None is
//! valid: the manuals have no such operand there.

use crate::Generation;

/// SOP1: bits 31:23 (RDNA 4 ISA, "SOP1").
const SOP1: u32 = 0b1_0111_1101;
/// Opcodes of SOP1 with a barrier as source: a constant or M0, never a literal.
const BARRIERS: [u32; 6] = [0x4e, 0x4f, 0x50, 0x51, 0x52, 0x57];
/// The source that says that a literal comes after.
const LITERAL: u32 = 0xff;

/// VOP3P: bits 31:23 up to gfx9 (CDNA 3 ISA, "VOP3P").
const VOP3P: u32 = 0b1_1010_0111;
/// Products of matrices in formats of 8, 6 and 4 bits, and the two words of scales before them
/// (CDNA 4 ISA, "Matrix Arithmetic Opcodes"). Sources are vector registers: bit 8 of each field.
const SMALL_FORMATS: [u32; 2] = [0x2d, 0x2e];
const SCALES: u32 = 0x2c;
const VECTOR_SOURCES: u32 = 1 << 8 | 1 << 17;

/// VOP3P of gfx1250, bits 31:24, and in bits 22:16 its product in those formats and the two loads of
/// scales that may stand before it (LLVM's `VOP3PInstructions.td`).
const VOP3P_GFX11: u32 = 0xcc;
const SMALL_FORMATS_GFX125: u32 = 0x33;
const SCALES_GFX125: [u32; 2] = [0x35, 0x3a];

/// Whether LLVM can be asked what begins with `bytes`.
pub fn is_survived(bytes: &[u8], generation: Generation) -> bool {
    let word = |at: usize| {
        let word = bytes.get(4 * at..4 * at + 4).and_then(|word| word.try_into().ok());
        word.map_or(0, u32::from_le_bytes)
    };
    let first = word(0);
    match generation {
        Generation::Gfx940 if first >> 23 == VOP3P => {
            let at = if first >> 16 & 0x7f == SCALES { 2 } else { 0 };
            let is_small = SMALL_FORMATS.contains(&(word(at) >> 16 & 0x7f));
            !is_small || word(at + 1) & VECTOR_SOURCES == VECTOR_SOURCES
        }
        Generation::Gfx125 if first >> 24 == VOP3P_GFX11 => {
            let at = if SCALES_GFX125.contains(&(first >> 16 & 0x7f)) { 2 } else { 0 };
            let is_small = word(at) >> 16 & 0x7f == SMALL_FORMATS_GFX125;
            !is_small || word(at + 1) & VECTOR_SOURCES == VECTOR_SOURCES
        }
        Generation::Gfx12 | Generation::Gfx125 if first >> 23 == SOP1 => {
            !BARRIERS.contains(&(first >> 8 & 0xff)) || first & 0xff != LITERAL
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Isa, Pc};

    #[test]
    fn what_crashes_the_disassembler_is_refused() {
        for (processor, words) in [
            ("gfx1201", [0xbefd_4fff, 0x333d_b2bd, 0, 0]),
            ("gfx950", [0xd3ae_05ee, 0x7de8_eb60, 0, 0]),
            ("gfx950", [0xd3ac_0000, 0x0004_0902, 0xd3ad_0210, 0x0421_eb02]),
        ] {
            let isa = Isa::new(&processor.parse().expect("a target")).expect("LLVM has it");
            let bytes = words.map(u32::to_le_bytes).concat();
            assert!(isa.decode(&bytes, Pc(0)).is_err(), "{processor}: {words:x?}");
        }
    }

    #[test]
    fn what_is_like_it_is_decoded() {
        for (processor, words) in
            [("gfx1201", [0xbefd_4e7d, 0, 0, 0]), ("gfx950", [0xd3ad_0210, 0x0422_0902, 0, 0])]
        {
            let isa = Isa::new(&processor.parse().expect("a target")).expect("LLVM has it");
            let bytes = words.map(u32::to_le_bytes).concat();
            isa.decode(&bytes, Pc(0)).expect("an instruction");
        }
    }
}
