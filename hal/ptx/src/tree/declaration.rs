//! Declarations of variables and parameters.

use super::{Expression, Name};
use crate::{Position, ScalarType, Space};

/// Linkage of a symbol (PTX ISA, "Linking Directives").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Linkage {
    Extern,
    Visible,
    Weak,
    Common,
}

impl Linkage {
    /// The directive, without the dot.
    pub fn name(self) -> &'static str {
        match self {
            Linkage::Extern => "extern",
            Linkage::Visible => "visible",
            Linkage::Weak => "weak",
            Linkage::Common => "common",
        }
    }
}

/// An attribute, such as `.managed` or `.unified(19, 95)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// The name, without the dot.
    pub name: Name,
    /// The arguments.
    pub arguments: Vec<u64>,
}

/// Type of a variable: `.v4 .f32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// Type of an element.
    pub scalar: ScalarType,
    /// Number of elements of a vector; 1 for scalars.
    pub elements: u8,
}

impl ValueType {
    /// Size in bytes.
    pub fn bytes(self) -> u64 {
        self.scalar.bytes() * u64::from(self.elements)
    }
}

/// A declaration of one or more variables of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Linkage of the names.
    pub linkage: Option<Linkage>,
    /// The state space.
    pub space: Space,
    /// Number of a constant bank: `.const[2]`.
    pub bank: Option<u64>,
    /// Attributes.
    pub attributes: Vec<Attribute>,
    /// Alignment in bytes.
    pub alignment: Option<u64>,
    /// Type of each variable, or of an array's elements.
    pub kind: ValueType,
    /// The variables.
    pub declarators: Vec<Declarator>,
}

/// A variable in a declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Declarator {
    /// Position of the name.
    pub position: Position,
    /// The name.
    pub name: Name,
    /// Number of variables with this name as prefix: `%r<100>` declares `%r0` to `%r99`.
    pub count: Option<u64>,
    /// Dimensions of an array; `None` for an unknown size.
    pub dimensions: Vec<Option<u64>>,
    /// The initial value.
    pub initializer: Option<Initializer>,
}

/// The initial value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Initializer {
    /// A value.
    Value(Expression),
    /// Values of an array or a vector.
    List(Vec<Initializer>),
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Position of the first token.
    pub position: Position,
    /// `.param` or `.reg`.
    pub space: Space,
    /// Alignment in bytes.
    pub alignment: Option<u64>,
    /// The type.
    pub kind: ValueType,
    /// Facts about the memory that a pointer refers to.
    pub pointer: Option<PointerHint>,
    /// The name; `_` in prototypes.
    pub name: Name,
    /// Dimensions of an array; `None` for an unknown size.
    pub dimensions: Vec<Option<u64>>,
}

/// `.ptr`: facts about the memory that a kernel parameter refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerHint {
    /// The state space.
    pub space: Option<Space>,
    /// Alignment in bytes.
    pub alignment: Option<u64>,
}
