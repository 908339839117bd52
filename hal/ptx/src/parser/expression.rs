//! Constant expressions (PTX ISA, "Constant Expressions").

use super::cursor::Cursor;
use crate::lexer::Token;
use crate::{Binary, Expression, MAX_DEPTH, ParseError, ParseErrorKind, ScalarType, Unary};

/// Operators that an expression may contain at its outermost level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operators {
    /// All operators.
    All,
    /// No `|`, which separates the halves of a pair.
    WithoutOr,
}

pub(super) fn expression(
    cursor: &mut Cursor<'_>,
    operators: Operators,
) -> Result<Expression, ParseError> {
    let condition = binary(cursor, 1, operators)?;
    if !cursor.accept("?")? {
        return Ok(condition);
    }
    cursor.nested(|cursor| {
        let first = expression(cursor, Operators::All)?;
        cursor.expect(":")?;
        let second = expression(cursor, operators)?;
        Ok(Expression::Select(Box::new([condition, first, second])))
    })
}

/// Operations with a precedence of at least `lowest`.
fn binary(
    cursor: &mut Cursor<'_>,
    lowest: u8,
    operators: Operators,
) -> Result<Expression, ParseError> {
    let mut left = unary(cursor)?;
    let mut length = 0;
    loop {
        let Token::Symbol(symbol) = cursor.peek() else { return Ok(left) };
        let known = Binary::ALL.iter().find(|(_, known, _)| *known == symbol);
        let Some((operator, _, precedence)) = known.filter(|(_, _, known)| *known >= lowest) else {
            return Ok(left);
        };
        if operators == Operators::WithoutOr && *operator == Binary::Or {
            return Ok(left);
        }
        // A chain of operators is a tree as deep as the chain is long.
        length += 1;
        if cursor.depth() + length > MAX_DEPTH {
            return Err(cursor.error(ParseErrorKind::Depth));
        }
        cursor.advance()?;
        let right = cursor.nested(|cursor| binary(cursor, precedence + 1, operators))?;
        left = Expression::Binary(*operator, Box::new([left, right]));
    }
}

fn unary(cursor: &mut Cursor<'_>) -> Result<Expression, ParseError> {
    if let Token::Symbol(symbol) = cursor.peek()
        && let Some((operator, _)) = Unary::ALL.iter().find(|(_, known)| *known == symbol)
    {
        cursor.advance()?;
        let operand = cursor.nested(unary)?;
        return Ok(Expression::Unary(*operator, Box::new(operand)));
    }
    primary(cursor)
}

fn primary(cursor: &mut Cursor<'_>) -> Result<Expression, ParseError> {
    match cursor.peek() {
        Token::Number(_) => {
            let number = cursor.number()?;
            if !cursor.is("(") {
                return Ok(Expression::Number(number));
            }
            cursor.nested(|cursor| {
                cursor.advance()?;
                let address = expression(cursor, Operators::All)?;
                cursor.expect(")")?;
                Ok(Expression::Mask(number, Box::new(address)))
            })
        }
        Token::Word(name) => {
            cursor.advance()?;
            if !cursor.is("(") {
                return Ok(Expression::Symbol(name.into()));
            }
            let arguments = cursor.nested(|cursor| {
                cursor.enclosed(["(", ")"], |cursor| expression(cursor, Operators::All))
            })?;
            Ok(Expression::Call(name.into(), arguments))
        }
        Token::Symbol("(") => cursor.nested(|cursor| {
            cursor.advance()?;
            if let Token::Dotted(name) = cursor.peek() {
                let unknown = cursor.error(ParseErrorKind::Type(name.into()));
                let kind = ScalarType::parse(name).ok_or(unknown)?;
                cursor.advance()?;
                cursor.expect(")")?;
                return Ok(Expression::Cast(kind, Box::new(unary(cursor)?)));
            }
            let inner = expression(cursor, Operators::All)?;
            cursor.expect(")")?;
            Ok(inner)
        }),
        _ => Err(cursor.unexpected("an operand")),
    }
}
