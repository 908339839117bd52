//! What an AMDGPU instruction is: targets, registers, decoding and assembling.

mod canonical;
pub mod clause;
mod constant;
mod control;
pub mod counter;
mod decode;
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
mod target;
#[cfg(test)]
mod testing;
mod text;
mod unified;
mod unused;

pub use constant::ConstantType;
pub use control::Control;
pub use exec::{ExecChange, LanesWritten};
pub use inst::{
    BufferFormat, Dpp, DppControl, Encoding, Flags, Inst, Modifiers, Operand, OutputScale, Pc,
    Role, Sdwa, SdwaSelect, SdwaUnused, Value,
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
pub use target::{AccVgprs, FlatScratch, Generation, Setting, Target, UnknownTarget};
