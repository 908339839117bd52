//! Statements of functions.

use super::{Declaration, Name, Operand, Parameter, Performance};
use crate::Position;

/// Statements between braces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// The statements, in order.
    pub statements: Vec<Statement>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Position of the first token.
    pub position: Position,
    /// The statement.
    pub kind: StatementKind,
}

/// Kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    /// A label.
    Label(Name),
    /// An instruction.
    Instruction(Box<Instruction>),
    /// A declaration.
    Declaration(Box<Declaration>),
    /// A nested block.
    Block(Block),
    /// `.loc`: source line of the instructions that follow.
    Location(Box<Location>),
    /// `.pragma`.
    Pragma(Vec<Name>),
    /// `.callprototype` with its label.
    Prototype(Box<Prototype>),
    /// `.calltargets` with its label.
    #[allow(missing_docs)]
    CallTargets { label: Name, functions: Vec<Name> },
    /// `.branchtargets` with its label.
    #[allow(missing_docs)]
    BranchTargets { label: Name, targets: Vec<Name> },
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// The predicate.
    pub guard: Option<Guard>,
    /// Opcode and modifiers, separated by dots: `ld.global.v4.f32`.
    pub name: Name,
    /// The operands. An `_` is the symbol `_`.
    pub operands: Vec<Operand>,
}

impl Instruction {
    /// The name up to the first dot.
    pub fn opcode(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }

    /// The modifiers, without dots.
    pub fn modifiers(&self) -> impl Iterator<Item = &str> {
        self.name.split('.').skip(1)
    }
}

/// `@p` or `@!p`.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The predicate register.
    pub register: Name,
    /// `true` if lanes execute the instruction where the predicate is false.
    pub is_negated: bool,
}

/// `.loc`.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    /// Number of the file.
    pub file: u64,
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
    /// The call that was inlined here.
    pub inlined: Option<InlinedAt>,
}

/// `function_name` and `inlined_at` of `.loc`.
#[derive(Clone, Debug, PartialEq)]
pub struct InlinedAt {
    /// Label of the name of the inlined function.
    pub function: Name,
    /// Offset from the label in bytes.
    pub offset: Option<u64>,
    /// Number of the file with the call.
    pub file: u64,
    /// Line of the call.
    pub line: u64,
    /// Column of the call.
    pub column: u64,
}

/// `.callprototype`: type of an indirectly called function.
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype {
    /// The label.
    pub label: Name,
    /// Return parameters.
    pub results: Vec<Parameter>,
    /// The name, usually `_`.
    pub name: Name,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// Directives after the parameters.
    pub directives: Vec<Performance>,
}
