//! Instruction groups: the parts of a program that a campaign can be confined to.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A set of instructions, named by what they are or by what they write. Groups overlap: a
/// double-precision MFMA is in `matrix`, `fp64` and `vector_register`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Every instruction. NVBitFI: `gppr`, the writers of any register, as instructions
    /// without a destination have no fault sites.
    All,
    /// Vector arithmetic, comparisons and moves; matrix operations are a group of their own.
    /// NVBitFI has no groups by unit.
    Valu,
    /// Scalar arithmetic, comparisons and moves, and the few branches and messages that write
    /// a register. No NVBitFI counterpart: its target has no scalar unit of this kind.
    Salu,
    /// Vector memory: buffer, flat, global, scratch and image instructions, atomics included.
    /// No NVBitFI counterpart.
    Vmem,
    /// Scalar memory. No NVBitFI counterpart.
    Smem,
    /// Local data share, atomics included. No NVBitFI counterpart.
    Lds,
    /// Atomics on memory or LDS that return a value. NVBitFI: part of `others`.
    Atomic,
    /// Matrix operations (MFMA). NVBitFI: part of `others`.
    Matrix,
    /// Operations on double precision. NVBitFI: `fp64`.
    Fp64,
    /// Operations on single precision. NVBitFI: `fp32`.
    Fp32,
    /// Operations on 16-bit floating point, IEEE half and bfloat16. NVBitFI: part of `others`.
    Fp16,
    /// Arithmetic and moves on integers and untyped bits, vector and scalar; no memory
    /// instructions. NVBitFI: part of `others`.
    Integer,
    /// Loads from any memory: vector, scalar and LDS; no atomics. NVBitFI: `ld`.
    Load,
    /// Instructions that write conditions only: VCC, SCC, EXEC, or the SGPR lane mask of a
    /// vector comparison. NVBitFI: `pr`.
    Compare,
    /// Instructions that write a VGPR or an AccVGPR. NVBitFI: `gp`.
    VectorRegister,
    /// Instructions that write an SGPR, VCC, EXEC, M0, SCC or FLAT_SCRATCH. No NVBitFI
    /// counterpart.
    ScalarRegister,
}

impl Group {
    /// Every group, in the order documentation lists them.
    pub const ALL: [Group; 16] = [
        Group::All,
        Group::Valu,
        Group::Salu,
        Group::Vmem,
        Group::Smem,
        Group::Lds,
        Group::Atomic,
        Group::Matrix,
        Group::Fp64,
        Group::Fp32,
        Group::Fp16,
        Group::Integer,
        Group::Load,
        Group::Compare,
        Group::VectorRegister,
        Group::ScalarRegister,
    ];

    /// Returns `true` if the group contains matrix multiplications.
    pub fn has_matrices(self) -> bool {
        matches!(
            self,
            Group::All
                | Group::Matrix
                | Group::Fp64
                | Group::Fp32
                | Group::Fp16
                | Group::Integer
                | Group::VectorRegister
        )
    }

    /// The group's name in campaign files and results.
    pub fn name(self) -> &'static str {
        match self {
            Group::All => "all",
            Group::Valu => "valu",
            Group::Salu => "salu",
            Group::Vmem => "vmem",
            Group::Smem => "smem",
            Group::Lds => "lds",
            Group::Atomic => "atomic",
            Group::Matrix => "matrix",
            Group::Fp64 => "fp64",
            Group::Fp32 => "fp32",
            Group::Fp16 => "fp16",
            Group::Integer => "integer",
            Group::Load => "load",
            Group::Compare => "compare",
            Group::VectorRegister => "vector_register",
            Group::ScalarRegister => "scalar_register",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Group {
    type Err = UnknownGroup;

    fn from_str(name: &str) -> Result<Group, UnknownGroup> {
        Group::ALL
            .into_iter()
            .find(|group| group.name() == name)
            .ok_or_else(|| UnknownGroup(name.to_owned()))
    }
}

/// Error returned for an unknown group name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not an instruction group; expected one of: {names}",
    name = .0,
    names = Group::ALL.map(Group::name).join(", ")
)]
pub struct UnknownGroup(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    /// Files contain the names, stored golden runs the numbers.
    #[test]
    fn groups_have_fixed_names_and_numbers() {
        assert_eq!(
            serde_json::to_string(&Group::ALL).expect("JSON"),
            "[\"all\",\"valu\",\"salu\",\"vmem\",\"smem\",\"lds\",\"atomic\",\"matrix\",\"fp64\",\
             \"fp32\",\"fp16\",\"integer\",\"load\",\"compare\",\"vector_register\",\
             \"scalar_register\"]"
        );
        let numbers = postcard::to_stdvec(&Group::ALL).expect("bytes");
        assert_eq!(numbers, (0..16).collect::<Vec<u8>>());
    }

    #[test]
    fn names_round_trip_and_unknown_ones_are_refused() {
        for group in Group::ALL {
            assert_eq!(group.to_string().parse(), Ok(group));
        }
        let error = "gp".parse::<Group>().unwrap_err().to_string();
        assert!(error.contains("`gp`") && error.contains("vector_register"), "{error}");
    }
}
