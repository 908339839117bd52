//! Instruction groups: the parts of a program that a campaign can be confined to.

use super::destination_registers;
use flipwave_isa::{Class, DataType, Family, Inst, MemoryKind, Register};
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

    /// Returns `true` if `inst` belongs to the group.
    pub(crate) fn matches(self, inst: &Inst) -> bool {
        let operation = inst.operation;
        let memory = operation.memory();
        match self {
            Group::All => true,
            Group::Valu | Group::Salu | Group::Vmem | Group::Smem | Group::Lds | Group::Matrix => {
                unit(operation.class()) == self
            }
            Group::Atomic => memory.is_some_and(|access| access.kind == MemoryKind::Atomic),
            Group::Fp64 => operation.data_type() == DataType::F64,
            Group::Fp32 => operation.data_type() == DataType::F32,
            Group::Fp16 => matches!(operation.data_type(), DataType::F16 | DataType::Bf16),
            Group::Integer => operation.data_type() == DataType::Integer && memory.is_none(),
            Group::Load => memory.is_some_and(|access| access.kind == MemoryKind::Load),
            Group::Compare => writes_conditions_only(inst),
            Group::VectorRegister => destination_registers(inst).any(Register::is_per_lane),
            Group::ScalarRegister => destination_registers(inst).any(|r| !r.is_per_lane()),
        }
    }

    /// The one group under which results of `inst` are filed: `atomic` for atomics, else the
    /// unit that executes it.
    pub(crate) fn primary(inst: &Inst) -> Group {
        if Group::Atomic.matches(inst) { Group::Atomic } else { unit(inst.operation.class()) }
    }
}

/// The group named after the unit that executes instructions of a class.
fn unit(class: Class) -> Group {
    match class {
        Class::Valu | Class::Graphics => Group::Valu,
        Class::Matrix => Group::Matrix,
        Class::Vmem | Class::Image => Group::Vmem,
        Class::Smem => Group::Smem,
        Class::Lds => Group::Lds,
        Class::Salu | Class::Branch | Class::Wait | Class::Barrier | Class::Message => Group::Salu,
    }
}

fn writes_conditions_only(inst: &Inst) -> bool {
    let is_condition = |register| {
        matches!(
            register,
            Register::VccLo | Register::VccHi | Register::ExecLo | Register::ExecHi | Register::Scc
        )
    };
    let mut destinations = destination_registers(inst).peekable();
    destinations.peek().is_some()
        && (inst.operation.is(Family::Compare) || destinations.all(is_condition))
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
    use crate::testing::inst;

    fn groups(text: &str) -> String {
        let inst = inst(0, text);
        let names: Vec<&str> =
            Group::ALL.into_iter().filter(|group| group.matches(&inst)).map(Group::name).collect();
        format!("{}: {}", Group::primary(&inst), names[1..].join(" "))
    }

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
    fn instructions_are_in_the_documented_groups() {
        for (text, expected) in [
            ("v_add_f32_e32 v1, v2, v3", "valu: valu fp32 vector_register"),
            ("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]", "valu: valu fp64 vector_register"),
            ("v_pk_add_f16 v0, v1, v2", "valu: valu fp16 vector_register"),
            ("v_lshlrev_b32_e32 v0, 2, v0", "valu: valu integer vector_register"),
            (
                "v_add_co_u32_e32 v1, vcc, v2, v3",
                "valu: valu integer vector_register scalar_register",
            ),
            ("v_cmp_gt_f32_e32 vcc, v2, v3", "valu: valu fp32 compare scalar_register"),
            ("v_cmp_gt_i32_e64 s[4:5], v2, v3", "valu: valu integer compare scalar_register"),
            ("v_readfirstlane_b32 s3, v0", "valu: valu integer scalar_register"),
            ("v_mfma_f32_4x4x1f32 a[0:3], v0, v1, a[0:3]", "matrix: matrix fp32 vector_register"),
            ("v_accvgpr_read_b32 v0, a0", "valu: valu integer vector_register"),
            ("s_add_u32 s0, s1, s2", "salu: salu integer scalar_register"),
            ("s_cmp_eq_u32 s0, s1", "salu: salu integer compare scalar_register"),
            ("s_or_b64 exec, exec, s[0:1]", "salu: salu integer compare scalar_register"),
            ("s_and_saveexec_b64 s[0:1], vcc", "salu: salu integer scalar_register"),
            ("s_load_dwordx2 s[4:5], s[0:1], 0x0", "smem: smem load scalar_register"),
            ("global_load_dword v0, v[2:3], off", "vmem: vmem load vector_register"),
            ("buffer_load_dword v0, off, s[0:3], 0", "vmem: vmem load vector_register"),
            ("global_atomic_add v1, v[2:3], v4, off glc", "atomic: vmem atomic vector_register"),
            ("global_atomic_add_f64 v[2:3], v[4:5], off", "atomic: vmem atomic fp64"),
            ("global_store_dword v[0:1], v2, off", "vmem: vmem"),
            ("ds_read_b64 v[0:1], v2", "lds: lds load vector_register"),
            ("ds_add_rtn_u32 v0, v1, v2", "atomic: lds atomic vector_register"),
            ("s_barrier", "salu: salu integer"),
        ] {
            assert_eq!(groups(text), expected, "{text}");
        }
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
