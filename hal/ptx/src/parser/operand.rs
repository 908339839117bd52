//! Operands of instructions.

use super::cursor::Cursor;
use super::expression::{Operators, expression};
use crate::lexer::Token;
use crate::{Expression, Operand, ParseError};

pub(super) fn operand(cursor: &mut Cursor<'_>) -> Result<Operand, ParseError> {
    let first = cursor.nested(single)?;
    if !cursor.accept("|")? {
        return Ok(first);
    }
    let second = cursor.nested(single)?;
    Ok(Operand::Pair(Box::new([first, second])))
}

fn single(cursor: &mut Cursor<'_>) -> Result<Operand, ParseError> {
    match cursor.peek() {
        Token::Symbol("{") => cursor.enclosed(["{", "}"], operand).map(Operand::Vector),
        Token::Symbol("[") => {
            let parts = cursor.enclosed(["[", "]"], |cursor| cursor.nested(single))?;
            Ok(Operand::Address(parts))
        }
        _ => value(cursor),
    }
}

/// An expression, a member of a register, or an element of an array.
fn value(cursor: &mut Cursor<'_>) -> Result<Operand, ParseError> {
    let value = expression(cursor, Operators::WithoutOr)?;
    let Expression::Symbol(name) = value else { return Ok(Operand::Value(value)) };
    if let Token::Dotted(member) = cursor.peek() {
        cursor.advance()?;
        return Ok(Operand::Member { register: name, member: member.into() });
    }
    if cursor.accept("[")? {
        let index = expression(cursor, Operators::All)?;
        cursor.expect("]")?;
        return Ok(Operand::Element { array: name, index });
    }
    Ok(Operand::Value(Expression::Symbol(name)))
}

/// An operand of a call, which may be a list.
pub(super) fn call_operand(cursor: &mut Cursor<'_>) -> Result<Operand, ParseError> {
    if cursor.is("(") {
        return cursor.enclosed(["(", ")"], operand).map(Operand::List);
    }
    operand(cursor)
}
