//! AMDGPU instructions: targets, registers, decoding and assembling.
//!
//! # Dependence on LLVM
//!
//! LLVM decodes and assembles, through the C++ shim `shim/mc.cpp`. Some of its tables are used by number
//! or by name because the headers that define them are not installed. Each of these dependences is confined
//! to one place, and tests check it against known instructions:
//!
//! - the bits of `TSFlags` that give the instruction format (`decode.rs`);
//! - the numbers of operand types (`constant.rs`; two of them also in the shim);
//! - register names and their generation suffixes (`mc_register.rs`);
//! - the syntax of printed instructions (`text.rs`).
//!
//! To move to another LLVM, change the version in `Cargo.toml` (`llvm-sys`), `build.rs`, `dependencies.sh`
//! and wherever an LLVM program is named (`llc-22`). Differences found from LLVM 19 to 22: operand types
//! were renumbered; processors that were never sold were removed; the disassembler crashes if a literal lies
//! beyond the bytes it may read (the shim lets it read more); 16-bit operands are named as halves of
//! registers; literals with the bits of an inline constant are printed as `lit(...)`; `M0` as the
//! result of `v_readfirstlane_b32` is flagged as invalid; and hazards were added. The tests of this crate
//! found all but the first two.

mod asm_check;
mod cache;
mod canonical;
pub mod chip_bug;
pub mod clause;
mod coherence;
mod constant;
mod control;
pub mod counter;
mod decode;
mod exact;
mod exec;
mod facts;
mod ffi;
pub mod hazard;
mod inst;
mod isa;
mod llvm_crashes;
mod matrix_shape;
mod mc_register;
mod memory;
mod memory_operand;
pub mod message;
mod opcode;
mod operation;
mod register;
mod register_classes;
mod register_set;
mod residency;
mod rules;
mod target;
#[cfg(test)]
mod testing;
mod text;
mod unused_fields;
mod vgpr_alias;
mod vgpr_msb;
pub mod vopd;

pub use chip_bug::ChipBug;
pub use constant::ConstantType;
pub use control::Control;
pub use exec::{ExecChange, LanesWritten};
pub use ffi::SubtargetFeature;
pub use flipwave_arch::{Float8, Lane, LaneMask, Pc};
pub use inst::{
    BufferFormat, Dpp, DppControl, Encoding, Flags, Inst, InstWords, Modifiers, Operand,
    OutputScale, Role, ScaleFormat, Sdwa, SdwaSelect, SdwaUnused, Value,
};
pub use isa::{AssembleError, DecodeError, Isa, IsaError};
pub use memory::{MemoryAccess, MemoryKind, MemorySpace};
pub use memory_operand::MemoryOperand;
pub use opcode::{Family, Opcode};
pub use operation::{Class, DataType, Operation};
pub use register::{AccVgpr, Half, Register, RegisterRange, Sgpr, Ttmp, UnknownRegister, Vgpr};
pub use register_set::RegisterSet;
pub use residency::{Allocation, Residency, ResidencyLimit, WorkgroupShape};
pub use rules::Rules;
pub use target::{AccVgprs, FlatScratch, Generation, Setting, Target, UnknownTarget};
pub use vgpr_msb::VgprMsb;
