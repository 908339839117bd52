//! Fields that an operation does not use. The hardware ignores their content, but LLVM 22's
//! disassembler requires zeros. Compilers write other values: LLVM since 20 writes the inline
//! constant zero, 0x80, into unused VOP3 sources from gfx10 on.
//!
//! A field is unused if LLVM decodes the instruction only with zeros in it: LLVM knows which fields an
//! operation uses. The positions of operand fields are from the ISA manuals, "Microcode formats".

use crate::Generation;

/// A bit field of the first two words of an instruction.
#[derive(Clone, Copy)]
struct Field {
    position: u32,
    width: u32,
}

impl Field {
    fn mask(self) -> u64 {
        ((1u64 << self.width) - 1) << self.position
    }
}

const fn field(position: u32, width: u32) -> Field {
    Field { position, width }
}

/// Operand fields of VOP3 and VOP3P: SRC0, SRC1, SRC2.
const VOP3: &[Field] = &[field(32, 9), field(41, 9), field(50, 9)];
/// Operand fields of VOPD: VSRCX1, VSRCY1.
const VOPD: &[Field] = &[field(9, 8), field(41, 8)];
/// Operand fields of DS: ADDR, DATA0, DATA1, VDST.
const DS: &[Field] = &[field(32, 8), field(40, 8), field(48, 8), field(56, 8)];

/// The operand fields of a format that may be unused. (The behavior of unused VOP3 sources before gfx10 is
/// undocumented.)
fn fields(word: u32, generation: Generation) -> &'static [Field] {
    match word >> 26 {
        0b110110 => DS,
        // Older generations use these encodings for other formats.
        0b110101 | 0b110011 if generation >= Generation::Gfx10 => VOP3,
        0b110010 if generation >= Generation::Gfx11 => VOPD,
        _ => &[],
    }
}

/// Decodes an instruction that `decode` rejects, with as few unused fields cleared as possible.
pub(crate) fn decode_with_cleared_fields<T>(
    bytes: &[u8],
    generation: Generation,
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Option<T> {
    let bits = u64::from_le_bytes(*bytes.first_chunk()?);
    let decode_bits = |bits: u64| {
        let mut changed = bytes.to_vec();
        changed[..8].copy_from_slice(&bits.to_le_bytes());
        decode(&changed)
    };
    let nonzero: Vec<Field> = fields(bits as u32, generation)
        .iter()
        .copied()
        .filter(|field| bits & field.mask() != 0)
        .collect();
    // Each bit of a subset selects a field to clear.
    let mut subsets: Vec<u32> = (1..1u32 << nonzero.len()).collect();
    subsets.sort_by_key(|subset| subset.count_ones());
    subsets.into_iter().find_map(|subset| {
        let selected = || {
            let indexed = nonzero.iter().enumerate();
            indexed.filter(move |(index, _)| subset >> index & 1 != 0).map(|(_, field)| *field)
        };
        let cleared = selected().fold(bits, |bits, field| bits & !field.mask());
        let decoded = decode_bits(cleared)?;
        // A vector register, a scalar register and a constant in 9-bit fields; vector registers in 8-bit
        // fields.
        let is_used = |field: Field| {
            [0x102, 2, 0x80].iter().any(|value| {
                decode_bits(cleared | (value << field.position) & field.mask()).is_some()
            })
        };
        (!selected().any(is_used)).then_some(decoded)
    })
}
