//! Dynamic relocations, which the loader applies.

use crate::CodeObjectError;
use crate::elf::Elf;
use crate::symbol::{Symbol, Table};
use object::LittleEndian as LE;
use object::elf::{self, Rela64};
use std::fmt;

/// The relocation type: the formula of the value. S is the symbol's address, A the addend, P the
/// address of the relocated field and B the load base (AMDGPUUsage, "Relocation Records").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelocationKind {
    /// Low 32 bits of S + A.
    Abs32Lo,
    /// High 32 bits of S + A.
    Abs32Hi,
    /// S + A, 64 bits.
    Abs64,
    /// S + A - P, 32 bits, signed.
    Rel32,
    /// S + A - P, 64 bits.
    Rel64,
    /// S + A, 32 bits.
    Abs32,
    /// Low 32 bits of S + A - P.
    Rel32Lo,
    /// High 32 bits of S + A - P.
    Rel32Hi,
    /// B + A, 64 bits; has no symbol.
    Relative64,
    /// ((S + A - P) - 4) / 4, 16 bits: the offset field of a branch.
    Rel16,
}

impl RelocationKind {
    fn from_number(number: u32) -> Option<RelocationKind> {
        Some(match number {
            1 => RelocationKind::Abs32Lo,
            2 => RelocationKind::Abs32Hi,
            3 => RelocationKind::Abs64,
            4 => RelocationKind::Rel32,
            5 => RelocationKind::Rel64,
            6 => RelocationKind::Abs32,
            10 => RelocationKind::Rel32Lo,
            11 => RelocationKind::Rel32Hi,
            13 => RelocationKind::Relative64,
            14 => RelocationKind::Rel16,
            // 7 to 9 refer to the global offset table, which only the static linker creates.
            _ => return None,
        })
    }

    /// Size of the relocated field, in bytes.
    pub fn size(self) -> u64 {
        match self {
            RelocationKind::Abs64 | RelocationKind::Rel64 | RelocationKind::Relative64 => 8,
            RelocationKind::Rel16 => 2,
            _ => 4,
        }
    }
}

impl fmt::Display for RelocationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RelocationKind::Abs32Lo => "R_AMDGPU_ABS32_LO",
            RelocationKind::Abs32Hi => "R_AMDGPU_ABS32_HI",
            RelocationKind::Abs64 => "R_AMDGPU_ABS64",
            RelocationKind::Rel32 => "R_AMDGPU_REL32",
            RelocationKind::Rel64 => "R_AMDGPU_REL64",
            RelocationKind::Abs32 => "R_AMDGPU_ABS32",
            RelocationKind::Rel32Lo => "R_AMDGPU_REL32_LO",
            RelocationKind::Rel32Hi => "R_AMDGPU_REL32_HI",
            RelocationKind::Relative64 => "R_AMDGPU_RELATIVE64",
            RelocationKind::Rel16 => "R_AMDGPU_REL16",
        })
    }
}

/// A relocation of a field of the memory image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// ELF virtual address of the relocated field.
    pub place: u64,
    /// The relocation type.
    pub kind: RelocationKind,
    /// The symbol, if the relocation has one.
    pub symbol: Option<Symbol>,
    /// The addend.
    pub addend: i64,
}

/// Reads the relocations of the memory image. `symbols` is `.dynsym`.
pub(crate) fn read(elf: &Elf<'_>, symbols: &Table) -> Result<Vec<Relocation>, CodeObjectError> {
    let mut relocations = Vec::new();
    let mut total = 0u64;
    for (index, header) in elf.section_headers.iter().enumerate() {
        let loaded = header.sh_flags.get(LE).contains(elf::SHF_ALLOC);
        let kind = header.sh_type.get(LE);
        if !loaded || !matches!(kind, elf::SHT_RELA | elf::SHT_REL) {
            continue;
        }
        let entries = elf.section_bytes(index as u64)?;
        total += entries.len() as u64;
        elf.check_overlap(total, "relocation section", entries.offset())?;
        let raw = Some(&entries)
            .filter(|_| kind == elf::SHT_RELA)
            .and_then(|entries| object::pod::slice_from_all_bytes::<Rela64<LE>>(entries).ok())
            .ok_or_else(|| {
                let expected = "entries of 24 bytes, with addends";
                CodeObjectError::malformed("relocation section", entries.offset(), expected)
            })?;
        for raw in raw {
            relocations.extend(relocation(raw, symbols)?);
        }
    }
    Ok(relocations)
}

fn relocation(raw: &Rela64<LE>, symbols: &Table) -> Result<Option<Relocation>, CodeObjectError> {
    let place = raw.r_offset.get(LE);
    let (number, index) = (raw.r_type(LE, false).0, raw.r_sym(LE, false));
    if number == 0 {
        return Ok(None);
    }
    let kind = RelocationKind::from_number(number).ok_or_else(|| CodeObjectError::Relocation {
        place,
        found: format!("type {number}"),
        expected: "a dynamic relocation type: 1 to 6, 10, 11, 13 or 14",
    })?;
    let symbol = match index {
        0 => None,
        index => {
            Some(symbols.symbol(index as usize).ok_or_else(|| CodeObjectError::Relocation {
                place,
                found: format!("symbol number {index}"),
                expected: "the index of a symbol in .dynsym",
            })?)
        }
    };
    Ok(Some(Relocation { place, kind, symbol, addend: raw.r_addend.get(LE) }))
}
