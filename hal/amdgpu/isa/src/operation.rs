//! Properties of operations that LLVM's descriptions lack: the canonical name, the class, the data type,
//! and the memory space and width. All are derived from the mnemonic, which follows the naming scheme of
//! the ISA manuals.

use crate::matrix_shape::MatrixShape;
use crate::opcode::Families;
use crate::{Family, Generation, Half, MemoryAccess, Opcode, canonical, memory};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, OnceLock};

/// An operation under its canonical name: the gfx9 mnemonic without the encoding suffix.
/// `v_add_f32_e64`, `v_add_f32_dpp` and `v_add_f32` are the same operation, and so are
/// `global_load_b32` (gfx11) and `global_load_dword`.
#[derive(Clone, Copy)]
pub struct Operation(&'static Row);

/// The properties of an operation. Each operation has exactly one row, created on first use.
struct Row {
    name: &'static str,
    opcode: Opcode,
    families: Families,
    class: Class,
    data_type: DataType,
    memory: Option<MemoryAccess>,
    data_half: Option<Half>,
    matrix: Option<MatrixShape>,
    preserves_destination_bits: Since,
}

impl Row {
    fn new(name: &'static str) -> Row {
        let class = class_of(name);
        Row {
            name,
            opcode: Opcode::named(name),
            families: Families::named(name),
            class,
            data_type: data_type_of(name),
            memory: memory::of(name),
            data_half: memory::data_half(name),
            matrix: MatrixShape::from_name(name),
            preserves_destination_bits: preserves_destination_bits(name, class),
        }
    }
}

/// The generations that a property applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    Always,
    Gfx9,
    Gfx10,
    Gfx11,
    Never,
}

impl Operation {
    /// The operation with a canonical name.
    pub fn named(name: &str) -> Operation {
        static KNOWN: OnceLock<Mutex<HashMap<&'static str, Operation>>> = OnceLock::new();
        let mut known = match KNOWN.get_or_init(Default::default).lock() {
            Ok(known) => known,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some(operation) = known.get(name) {
            return *operation;
        }
        // The names come from LLVM's finite opcode tables, so the leaked memory is bounded.
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let operation = Operation(Box::leak(Box::new(Row::new(name))));
        known.insert(name, operation);
        operation
    }

    /// The operation that LLVM prints as `mnemonic`, including the encoding suffix, for a target of
    /// `generation`.
    pub fn from_mnemonic(mnemonic: &str, generation: Generation) -> Operation {
        Operation::named(&canonical::name(mnemonic, generation))
    }

    /// The opcode, or [`Opcode::Other`].
    pub fn opcode(self) -> Opcode {
        self.0.opcode
    }

    /// Returns `true` if the operation belongs to a family.
    pub fn is(self, family: Family) -> bool {
        self.0.families.contains(family)
    }

    /// The unit that executes the operation.
    pub fn class(self) -> Class {
        self.0.class
    }

    /// The element type of the result, or of the values that a comparison compares: the first type
    /// in the name (`v_cvt_f32_f64` is [`DataType::F32`]). Memory operations other than
    /// floating-point atomics move untyped bits.
    pub fn data_type(self) -> DataType {
        self.0.data_type
    }

    /// The memory access; `None` for operations without one, such as cache maintenance and LDS
    /// permutes. The width is the data width per lane: both elements of a two-address LDS
    /// operation, one of the two values of a compare-and-swap, and the register width of a
    /// formatted buffer access, whose width in memory depends on the resource.
    pub fn memory(self) -> Option<MemoryAccess> {
        self.0.memory
    }

    /// The half of a vector register that a load writes or a store reads; `None` if it accesses the whole
    /// register.
    pub(crate) fn data_half(self) -> Option<Half> {
        self.0.data_half
    }

    /// The shape of an MFMA operation.
    pub(crate) fn matrix(self) -> Option<MatrixShape> {
        self.0.matrix
    }

    /// Returns `true` if part of the destination keeps its old value although LLVM does not describe
    /// the destination as read: conditional moves, single-bit writes, and 16-bit results that
    /// preserve the other half of the register. On gfx9 the latter are the operations with `op_sel`
    /// that gfx8 lacks (Vega ISA, VOP3a), from gfx10 on all of them. Loads of an odd number of
    /// 16-bit values preserve half of their last register (Vega ISA, "D16").
    ///
    /// LLVM's register classes, which include register halves from gfx11 on, give the width of each
    /// result; a test compares every operation with them.
    pub fn preserves_destination_bits(self, generation: Generation) -> bool {
        match self.0.preserves_destination_bits {
            Since::Always => true,
            Since::Gfx9 => generation >= Generation::Gfx9,
            Since::Gfx10 => generation >= Generation::Gfx10,
            Since::Gfx11 => generation >= Generation::Gfx11,
            Since::Never => false,
        }
    }

    /// The canonical name.
    pub fn name(self) -> &'static str {
        self.0.name
    }
}

impl PartialEq for Operation {
    fn eq(&self, other: &Operation) -> bool {
        // Each name has exactly one row.
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Operation {}

impl Hash for Operation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Hash the name, so that hash maps iterate in the same order in every process.
        self.0.name.hash(state);
    }
}

impl PartialOrd for Operation {
    fn partial_cmp(&self, other: &Operation) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Operation {
    fn cmp(&self, other: &Operation) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

/// The type that [`Operation::data_type`] returns.
fn data_type_of(name: &str) -> DataType {
    let mut types = name.split('_').filter_map(|part| match part {
        "f16" => Some(DataType::F16),
        "bf16" => Some(DataType::Bf16),
        "f32" => Some(DataType::F32),
        "f64" => Some(DataType::F64),
        // 8-bit floats are treated as untyped bytes.
        "fp8" | "bf8" => Some(DataType::Integer),
        _ if is_integer_type(part) => Some(DataType::Integer),
        _ => None,
    });
    types.next().unwrap_or(DataType::Integer)
}

/// The generations for which [`Operation::preserves_destination_bits`] returns `true`.
fn preserves_destination_bits(name: &str, class: Class) -> Since {
    if name.starts_with("s_cmov") || name.starts_with("s_bitset") {
        return Since::Always;
    }
    if matches!(class, Class::Vmem | Class::Lds) {
        let loads = name.contains("_load_") || name.starts_with("ds_read_");
        let is_odd = !name.ends_with("_xy") && !name.ends_with("_xyzw");
        return if name.contains("_d16") && loads && is_odd { Since::Gfx9 } else { Since::Never };
    }
    // Results of one or two bytes whose position `op_sel` selects.
    const PARTIAL: [&str; 10] = [
        "v_ashr_pk_",
        "v_cvt_pk_fp8_",
        "v_cvt_pk_bf8_",
        "v_cvt_sr_",
        "v_cvt_scalef32_f16_",
        "v_cvt_scalef32_pk_fp",
        "v_cvt_scalef32_pk_bf8_",
        "v_cvt_scalef32_sr_fp8_",
        "v_cvt_scalef32_sr_bf8_",
        "v_cvt_scalef32_sr_pk_fp4_",
    ];
    let is_pair = name.starts_with("v_cvt_sr_pk_");
    if class == Class::Valu && !is_pair && PARTIAL.iter().any(|prefix| name.starts_with(prefix)) {
        return Since::Gfx9;
    }
    // Two 8-bit integers in a register half, which LLVM treats as a separate register from gfx11 on.
    if name.starts_with("v_sat_pk") {
        return Since::Gfx11;
    }
    // Comparisons, sums and interpolations whose result is wider than their elements.
    const WIDER: [&str; 3] = ["v_cmp", "v_sad_", "v_interp_p10_"];
    let is_wider = WIDER.iter().any(|prefix| name.starts_with(prefix));
    if class != Class::Valu || is_wider || name.contains("_pk") {
        return Since::Never;
    }
    let result = name
        .split('_')
        .find(|part| matches!(*part, "f16" | "bf16" | "f32" | "f64") || is_integer_type(part));
    if !matches!(result, Some("f16" | "bf16" | "i16" | "u16" | "b16")) {
        return Since::Never;
    }
    const SINCE_GFX9: [&str; 12] = [
        "v_bitop3_b16",
        "v_mad_",
        "v_madak_",
        "v_madmk_",
        "v_fma_",
        "v_div_fixup_",
        "v_interp_p2_",
        "v_add_i16",
        "v_sub_i16",
        "v_med3_",
        "v_min3_",
        "v_max3_",
    ];
    let is_since_gfx9 = SINCE_GFX9.iter().any(|prefix| name.starts_with(prefix));
    if is_since_gfx9 && !name.contains("_legacy_") { Since::Gfx9 } else { Since::Gfx10 }
}

/// The unit that executes an operation, from the prefix and, for scalar operations, the verb.
fn class_of(name: &str) -> Class {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if begins(&["v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"]) {
        Class::Matrix
    } else if begins(&["exp", "lds_param_", "ds_param_"])
        || begins(&["v_interp_"]) && !begins(&INTERPOLATES_IN_QUADS)
    {
        Class::Graphics
    } else if begins(&["v_"]) {
        Class::Valu
    } else if begins(&["ds_", "lds_"]) {
        Class::Lds
    } else if begins(&VMEM) {
        Class::Vmem
    } else if begins(&["image_"]) {
        Class::Image
    } else if begins(&SMEM) {
        Class::Smem
    } else if begins(&BRANCH) {
        Class::Branch
    } else if begins(&["s_barrier", "s_get_barrier_", "s_wakeup_barrier"]) {
        Class::Barrier
    } else if begins(&WAIT) {
        Class::Wait
    } else if begins(&MESSAGE) {
        Class::Message
    } else {
        Class::Salu
    }
}

/// Interpolation with the parameters in the registers of a quad of lanes (gfx11 and later), which is
/// ordinary vector arithmetic.
const INTERPOLATES_IN_QUADS: [&str; 4] =
    ["v_interp_p10_", "v_interp_p2_f32_inreg", "v_interp_p2_f16_f32", "v_interp_p2_rtz_f16_f32"];

/// Scalar memory: loads, stores, atomics and scalar cache maintenance.
const SMEM: [&str; 11] = [
    "s_load_",
    "s_store_",
    "s_buffer_",
    "s_scratch_",
    "s_atomic_",
    "s_dcache_",
    "s_gl1_inv",
    "s_memtime",
    "s_memrealtime",
    "s_atc_probe",
    "s_prefetch_",
];

/// Vector memory, including tensor moves between memory and LDS.
const VMEM: [&str; 7] =
    ["buffer_", "tbuffer_", "flat_", "global_", "scratch_", "cluster_load_", "tensor_"];

const BRANCH: [&str; 9] = [
    "s_add_pc_",
    "s_branch",
    "s_cbranch_",
    "s_call_",
    "s_setpc_",
    "s_swappc_",
    "s_rfe_",
    "s_endpgm",
    "s_subvector_loop_",
];

const WAIT: [&str; 11] = [
    "s_wait",
    "s_nop",
    "s_delay_alu",
    "s_setprio",
    "s_sleep",
    "s_clause",
    "s_inst_prefetch",
    "s_singleuse_vdst",
    "s_version",
    "s_icache_inv",
    "s_code_end",
];

const MESSAGE: [&str; 8] = [
    "s_sendmsg",
    "s_trap",
    "s_sethalt",
    "s_setkill",
    "s_ttracedata",
    "s_incperflevel",
    "s_decperflevel",
    "s_wakeup",
];

/// Returns `true` for integer types in names: `u32`, `i16`, `b64`, `u8`, `i4`, `iu8`, `ubyte0`.
fn is_integer_type(part: &str) -> bool {
    let digits = part.trim_start_matches(['i', 'u', 'b']);
    part.starts_with("ubyte")
        || (digits.len() < part.len()
            && matches!(digits, "1" | "4" | "8" | "16" | "24" | "32" | "64"))
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

/// The unit that executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Vector arithmetic, including moves to and from AccVGPRs.
    Valu,
    /// Matrix arithmetic (MFMA, WMMA).
    Matrix,
    /// Scalar arithmetic.
    Salu,
    /// Scalar memory.
    Smem,
    /// Vector memory: buffer, flat, global, scratch.
    Vmem,
    /// Local data share.
    Lds,
    /// Branches, calls, returns and the end of the program.
    Branch,
    /// Waits, nops, delays, priorities and clauses.
    Wait,
    /// Barriers.
    Barrier,
    /// Messages and traps.
    Message,
    /// Image operations.
    Image,
    /// Exports and interpolation.
    Graphics,
}

/// The element type of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DataType {
    F16,
    Bf16,
    F32,
    F64,
    /// Integers and untyped bits of any width.
    Integer,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_determines_class() {
        for (name, class) in [
            ("v_add_f32", Class::Valu),
            ("v_accvgpr_read_b32", Class::Valu),
            ("v_readlane_b32", Class::Valu),
            ("v_mfma_f32_32x32x1f32", Class::Matrix),
            ("v_wmma_f32_16x16x16_f16", Class::Matrix),
            ("s_add_u32", Class::Salu),
            ("s_getpc_b64", Class::Salu),
            ("s_setreg_b32", Class::Salu),
            ("s_load_dwordx2", Class::Smem),
            ("s_buffer_load_dword", Class::Smem),
            ("s_memtime", Class::Smem),
            ("global_load_dword", Class::Vmem),
            ("buffer_wbl2", Class::Vmem),
            ("tbuffer_load_format_x", Class::Vmem),
            ("ds_bpermute_b32", Class::Lds),
            ("s_cbranch_execz", Class::Branch),
            ("s_setpc_b64", Class::Branch),
            ("s_endpgm", Class::Branch),
            ("s_waitcnt", Class::Wait),
            ("s_nop", Class::Wait),
            ("s_setprio", Class::Wait),
            ("s_barrier", Class::Barrier),
            ("s_barrier_wait", Class::Barrier),
            ("s_sendmsg", Class::Message),
            ("s_trap", Class::Message),
            ("image_load", Class::Image),
            ("v_interp_p1_f32", Class::Graphics),
            ("v_interp_p2_f32", Class::Graphics),
            ("v_interp_p2_f32_inreg", Class::Valu),
            ("v_interp_p10_f16_f32", Class::Valu),
            ("exp", Class::Graphics),
        ] {
            assert_eq!(Operation::named(name).class(), class, "{name}");
        }
    }

    #[test]
    fn data_type_is_the_result_type() {
        for (name, data_type) in [
            ("v_cvt_f32_f64", DataType::F32),
            ("v_cvt_i32_f64", DataType::Integer),
            ("v_cvt_f32_ubyte0", DataType::F32),
            ("v_cvt_pkrtz_f16_f32", DataType::F16),
            ("v_cvt_pk_fp8_f32", DataType::Integer),
            ("v_fma_f64", DataType::F64),
            ("v_cmp_lt_f64", DataType::F64),
            ("v_cmp_class_f32", DataType::F32),
            ("v_pk_fma_f16", DataType::F16),
            ("v_fma_mixlo_f16", DataType::F16),
            ("v_mfma_f32_32x32x4bf16_1k", DataType::F32),
            ("v_mfma_i32_32x32x4i8", DataType::Integer),
            ("v_dot2_f32_f16", DataType::F32),
            ("v_frexp_exp_i32_f32", DataType::Integer),
            ("v_add_u32", DataType::Integer),
            ("v_cndmask_b32", DataType::Integer),
            ("ds_read_b32", DataType::Integer),
            ("ds_add_f32", DataType::F32),
            ("global_load_dword", DataType::Integer),
            ("global_atomic_add_f64", DataType::F64),
            ("global_atomic_pk_add_bf16", DataType::Bf16),
            ("s_mov_b64", DataType::Integer),
            ("s_endpgm", DataType::Integer),
        ] {
            assert_eq!(Operation::named(name).data_type(), data_type, "{name}");
        }
    }
}
