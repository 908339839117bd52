//! Encodings that crash LLVM 22's disassembler and must not be passed to it. None of them is valid: the
//! manuals do not allow the operand that causes the crash.

use crate::Generation;

/// Bits 31:23 of SOP1 (RDNA 4 ISA, "SOP1").
const SOP1: u32 = 0b1_0111_1101;
/// SOP1 opcodes whose source is a barrier number: a constant or M0, never a literal.
const BARRIERS: [u32; 6] = [0x4e, 0x4f, 0x50, 0x51, 0x52, 0x57];
/// Source encoding of a literal after the instruction.
const LITERAL: u32 = 0xff;

/// Bits 31:23 of VOP3P up to gfx9 (CDNA 3 ISA, "VOP3P").
const VOP3P: u32 = 0b1_1010_0111;
/// VOP3P opcodes of matrix multiplication in 8-, 6- and 4-bit formats, which may follow two words of scales
/// (CDNA 4 ISA, "Matrix Arithmetic Opcodes"). Their sources must be vector registers: bit 8 of each field.
const SMALL_FORMATS: [u32; 2] = [0x2d, 0x2e];
const SCALES: u32 = 0x2c;
const VECTOR_SOURCES: u32 = 1 << 8 | 1 << 17;

/// Bits 31:24 of VOP3P on gfx1250, and the opcodes in bits 22:16 of matrix multiplication in these formats
/// and of the two scale loads that may precede it (LLVM's `VOP3PInstructions.td`).
const VOP3P_GFX11: u32 = 0xcc;
const SMALL_FORMATS_GFX125: u32 = 0x33;
const SCALES_GFX125: [u32; 2] = [0x35, 0x3a];

/// Returns `true` if LLVM crashes on the instruction at the start of `bytes`.
pub fn crashes_disassembler(bytes: &[u8], generation: Generation) -> bool {
    let word = |index: usize| {
        let word = bytes.get(4 * index..4 * index + 4).and_then(|word| word.try_into().ok());
        word.map_or(0, u32::from_le_bytes)
    };
    let has_vector_sources = |index: usize| word(index + 1) & VECTOR_SOURCES == VECTOR_SOURCES;
    let first = word(0);
    match generation {
        Generation::Gfx940 if first >> 23 == VOP3P => {
            let matrix = if first >> 16 & 0x7f == SCALES { 2 } else { 0 };
            let is_small = SMALL_FORMATS.contains(&(word(matrix) >> 16 & 0x7f));
            is_small && !has_vector_sources(matrix)
        }
        Generation::Gfx125 if first >> 24 == VOP3P_GFX11 => {
            let matrix = if SCALES_GFX125.contains(&(first >> 16 & 0x7f)) { 2 } else { 0 };
            let is_small = word(matrix) >> 16 & 0x7f == SMALL_FORMATS_GFX125;
            is_small && !has_vector_sources(matrix)
        }
        Generation::Gfx12 | Generation::Gfx125 if first >> 23 == SOP1 => {
            BARRIERS.contains(&(first >> 8 & 0xff)) && first & 0xff == LITERAL
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Isa, Pc};

    #[test]
    fn crashing_encodings_are_rejected() {
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
    fn similar_valid_encodings_are_decoded() {
        for (processor, words) in
            [("gfx1201", [0xbefd_4e7d, 0, 0, 0]), ("gfx950", [0xd3ad_0210, 0x0422_0902, 0, 0])]
        {
            let isa = Isa::new(&processor.parse().expect("a target")).expect("LLVM has it");
            let bytes = words.map(u32::to_le_bytes).concat();
            isa.decode(&bytes, Pc(0)).expect("an instruction");
        }
    }
}
