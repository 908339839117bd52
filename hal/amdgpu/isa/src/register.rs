//! Registers, with a separate number type for each register file.

use std::fmt;

/// Number of an architectural vector register: `v0` to `v255`, or `v1023` on gfx1250.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vgpr(pub u16);

impl Vgpr {
    /// The maximum number of VGPRs of a wave on any target (LLVM's feature
    /// 1024AddressableVGPRs).
    pub const COUNT: u16 = 1024;

    /// Returns the register if its number is valid.
    fn checked(self) -> Option<Vgpr> {
        (self.0 < Vgpr::COUNT).then_some(self)
    }
}

/// Number of an accumulation vector register, `a0` to `a255`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccVgpr(pub u8);

/// Number of a scalar register, `s0` to `s105`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sgpr(pub u8);

/// Number of a trap-handler scalar register, `ttmp0` to `ttmp15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttmp(pub u8);

/// Half a vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// Bits 15:0.
    Low,
    /// Bits 31:16.
    High,
}

/// One register of at most 32 bits. VCC, EXEC and register pairs are ranges of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Register {
    /// A vector register: 64 (or 32) lanes of 32 bits.
    Vgpr(Vgpr),
    /// An accumulation vector register.
    AccVgpr(AccVgpr),
    /// A scalar register.
    Sgpr(Sgpr),
    /// Low half of the vector condition code.
    VccLo,
    /// High half of the vector condition code.
    VccHi,
    /// Low half of the execution mask.
    ExecLo,
    /// High half of the execution mask.
    ExecHi,
    /// Low half of the scratch base.
    FlatScratchLo,
    /// High half of the scratch base.
    FlatScratchHi,
    /// Low half of the XNACK replay mask.
    XnackMaskLo,
    /// High half of the XNACK replay mask.
    XnackMaskHi,
    /// Trap-handler register.
    Ttmp(Ttmp),
    /// Memory-descriptor and index register.
    M0,
    /// Scalar condition code, one bit.
    Scc,
    /// Floating-point and other modes.
    Mode,
    /// Reads as zero; writes are discarded (gfx10 and later).
    Null,
    /// 1 if VCC is zero; read-only.
    Vccz,
    /// 1 if EXEC is zero; read-only.
    Execz,
    /// High half of the LDS aperture's base as a 64-bit source; read-only.
    SharedBase,
    /// Limit of the LDS aperture; read-only.
    SharedLimit,
    /// Base of the private aperture; read-only.
    PrivateBase,
    /// Limit of the private aperture; read-only.
    PrivateLimit,
    /// Low half of the base of the wave's private memory in the flat address space (gfx1250);
    /// read-only.
    FlatScratchBaseLo,
    /// High half of the base of the wave's private memory; read-only.
    FlatScratchBaseHi,
    /// Id of the exiting wave for primitive-ordered pixel shading; read-only.
    PopsExitingWaveId,
    /// Result of an LDS-direct read; read-only.
    LdsDirect,
}

impl Register {
    /// Width in bits: 32, or 1 for the condition flags.
    pub fn bits(self) -> u32 {
        match self {
            Register::Scc | Register::Vccz | Register::Execz => 1,
            _ => 32,
        }
    }

    /// Returns `true` if each lane has a separate value.
    pub fn is_per_lane(self) -> bool {
        matches!(self, Register::Vgpr(_) | Register::AccVgpr(_))
    }

    /// The register `words` after this one in the same file (`v3` + 2 = `v5`, `vcc_lo` + 1 =
    /// `vcc_hi`), or `None` beyond the end of the file.
    pub fn offset(self, words: u8) -> Option<Register> {
        if words == 0 {
            return Some(self);
        }
        Some(match self {
            Register::Vgpr(Vgpr(n)) => {
                let number = n.checked_add(words.into())?;
                Register::Vgpr(Vgpr(number).checked()?)
            }
            Register::AccVgpr(AccVgpr(n)) => Register::AccVgpr(AccVgpr(n.checked_add(words)?)),
            Register::Sgpr(Sgpr(n)) => {
                Register::Sgpr(Sgpr(n.checked_add(words).filter(|n| *n < 106)?))
            }
            Register::Ttmp(Ttmp(n)) => {
                Register::Ttmp(Ttmp(n.checked_add(words).filter(|n| *n < 16)?))
            }
            Register::VccLo if words == 1 => Register::VccHi,
            Register::ExecLo if words == 1 => Register::ExecHi,
            Register::FlatScratchLo if words == 1 => Register::FlatScratchHi,
            Register::XnackMaskLo if words == 1 => Register::XnackMaskHi,
            _ => return None,
        })
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Register::Vgpr(Vgpr(n)) => write!(f, "v{n}"),
            Register::AccVgpr(AccVgpr(n)) => write!(f, "a{n}"),
            Register::Sgpr(Sgpr(n)) => write!(f, "s{n}"),
            Register::Ttmp(Ttmp(n)) => write!(f, "ttmp{n}"),
            fixed => f.write_str(
                FIXED.iter().find(|(register, _)| register == fixed).map_or("?", |(_, name)| name),
            ),
        }
    }
}

/// Unnumbered registers with their names in LLVM's assembler.
const FIXED: [(Register, &str); 22] = [
    (Register::VccLo, "vcc_lo"),
    (Register::VccHi, "vcc_hi"),
    (Register::ExecLo, "exec_lo"),
    (Register::ExecHi, "exec_hi"),
    (Register::FlatScratchLo, "flat_scratch_lo"),
    (Register::FlatScratchHi, "flat_scratch_hi"),
    (Register::XnackMaskLo, "xnack_mask_lo"),
    (Register::XnackMaskHi, "xnack_mask_hi"),
    (Register::M0, "m0"),
    (Register::Scc, "scc"),
    (Register::Mode, "mode"),
    (Register::Null, "null"),
    (Register::Vccz, "vccz"),
    (Register::Execz, "execz"),
    (Register::SharedBase, "src_shared_base"),
    (Register::SharedLimit, "src_shared_limit"),
    (Register::PrivateBase, "src_private_base"),
    (Register::PrivateLimit, "src_private_limit"),
    (Register::FlatScratchBaseLo, "src_flat_scratch_base_lo"),
    (Register::FlatScratchBaseHi, "src_flat_scratch_base_hi"),
    (Register::PopsExitingWaveId, "src_pops_exiting_wave_id"),
    (Register::LdsDirect, "lds_direct"),
];

impl std::str::FromStr for Register {
    type Err = UnknownRegister;

    /// Parses the name of one 32-bit register, as [`Register`]'s `Display` formats it.
    fn from_str(name: &str) -> Result<Register, UnknownRegister> {
        let unknown = || UnknownRegister(name.to_owned());
        if let Some((register, _)) = FIXED.iter().find(|(_, fixed)| *fixed == name) {
            return Ok(*register);
        }
        let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let number: u16 = digits.parse().map_err(|_| unknown())?;
        let file = &name[..name.len() - digits.len()];
        if file == "v" {
            return Vgpr(number).checked().map(Register::Vgpr).ok_or_else(unknown);
        }
        let number = u8::try_from(number).map_err(|_| unknown())?;
        match file {
            "a" => Ok(Register::AccVgpr(AccVgpr(number))),
            "s" if number < 106 => Ok(Register::Sgpr(Sgpr(number))),
            "ttmp" if number < 16 => Ok(Register::Ttmp(Ttmp(number))),
            _ => Err(unknown()),
        }
    }
}

/// Error returned when parsing an unknown register name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a register; expected a name like v3, a0, s12, vcc_lo, exec_hi, m0 or scc")]
pub struct UnknownRegister(pub String);

/// Consecutive registers of one file, such as an operand. `v[4:7]` starts at `v4` and has
/// four words; `vcc` starts at `vcc_lo` and has two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegisterRange {
    /// The lowest register.
    pub first: Register,
    /// Number of 32-bit registers, at least 1.
    pub words: u8,
}

impl RegisterRange {
    /// A range of `words` registers that starts at `first`.
    pub fn new(first: Register, words: u8) -> RegisterRange {
        RegisterRange { first, words }
    }

    /// The registers of the range in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Register> {
        (0..self.words).filter_map(move |word| self.first.offset(word))
    }

    /// Returns `true` if the two ranges have a register in common.
    pub fn overlaps(self, other: RegisterRange) -> bool {
        self.iter().any(|register| other.contains(register))
    }

    /// Returns `true` if `register` is in the range.
    pub fn contains(self, register: Register) -> bool {
        self.iter().any(|member| member == register)
    }
}

impl fmt::Display for RegisterRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.words.saturating_sub(1);
        match self.first {
            first if self.words <= 1 => write!(f, "{first}"),
            Register::Vgpr(Vgpr(n)) => write!(f, "v[{n}:{}]", n + u16::from(last)),
            Register::AccVgpr(AccVgpr(n)) => {
                write!(f, "a[{n}:{}]", u16::from(n) + u16::from(last))
            }
            Register::Sgpr(Sgpr(n)) => write!(f, "s[{n}:{}]", u16::from(n) + u16::from(last)),
            Register::Ttmp(Ttmp(n)) => write!(f, "ttmp[{n}:{}]", u16::from(n) + u16::from(last)),
            Register::VccLo => f.write_str("vcc"),
            Register::ExecLo => f.write_str("exec"),
            Register::FlatScratchLo => f.write_str("flat_scratch"),
            Register::XnackMaskLo => f.write_str("xnack_mask"),
            first => write!(f, "{first}"),
        }
    }
}
