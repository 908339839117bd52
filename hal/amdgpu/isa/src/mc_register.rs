//! Conversion of LLVM's register names (`VGPR2_VGPR3`, `FLAT_SCR_vi`, `M0_gfx11plus`) to register ranges.

use crate::{AccVgpr, Register, RegisterRange, Sgpr, Ttmp, Vgpr};

/// Suffixes of registers whose encoding differs between generations.
const GENERATIONS: [&str; 5] = ["_ci", "_vi", "_gfx9plus", "_gfx11plus", "_gfxpre11"];

/// Suffixes of register halves, which are converted to the whole register.
const HALVES: [&str; 2] = ["_LO16", "_HI16"];

/// Unnumbered registers, with the number of 32-bit words.
const FIXED: [(&str, Register, u8); 33] = [
    ("VCC", Register::VccLo, 2),
    ("VCC_LO", Register::VccLo, 1),
    ("VCC_HI", Register::VccHi, 1),
    ("EXEC", Register::ExecLo, 2),
    ("EXEC_LO", Register::ExecLo, 1),
    ("EXEC_HI", Register::ExecHi, 1),
    ("FLAT_SCR", Register::FlatScratchLo, 2),
    ("FLAT_SCR_LO", Register::FlatScratchLo, 1),
    ("FLAT_SCR_HI", Register::FlatScratchHi, 1),
    ("XNACK_MASK", Register::XnackMaskLo, 2),
    ("XNACK_MASK_LO", Register::XnackMaskLo, 1),
    ("XNACK_MASK_HI", Register::XnackMaskHi, 1),
    ("M0", Register::M0, 1),
    ("SCC", Register::Scc, 1),
    ("SRC_SCC", Register::Scc, 1),
    ("MODE", Register::Mode, 1),
    ("SGPR_NULL", Register::Null, 1),
    ("SGPR_NULL64", Register::Null, 1),
    ("SRC_VCCZ", Register::Vccz, 1),
    ("SRC_EXECZ", Register::Execz, 1),
    ("SRC_SHARED_BASE", Register::SharedBase, 1),
    ("SRC_SHARED_BASE_LO", Register::SharedBase, 1),
    ("SRC_SHARED_LIMIT", Register::SharedLimit, 1),
    ("SRC_SHARED_LIMIT_LO", Register::SharedLimit, 1),
    ("SRC_PRIVATE_BASE", Register::PrivateBase, 1),
    ("SRC_PRIVATE_BASE_LO", Register::PrivateBase, 1),
    ("SRC_PRIVATE_LIMIT", Register::PrivateLimit, 1),
    ("SRC_PRIVATE_LIMIT_LO", Register::PrivateLimit, 1),
    ("SRC_FLAT_SCRATCH_BASE", Register::FlatScratchBaseLo, 1),
    ("SRC_FLAT_SCRATCH_BASE_LO", Register::FlatScratchBaseLo, 1),
    ("SRC_FLAT_SCRATCH_BASE_HI", Register::FlatScratchBaseHi, 1),
    ("SRC_POPS_EXITING_WAVE_ID", Register::PopsExitingWaveId, 1),
    ("LDS_DIRECT", Register::LdsDirect, 1),
];

/// The register range with LLVM's `name`; `None` for pseudo registers (`FP_REG`, `PC_REG`) and the trap
/// base registers of gfx8.
pub(crate) fn range_of(name: &str) -> Option<RegisterRange> {
    let strip = |name, suffixes: &[&str]| -> &str {
        suffixes.iter().find_map(|suffix| str::strip_suffix(name, suffix)).unwrap_or(name)
    };
    let name = strip(strip(name, &HALVES), &GENERATIONS);
    if let Some((_, first, words)) = FIXED.iter().find(|(fixed, _, _)| *fixed == name) {
        return Some(RegisterRange::new(*first, *words));
    }
    let parts: Vec<&str> = name.split('_').map(|part| strip(part, &GENERATIONS)).collect();
    let digits = parts[0].trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let last = u8::try_from(parts.len() - 1).ok()?;
    let file = &parts[0][..parts[0].len() - digits.len()];
    if file == "VGPR" {
        let first = Register::Vgpr(Vgpr(digits.parse().ok()?));
        first.offset(last)?;
        return Some(RegisterRange::new(first, last + 1));
    }
    let number: u8 = digits.parse().ok()?;
    let first = match file {
        "AGPR" => Register::AccVgpr(AccVgpr(number)),
        "SGPR" => Register::Sgpr(Sgpr(number)),
        "TTMP" => Register::Ttmp(Ttmp(number)),
        _ => return None,
    };
    // LLVM's disassembler produces ranges that end beyond the last register.
    number.checked_add(last)?;
    Some(RegisterRange::new(first, last + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llvm_names_map_to_ranges() {
        for (name, text) in [
            ("VGPR2_VGPR3", "v[2:3]"),
            ("AGPR255", "a255"),
            ("VGPR254_VGPR255_VGPR256", "v[254:256]"),
            ("VGPR7_HI16", "v7"),
            ("SGPR4_SGPR5_SGPR6_SGPR7", "s[4:7]"),
            ("TTMP4_TTMP5_vi", "ttmp[4:5]"),
            ("TTMP15_gfx9plus", "ttmp15"),
            ("FLAT_SCR_LO_vi", "flat_scratch_lo"),
            ("EXEC", "exec"),
            ("EXEC_LO_HI16", "exec_lo"),
            ("M0_gfx11plus", "m0"),
            ("SGPR_NULL_gfxpre11", "null"),
        ] {
            assert_eq!(range_of(name).map(|range| range.to_string()).as_deref(), Some(text));
        }
        assert_eq!(range_of("AGPR254_AGPR255_AGPR256"), None);
        assert_eq!(range_of("VGPR1023_VGPR1024"), None);
        assert_eq!(range_of("PC_REG"), None);
        assert_eq!(range_of("TBA_LO"), None);
    }
}
