//! Hooks: C functions compiled to code that can be inserted anywhere.
//!
//! [`HookCompiler::read`] reads a source for a target. [`Signature::call`] lowers a call at an instruction to
//! an [`EntryPoint`] and the values of its inputs; calls that need the same code share an entry point.
//! [`HookCompiler::compile`] compiles entry points to [`Body`]s, and [`Body::instantiate`] returns the code
//! with other registers.

mod address;
mod argument;
mod body;
mod channel;
mod clang;
mod compiler;
mod data;
mod error;
mod flow;
mod group;
mod instantiate;
mod lower;
mod object;
mod rename;
mod self_contained;
mod signature;
mod variables;
mod wrapper;
mod wrapper_inst;

#[cfg(test)]
mod tests;

pub use argument::{
    Argument, ArgumentShape, EntryPoint, EntryValue, Form, InputValue, LoweredCall,
};
pub use channel::{Channel, ChannelError, Record};
pub use clang::{clang_major, clang_path, clang_version};
pub use compiler::{CompiledHooks, HEADER, HookCompiler, HookSource, Source, c_string, digest};
pub use data::{DataPointer, HookData, HookSymbol};
pub use error::HookError;
pub use instantiate::Assembler;
pub use rename::Renaming;
pub use self_contained::is_self_contained;
pub use signature::{CType, Declarations, Parameter, Signature, TypeKind};
pub use variables::{VariableError, Variables};

use flipwave_isa::{Inst, RegisterRange, RegisterSet};

/// Registers in which a parameter or a result of a hook is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passing {
    /// This number of SGPRs: one value for the wave.
    Scalar(u8),
    /// This number of VGPRs: a value for each lane.
    Vector(u8),
}

impl Passing {
    /// Registers in which the values of `range` are passed.
    pub fn of(range: RegisterRange) -> Passing {
        if range.first.is_per_lane() {
            Passing::Vector(range.words)
        } else {
            Passing::Scalar(range.words)
        }
    }

    /// Number of registers.
    pub fn words(self) -> u8 {
        match self {
            Passing::Scalar(words) | Passing::Vector(words) => words,
        }
    }
}

/// Lanes in which a hook runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mask {
    /// The active lanes of the instruction.
    #[default]
    Guest,
    /// One lane, regardless of EXEC: the hook runs once per wave.
    Single,
    /// All lanes; results are written in the active lanes of the instruction.
    Whole,
    /// All lanes; results are written in all lanes.
    All,
}

/// A register file that hooks access by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexedFile {
    /// VGPRs.
    Vgpr,
    /// AccVGPRs.
    AccVgpr,
    /// SGPRs.
    Sgpr,
}

/// An access to a register of the kernel whose number is known only when the hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexedAccess {
    /// `true` for a write, `false` for a read.
    pub writes: bool,
    /// The register file.
    pub file: IndexedFile,
    /// Scalar register with the number.
    pub index: RegisterRange,
    /// Destination of a read, or source of a write: a VGPR, or an SGPR for SGPRs.
    pub value: RegisterRange,
}

/// An instruction of a compiled hook.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyInst {
    /// A position-independent instruction.
    Inst {
        /// The decoded instruction.
        inst: Box<Inst>,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A branch within the body.
    Branch {
        /// The decoded instruction.
        inst: Box<Inst>,
        /// The instruction word with a zero offset.
        word: u32,
        /// Index of the target; the number of instructions for the end.
        to: usize,
    },
    /// Loads the address of a byte of the hook's data with `s_getpc_b64`, `s_add_u32`, `s_addc_u32`, which
    /// clobber SCC.
    Address {
        /// The destination pair.
        destination: RegisterRange,
        /// Offset in the hook's data.
        offset: u64,
    },
    /// An access to a register of the kernel by number, which the engine expands.
    Indexed(IndexedAccess),
}

/// Registers of a body that must stay consecutive when they are renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterGroup {
    /// The registers in the body.
    pub range: RegisterRange,
    /// Alignment of the first register's new number.
    pub alignment: u8,
}

/// A hook as machine code without calls, stack and returns; control leaves at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Its instructions.
    pub instructions: Vec<BodyInst>,
    /// Registers of its inputs. Each input that is read is in one group; others are in none.
    pub inputs: Vec<RegisterRange>,
    /// Registers of its outputs, each in one group.
    pub outputs: Vec<RegisterRange>,
    /// Groups of the VGPRs, AccVGPRs and SGPRs that it names, which may be renamed.
    pub groups: Vec<RegisterGroup>,
    /// Registers that it writes, including SCC, VCC, EXEC, M0 and MODE.
    pub writes: RegisterSet,
    /// Special registers that it reads before writing them, such as EXEC and MODE.
    pub reads: RegisterSet,
    /// `true` if it may enable lanes that are inactive at its start.
    pub widens_exec: bool,
}
