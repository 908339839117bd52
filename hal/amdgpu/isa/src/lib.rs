//! What an AMDGPU instruction is: targets, registers, decoding and assembling.
//!
//! # What is LLVM's
//!
//! LLVM decodes and assembles, through the C++ of `shim/mc.cpp`. What is taken from its tables by
//! number or by name, because the headers that define it are not installed, stands in one place each,
//! and tests pin it against known instructions:
//!
//! - the bits of `TSFlags` that say the format (`decode.rs`);
//! - the numbers of operand types (`constant.rs`, and two of them in the shim);
//! - names of registers and their suffixes by generation (`mc_register.rs`);
//! - what printed text looks like (`text.rs`).
//!
//! For another LLVM the version changes in `Cargo.toml` (`llvm-sys`), `build.rs`, `dependencies.sh` and
//! where programs are named (`llc-22`). From 19 to 22 the operand types were renumbered, processors
//! that were never sold went, and the tests of this crate found the rest: the disassembler crashes where
//! a literal lies beyond what it may look at (the shim lets it look at more), 16-bit operands are named
//! as halves of registers, literals that look like constants are printed as `lit(...)`, `M0` as the
//! result of `v_readfirstlane_b32` is called invalid, and hazards were added.

mod banks;
mod cache;
mod canonical;
pub mod chip_bug;
pub mod clause;
mod coherence;
mod constant;
mod control;
pub mod counter;
mod decode;
pub mod dual;
mod exact;
mod exec;
mod ffi;
pub mod hazard;
mod inst;
mod isa;
mod lane;
mod mc_register;
mod memory;
mod memory_operand;
pub mod message;
mod opcode;
mod operation;
mod register;
mod register_set;
mod residency;
mod rules;
mod source;
mod survived;
mod target;
#[cfg(test)]
mod testing;
mod text;
mod unified;
mod unused;

pub use banks::VgprBanks;
pub use chip_bug::ChipBug;
pub use constant::ConstantType;
pub use control::Control;
pub use exec::{ExecChange, LanesWritten};
pub use ffi::SubtargetFeature;
pub use inst::{
    BufferFormat, Dpp, DppControl, Encoding, Flags, Half, Inst, InstWords, Modifiers, Operand,
    OutputScale, Pc, Role, Sdwa, SdwaSelect, SdwaUnused, Value,
};
pub use isa::{AssembleError, DecodeError, Isa, IsaError};
pub use lane::{Lane, LaneMask};
pub use memory::{MemoryAccess, MemoryKind, MemorySpace};
pub use memory_operand::MemoryOperand;
pub use opcode::{Family, Opcode};
pub use operation::{Class, DataType, Operation};
pub use register::{AccVgpr, Register, RegisterRange, Sgpr, Ttmp, UnknownRegister, Vgpr};
pub use register_set::RegisterSet;
pub use residency::{Allocation, Residency, ResidencyLimit};
pub use rules::Rules;
pub use target::{AccVgprs, FlatScratch, Float8, Generation, Setting, Target, UnknownTarget};
