//! Statements of functions.

use super::cursor::Cursor;
use super::declaration::{declaration, parameter};
use super::module::{performance, pragma};
use super::operand::{call_operand, operand};
use crate::lexer::Token;
use crate::{
    Block, Guard, InlinedAt, Instruction, Location, Name, ParseError, Prototype, Space, Statement,
    StatementKind,
};

/// Statements between braces.
pub(super) fn block(cursor: &mut Cursor<'_>) -> Result<Block, ParseError> {
    cursor.nested(|cursor| {
        cursor.expect("{")?;
        let mut statements = Vec::new();
        while !cursor.accept("}")? {
            // An empty statement.
            if !cursor.accept(";")? {
                statements.push(statement(cursor)?);
            }
        }
        Ok(Block { statements })
    })
}

fn statement(cursor: &mut Cursor<'_>) -> Result<Statement, ParseError> {
    let position = cursor.position();
    let kind = match cursor.peek() {
        Token::Symbol("{") => StatementKind::Block(block(cursor)?),
        Token::Dotted("loc") => StatementKind::Location(Box::new(location(cursor)?)),
        Token::Dotted("pragma") => StatementKind::Pragma(pragma(cursor)?),
        Token::Dotted(name) if Space::parse(name).is_some() => {
            StatementKind::Declaration(Box::new(declaration(cursor, None)?))
        }
        Token::Symbol("@") => instruction(cursor)?,
        Token::Word(name) if cursor.second()? == Token::Symbol(":") => {
            cursor.advance()?;
            cursor.advance()?;
            labelled(cursor, name.into())?
        }
        Token::Word(_) => instruction(cursor)?,
        _ => return Err(cursor.unexpected("a statement or `}`")),
    };
    Ok(Statement { position, kind })
}

/// A label, and the table of targets or prototype that it names.
fn labelled(cursor: &mut Cursor<'_>, label: Name) -> Result<StatementKind, ParseError> {
    if cursor.accept_dotted("callprototype")? {
        return prototype(cursor, label).map(|found| StatementKind::Prototype(Box::new(found)));
    }
    if cursor.accept_dotted("calltargets")? {
        let functions = cursor.list(|cursor| cursor.name("the name of a function"))?;
        cursor.expect(";")?;
        return Ok(StatementKind::CallTargets { label, functions });
    }
    if cursor.accept_dotted("branchtargets")? {
        let targets = cursor.list(|cursor| cursor.name("a label"))?;
        cursor.expect(";")?;
        return Ok(StatementKind::BranchTargets { label, targets });
    }
    Ok(StatementKind::Label(label))
}

fn prototype(cursor: &mut Cursor<'_>, label: Name) -> Result<Prototype, ParseError> {
    let results = if cursor.is("(") { cursor.enclosed(["(", ")"], parameter)? } else { Vec::new() };
    let name = cursor.name("`_`")?;
    let parameters =
        if cursor.is("(") { cursor.enclosed(["(", ")"], parameter)? } else { Vec::new() };
    let mut directives = Vec::new();
    while let Token::Dotted(_) = cursor.peek() {
        directives.push(performance(cursor)?);
    }
    cursor.expect(";")?;
    Ok(Prototype { label, results, name, parameters, directives })
}

fn location(cursor: &mut Cursor<'_>) -> Result<Location, ParseError> {
    cursor.advance()?;
    let [file, line, column] = [cursor.integer()?, cursor.integer()?, cursor.integer()?];
    let inlined = if cursor.accept(",")? { Some(inlined(cursor)?) } else { None };
    Ok(Location { file, line, column, inlined })
}

/// `function_name label [+ offset], inlined_at file line column`.
fn inlined(cursor: &mut Cursor<'_>) -> Result<InlinedAt, ParseError> {
    keyword(cursor, "function_name", "`function_name`")?;
    let function = cursor.name("the label of a function's name")?;
    let offset = if cursor.accept("+")? { Some(cursor.integer()?) } else { None };
    cursor.expect(",")?;
    keyword(cursor, "inlined_at", "`inlined_at`")?;
    let [file, line, column] = [cursor.integer()?, cursor.integer()?, cursor.integer()?];
    Ok(InlinedAt { function, offset, file, line, column })
}

fn keyword(
    cursor: &mut Cursor<'_>,
    keyword: &str,
    expected: &'static str,
) -> Result<(), ParseError> {
    if cursor.peek() != Token::Word(keyword) {
        return Err(cursor.unexpected(expected));
    }
    cursor.advance().map(drop)
}

fn guard(cursor: &mut Cursor<'_>) -> Result<Option<Guard>, ParseError> {
    if !cursor.accept("@")? {
        return Ok(None);
    }
    let is_negated = cursor.accept("!")?;
    let register = cursor.name("a predicate register")?;
    Ok(Some(Guard { register, is_negated }))
}

fn instruction(cursor: &mut Cursor<'_>) -> Result<StatementKind, ParseError> {
    let guard = guard(cursor)?;
    let mut name = cursor.word("an opcode")?.to_owned();
    while let Token::Dotted(modifier) = cursor.peek() {
        name.push('.');
        name.push_str(modifier);
        cursor.advance()?;
    }
    let is_call = name == "call" || name.starts_with("call.");
    let operands = if cursor.is(";") {
        Vec::new()
    } else {
        cursor.list(if is_call { call_operand } else { operand })?
    };
    cursor.expect(";")?;
    Ok(StatementKind::Instruction(Box::new(Instruction { guard, name: name.into(), operands })))
}
