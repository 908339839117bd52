//! Facts about operations that LLVM's descriptions do not name: the canonical name, the class,
//! the data type, the memory space and width. All derive from the mnemonic, whose parts are
//! the ISA manuals' own naming scheme.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, OnceLock};

/// An operation under its canonical name: the gfx9 mnemonic without the encoding suffix.
/// `v_add_f32_e64`, `v_add_f32_dpp` and `v_add_f32` are one operation, `global_load_b32`
/// (gfx11) and `global_load_dword` are one operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(&'static str);

impl Operation {
    /// The operation of a canonical name.
    pub fn named(name: &str) -> Operation {
        static NAMES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
        let mut names = match NAMES.get_or_init(Default::default).lock() {
            Ok(names) => names,
            Err(poisoned) => poisoned.into_inner(),
        };
        if let Some(known) = names.get(name) {
            return Operation(known);
        }
        // The names come from LLVM's finite opcode tables, so what is kept is bounded.
        let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
        names.insert(kept);
        Operation(kept)
    }

    /// The operation of a printed mnemonic.
    pub(crate) fn of_mnemonic(mnemonic: &str) -> Operation {
        const SUFFIXES: [&str; 8] =
            ["_e64_dpp8", "_e64_dpp", "_e32_dpp", "_dpp8", "_dpp", "_sdwa", "_e64", "_e32"];
        let name = SUFFIXES.iter().find_map(|suffix| mnemonic.strip_suffix(suffix));
        Operation::named(name.unwrap_or(mnemonic))
    }

    /// Whether a DS operation takes an address or a size from M0 on every generation.
    pub(crate) fn addresses_through_m0(self) -> bool {
        let name = self.0;
        name.contains("addtid")
            || ["ds_append", "ds_consume", "ds_gws_", "ds_ordered_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
    }

    /// The canonical name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The unit an instruction runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Vector arithmetic.
    Valu,
    /// Matrix arithmetic (MFMA, WMMA) and moves to and from AccVGPRs stay with VALU.
    Matrix,
    /// Scalar arithmetic.
    Salu,
    /// Scalar memory.
    Smem,
    /// Vector memory: buffer, flat, global, scratch.
    Vmem,
    /// Local data share.
    Lds,
    /// Branches, calls, returns, the end of the program.
    Branch,
    /// Wait counters, nops, delays, priorities, clauses.
    Wait,
    /// Workgroup barrier.
    Barrier,
    /// Messages and traps.
    Message,
    /// Image operations.
    Image,
    /// Exports and interpolation.
    Graphics,
}

/// Element type an operation computes in.
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

/// Where a memory instruction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemorySpace {
    /// Buffer resource.
    Buffer,
    /// Generic address: the aperture decides.
    Flat,
    /// Global memory.
    Global,
    /// Private memory of a lane.
    Scratch,
    /// Scalar loads and stores.
    Scalar,
    /// Local data share.
    Lds,
}

/// What a memory instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Reads memory into registers.
    Load,
    /// Writes registers to memory.
    Store,
    /// Reads and writes in one step.
    Atomic,
}

/// The memory side of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryAccess {
    /// Address space.
    pub space: MemorySpace,
    /// Load, store or atomic.
    pub kind: MemoryKind,
    /// Bytes per lane (per wave for scalar accesses).
    pub bytes: u8,
}
