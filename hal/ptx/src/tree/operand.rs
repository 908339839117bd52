//! Operands and constant expressions.

use super::Name;
use crate::{Number, ScalarType};

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register, a symbol, a label, a number or a constant expression.
    Value(Expression),
    /// An element of a vector register, or a part of a register: `%tid.x`, `%r1.b0`.
    Member {
        /// The register.
        register: Name,
        /// Name of the part.
        member: Name,
    },
    /// `{%r1, %r2}`.
    Vector(Vec<Operand>),
    /// `[base+offset]`; with more parts for textures and tensors: `[tex, {%f1, %f2}]`.
    Address(Vec<Operand>),
    /// `array[3]`.
    Element {
        /// The array.
        array: Name,
        /// The index.
        index: Expression,
    },
    /// `%p1|%p2`.
    Pair(Box<[Operand; 2]>),
    /// `(%r1, %r2)` of a call.
    List(Vec<Operand>),
}

impl Operand {
    /// A register, symbol or label.
    pub fn symbol(name: &str) -> Operand {
        Operand::Value(Expression::Symbol(name.into()))
    }

    /// The name, if the operand is a symbol and nothing else.
    pub fn as_symbol(&self) -> Option<&str> {
        match self {
            Operand::Value(Expression::Symbol(name)) => Some(name),
            _ => None,
        }
    }
}

/// A constant expression, or the sum of a register and a constant in an address.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A literal.
    Number(Number),
    /// A name.
    Symbol(Name),
    /// An operation with one operand.
    Unary(Unary, Box<Expression>),
    /// An operation with two operands.
    Binary(Binary, Box<[Expression; 2]>),
    /// `condition ? a : b`.
    Select(Box<[Expression; 3]>),
    /// A conversion: `(.s64) a`.
    Cast(ScalarType, Box<Expression>),
    /// An operator on a symbol in an initializer: `generic(x)`.
    Call(Name, Vec<Expression>),
    /// Bytes of an address in an initializer: `0xFF00(x)` is its second byte.
    Mask(Number, Box<Expression>),
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Unary {
    Plus,
    Minus,
    Not,
    Complement,
}

impl Unary {
    /// The operators.
    pub const ALL: [(Unary, &'static str); 4] =
        [(Unary::Plus, "+"), (Unary::Minus, "-"), (Unary::Not, "!"), (Unary::Complement, "~")];

    /// The operator in the text.
    pub fn symbol(self) -> &'static str {
        Unary::ALL[self as usize].1
    }
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Binary {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Equal,
    Unequal,
    And,
    Xor,
    Or,
    LogicalAnd,
    LogicalOr,
}

impl Binary {
    /// The operators with their precedence; higher binds tighter (PTX ISA, "Operator Precedence").
    pub const ALL: [(Binary, &'static str, u8); 18] = [
        (Binary::Multiply, "*", 10),
        (Binary::Divide, "/", 10),
        (Binary::Remainder, "%", 10),
        (Binary::Add, "+", 9),
        (Binary::Subtract, "-", 9),
        (Binary::ShiftLeft, "<<", 8),
        (Binary::ShiftRight, ">>", 8),
        (Binary::Less, "<", 7),
        (Binary::Greater, ">", 7),
        (Binary::LessEqual, "<=", 7),
        (Binary::GreaterEqual, ">=", 7),
        (Binary::Equal, "==", 6),
        (Binary::Unequal, "!=", 6),
        (Binary::And, "&", 5),
        (Binary::Xor, "^", 4),
        (Binary::Or, "|", 3),
        (Binary::LogicalAnd, "&&", 2),
        (Binary::LogicalOr, "||", 1),
    ];

    /// The operator in the text.
    pub fn symbol(self) -> &'static str {
        Binary::ALL[self as usize].1
    }
}
