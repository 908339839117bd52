//! Calls of hooks and the places where they are inserted.

use flipwave_arch::{RegisterId, SourceLine};
use flipwave_ptx::{Form, FunctionCode, Inst, Register};

/// A library of an [`Instrumentation`](crate::Instrumentation), by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LibraryIndex(pub usize);

/// Place of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// When the function with this number in [`Code::functions`](flipwave_ptx::Code) is entered.
    Entry(usize),
    /// Before the instruction with this number in [`Code::instructions`](flipwave_ptx::Code).
    Before(usize),
    /// After an instruction; after a call, when it has returned.
    After(usize),
    /// In place of an instruction, which is removed.
    Instead(usize),
    /// Where the last instruction of a function is followed by its end.
    End(usize),
}

/// Lanes that execute a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// Lanes that execute the instruction: those whose guard is true.
    #[default]
    Executing,
    /// All lanes that reach the instruction, whatever its guard is.
    Active,
    /// All lanes that reach the instruction run the hook. Those that execute the instruction receive its results.
    Reaching,
}

/// An argument of a hook. Shorter values are extended with zeros.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The value of a register.
    Register(Register),
    /// A word of the registers, a predicate (0 or 1) or the carry.
    Word(RegisterId),
    /// Two words, the low one first.
    Words(RegisterId, RegisterId),
    /// The value of the operand with this number: a register, a constant, an address or a special register.
    Operand(usize),
    /// The address that the instruction accesses, in its state space.
    Address,
    /// 1 in lanes whose guard is true, and in all lanes of instructions without guard. After an instruction,
    /// the guard that it was executed with.
    Guard,
    /// The address of the instruction in the original code.
    Pc,
    /// A number.
    Constant(u64),
    /// A special register, for example `%ctaid.x`.
    Special(&'static str),
}

/// Place of a hook's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A register, permanently.
    Register(Register),
    /// A word of the registers, a predicate (true unless the result is 0) or the carry, permanently.
    Word(RegisterId),
    /// Two words, the low one first, permanently.
    Words(RegisterId, RegisterId),
    /// A word as the instruction reads it. The register itself keeps its value.
    ReadWord(RegisterId),
    /// Two words as the instruction reads them.
    ReadWords(RegisterId, RegisterId),
    /// The decision of a conditional branch, in place of its guard: bit 0 is set in lanes that take the branch, bit
    /// 1 in lanes that take it on a path of their own, after the others have been separated from them.
    Decision,
}

impl Place {
    /// Returns `true` if the result replaces what the instruction reads.
    pub(crate) fn is_read(self) -> bool {
        self.is_read_word() || self == Place::Decision
    }

    /// Returns `true` if the result replaces a word that the instruction reads.
    pub(crate) fn is_read_word(self) -> bool {
        matches!(self, Place::ReadWord(_) | Place::ReadWords(..))
    }
}

/// A call of a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookCall {
    /// The library.
    pub library: LibraryIndex,
    /// Name of the function.
    pub function: String,
    /// The arguments.
    pub arguments: Vec<Argument>,
    /// Places of the results, in order; empty to ignore them.
    pub results: Vec<Place>,
    /// Lanes that execute the call.
    pub lanes: Lanes,
}

/// An instruction of the original code, for predicates that select instructions.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Number of the instruction.
    pub number: usize,
    /// The instruction.
    pub inst: &'a Inst,
    /// The function that contains it.
    pub function: &'a FunctionCode,
    /// The source line, if known.
    pub line: Option<&'a SourceLine>,
}

impl<'a> Site<'a> {
    /// Opcode and modifiers, from which class, types, state space and size of the access follow.
    pub fn form(&self) -> &'a Form {
        &self.inst.form
    }

    /// Returns `true` if lanes never continue with the next instruction: hooks cannot run after it.
    pub fn leaves(&self) -> bool {
        matches!(self.form().opcode(), "bra" | "brx" | "ret" | "exit" | "trap")
    }
}
