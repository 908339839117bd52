//! Operands and expressions as text.

use super::join;
use crate::{Expression, Operand};
use std::fmt::{Display, Formatter, Result};

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let enclosed = |f: &mut Formatter<'_>, parts: &[Operand], [open, close]: [&str; 2]| {
            f.write_str(open)?;
            join(f, parts, ", ")?;
            f.write_str(close)
        };
        match self {
            Operand::Value(value) => value.fmt(f),
            Operand::Member { register, member } => write!(f, "{register}.{member}"),
            Operand::Vector(parts) => enclosed(f, parts, ["{", "}"]),
            Operand::Address(parts) => enclosed(f, parts, ["[", "]"]),
            Operand::Element { array, index } => write!(f, "{array}[{index}]"),
            Operand::Pair(pair) => write!(f, "{}|{}", pair[0], pair[1]),
            Operand::List(parts) => enclosed(f, parts, ["(", ")"]),
        }
    }
}

/// An expression inside another one.
struct Inner<'a>(&'a Expression);

impl Display for Inner<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.0 {
            Expression::Number(_)
            | Expression::Symbol(_)
            | Expression::Call(..)
            | Expression::Mask(..) => self.0.fmt(f),
            _ => write!(f, "({})", self.0),
        }
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Expression::Number(number) => number.fmt(f),
            Expression::Symbol(name) => f.write_str(name),
            Expression::Unary(operator, operand) => {
                write!(f, "{}{}", operator.symbol(), Inner(operand))
            }
            Expression::Binary(operator, operands) => {
                // `a%b` would be read as two names.
                let space = if operator.symbol() == "%" { " " } else { "" };
                let [left, right] = &**operands;
                // The common form of an offset: `a+-8`.
                let right: &dyn Display = match right {
                    Expression::Unary(_, operand) if matches!(**operand, Expression::Number(_)) => {
                        right
                    }
                    _ => &Inner(right),
                };
                write!(f, "{}{space}{}{space}{right}", Inner(left), operator.symbol())
            }
            Expression::Select(parts) => {
                let [condition, first, second] = &**parts;
                write!(f, "{} ? {} : {}", Inner(condition), Inner(first), Inner(second))
            }
            Expression::Cast(kind, operand) => write!(f, "({kind}){}", Inner(operand)),
            Expression::Mask(mask, address) => write!(f, "{mask}({address})"),
            Expression::Call(name, arguments) => {
                write!(f, "{name}(")?;
                join(f, arguments, ", ")?;
                f.write_str(")")
            }
        }
    }
}
