//! Fields that an operation does not use. The hardware ignores what they hold; LLVM 22's
//! disassembler wants zeros. Compilers leave other values there: LLVM since 20 writes the inline
//! constant zero, 0x80, into unused sources of VOP3 from gfx10 on.
//!
//! A field is unused if LLVM decodes the instruction with zeros in it, and with nothing else: which
//! fields an operation uses is LLVM's knowledge, not ours. Which bits are fields of operands at all
//! is in the ISA manuals, "Microcode formats".

use crate::Generation;

/// A field: its lowest bit in the first two words, and its width.
type Field = (u32, u32);

/// Operand fields of VOP3 and VOP3P: SRC0, SRC1, SRC2.
const SOURCES: &[Field] = &[(32, 9), (41, 9), (50, 9)];
/// Of VOPD: VSRCX1, VSRCY1.
const DUAL: &[Field] = &[(9, 8), (41, 8)];
/// Of DS: ADDR, DATA0, DATA1, VDST.
const LDS: &[Field] = &[(32, 8), (40, 8), (48, 8), (56, 8)];

/// The operand fields of a format that may be unused. (Before gfx10 nothing says what hardware does
/// with unused sources of VOP3.)
fn fields(word: u32, generation: Generation) -> &'static [Field] {
    match word >> 26 {
        0b110110 => LDS,
        // Older generations have other formats there.
        0b110101 | 0b110011 if generation >= Generation::Gfx10 => SOURCES,
        0b110010 if generation >= Generation::Gfx11 => DUAL,
        _ => &[],
    }
}

/// What `decode` gives for an instruction that it refuses, with as few unused fields cleared as
/// possible.
pub(crate) fn without<T>(
    bytes: &[u8],
    generation: Generation,
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Option<T> {
    let bits = u64::from_le_bytes(*bytes.first_chunk()?);
    let with = |bits: u64| {
        let mut changed = bytes.to_vec();
        changed[..8].copy_from_slice(&bits.to_le_bytes());
        decode(&changed)
    };
    let mask = |(bit, width): Field| ((1u64 << width) - 1) << bit;
    let set: Vec<Field> = fields(bits as u32, generation)
        .iter()
        .copied()
        .filter(|field| bits & mask(*field) != 0)
        .collect();
    let mut choices: Vec<u32> = (1..1u32 << set.len()).collect();
    choices.sort_by_key(|choice| choice.count_ones());
    choices.into_iter().find_map(|choice| {
        let chosen = || (set.iter().enumerate()).filter(|(at, _)| choice >> at & 1 != 0);
        let cleared = chosen().fold(bits, |bits, (_, field)| bits & !mask(*field));
        let decoded = with(cleared)?;
        // A vector register, a scalar one and a constant in fields of nine bits; vector registers
        // in those of eight.
        let takes = |(bit, width): Field| {
            [0x102, 2, 0x80]
                .iter()
                .any(|value| with(cleared | (value << bit) & mask((bit, width))).is_some())
        };
        (!chosen().any(|(_, field)| takes(*field))).then_some(decoded)
    })
}
