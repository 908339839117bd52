//! The tree of a module.

mod declaration;
mod module;
mod operand;
mod statement;

pub use declaration::{
    Attribute, Declaration, Declarator, Initializer, Linkage, Parameter, PointerHint, ValueType,
};
pub use module::{
    Alias, File, Function, FunctionKind, Item, ItemKind, Module, Performance, Section,
    SectionEntry, SectionValue, Times,
};
pub use operand::{Binary, Expression, Operand, Unary};
pub use statement::{
    Block, Guard, InlinedAt, Instruction, Location, Prototype, Statement, StatementKind,
};

/// A name of a register, variable, function or label.
pub type Name = Box<str>;
