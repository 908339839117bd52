//! Hooks, compiled from C to code that can be inserted anywhere.
//!
//! [`HookCompiler::read`] reads a source for a target. [`Signature::call`] makes an [`EntryPoint`]
//! of a function with its arguments at a site, and says what goes into each input; sites that
//! need the same code share one. [`HookCompiler::compile`] makes a [`Body`] of each entry point,
//! and [`Body::instantiate`] gives its code with other registers.

mod address;
mod alone;
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
pub mod library;
mod lower;
mod object;
mod rename;
mod signature;
mod variables;
mod wrapper;
mod wrapper_inst;

#[cfg(test)]
mod tests;

pub use alone::stands_alone;
pub use argument::{
    Argument, ArgumentShape, EntryPoint, EntryValue, Form, InputValue, LoweredCall,
};
pub use channel::{Channel, ChannelError, Record};
pub use clang::{clang_major, clang_path, clang_version};
pub use compiler::{CompiledHooks, HEADER, HookCompiler, HookSource, Source};
pub use data::{DataPointer, HookData, HookSymbol};
pub use error::HookError;
pub use instantiate::Assembler;
pub use rename::Renaming;
pub use signature::{CType, Parameter, Signature, TypeKind};
pub use variables::{VariableError, Variables};

use flipwave_isa::{Inst, RegisterRange, RegisterSet};

/// What a parameter or a result of a hook takes: scalar registers or vector registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passing {
    /// This number of SGPRs: one value for the wave.
    Scalar(u8),
    /// This number of VGPRs: a value for each lane.
    Vector(u8),
}

impl Passing {
    /// What registers are passed in.
    pub fn of(range: RegisterRange) -> Passing {
        match range.first.is_per_lane() {
            true => Passing::Vector(range.words),
            false => Passing::Scalar(range.words),
        }
    }

    /// How many registers.
    pub fn words(self) -> u8 {
        match self {
            Passing::Scalar(words) | Passing::Vector(words) => words,
        }
    }
}

/// The lanes that a hook runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mask {
    /// Those that the instruction runs on.
    #[default]
    Guest,
    /// One, whatever EXEC is: the hook runs once per wave.
    Single,
    /// All of the wave; results go to those that the instruction runs on.
    Whole,
    /// All of the wave, and results go to all of them.
    All,
}

/// A file of registers that hooks reach by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexedFile {
    /// VGPRs.
    Vgpr,
    /// AccVGPRs.
    AccVgpr,
    /// SGPRs.
    Sgpr,
}

/// An access to a register of the kernel whose number is known when the hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexedAccess {
    /// Written, rather than read.
    pub writes: bool,
    /// The file.
    pub file: IndexedFile,
    /// Scalar register that has the number.
    pub index: RegisterRange,
    /// Where a value read goes, or a value to be written comes from: a VGPR, for SGPRs an SGPR.
    pub value: RegisterRange,
}

/// An instruction of a compiled hook.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyInst {
    /// An instruction without PC-relative meaning.
    Inst {
        /// Decoded.
        inst: Box<Inst>,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A branch within the body.
    Branch {
        /// Decoded.
        inst: Box<Inst>,
        /// The instruction's word, its offset field zero.
        word: u32,
        /// Index of the instruction it goes to; the number of instructions for the end.
        to: usize,
    },
    /// The address of a byte of the hook's data, into the pair that begins at `destination`;
    /// stands for `s_getpc_b64`, `s_add_u32`, `s_addc_u32` and writes SCC.
    Address {
        /// The pair.
        destination: RegisterRange,
        /// Offset from the beginning of the hook's data.
        offset: u64,
    },
    /// An access to a register of the kernel by number; the engine puts code in its place.
    Indexed(IndexedAccess),
}

/// Registers of a body that must stay neighbours when they are renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterGroup {
    /// The registers, as the body names them.
    pub range: RegisterRange,
    /// The first register's new number must be a multiple of this.
    pub alignment: u8,
}

/// A hook as machine code: no call, no stack, no return; control leaves at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Its instructions.
    pub instructions: Vec<BodyInst>,
    /// Where it expects its inputs, in order. Each lies in one group; one that lies in none is not
    /// read.
    pub inputs: Vec<RegisterRange>,
    /// Where it leaves its outputs, in order, each in one group.
    pub outputs: Vec<RegisterRange>,
    /// The VGPRs, AccVGPRs and SGPRs that it names, in groups; each may be renamed.
    pub groups: Vec<RegisterGroup>,
    /// Everything it writes, as it names it, SCC, VCC, EXEC, M0 and MODE included.
    pub writes: RegisterSet,
    /// What it reads that it has not written before, other than VGPRs, AccVGPRs and SGPRs: EXEC,
    /// MODE and the like.
    pub reads: RegisterSet,
    /// Whether it may enable lanes that EXEC masks when it begins.
    pub widens_exec: bool,
}
