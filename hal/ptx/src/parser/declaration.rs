//! Declarations of variables and parameters.

use super::cursor::Cursor;
use super::expression::{Operators, expression};
use crate::lexer::Token;
use crate::{
    Attribute, Declaration, Declarator, Initializer, Linkage, Parameter, ParseError,
    ParseErrorKind, PointerHint, ScalarType, Space, ValueType,
};

/// Parts of a declaration before the name.
#[derive(Default)]
struct Specifiers {
    attributes: Vec<Attribute>,
    alignment: Option<u64>,
    elements: Option<u8>,
    scalar: Option<ScalarType>,
    pointer: Option<PointerHint>,
}

/// A declaration after its linkage; the next token is the state space.
pub(super) fn declaration(
    cursor: &mut Cursor<'_>,
    linkage: Option<Linkage>,
) -> Result<Declaration, ParseError> {
    let space = space(cursor)?;
    let bank = if space == Space::Const && cursor.accept("[")? {
        let bank = cursor.integer()?;
        cursor.expect("]")?;
        Some(bank)
    } else {
        None
    };
    let Specifiers { attributes, alignment, elements, scalar, .. } = specifiers(cursor)?;
    let kind = value_type(cursor, elements, scalar)?;
    let declarators = cursor.list(declarator)?;
    cursor.expect(";")?;
    Ok(Declaration { linkage, space, bank, attributes, alignment, kind, declarators })
}

/// A parameter of a function.
pub(super) fn parameter(cursor: &mut Cursor<'_>) -> Result<Parameter, ParseError> {
    let position = cursor.position();
    let space = space(cursor)?;
    let Specifiers { alignment, elements, scalar, pointer, .. } = specifiers(cursor)?;
    let kind = value_type(cursor, elements, scalar)?;
    let name = cursor.name("the name of a parameter")?;
    let dimensions = dimensions(cursor)?;
    Ok(Parameter { position, space, alignment, kind, pointer, name, dimensions })
}

fn space(cursor: &mut Cursor<'_>) -> Result<Space, ParseError> {
    let Token::Dotted(name) = cursor.peek() else {
        return Err(cursor.unexpected("a state space like .reg or .param"));
    };
    let unexpected = cursor.unexpected("a state space like .reg or .param");
    let space = Space::parse(name).filter(|space| space.name() == name).ok_or(unexpected)?;
    cursor.advance()?;
    Ok(space)
}

fn specifiers(cursor: &mut Cursor<'_>) -> Result<Specifiers, ParseError> {
    let mut specifiers = Specifiers::default();
    while let Token::Dotted(name) = cursor.peek() {
        match name {
            "align" => {
                cursor.advance()?;
                let alignment = Some(cursor.integer()?);
                match &mut specifiers.pointer {
                    Some(pointer) => pointer.alignment = alignment,
                    None => specifiers.alignment = alignment,
                }
            }
            "attribute" => {
                cursor.advance()?;
                specifiers.attributes.extend(cursor.enclosed(["(", ")"], attribute)?);
            }
            "ptr" => {
                cursor.advance()?;
                specifiers.pointer = Some(PointerHint { space: None, alignment: None });
            }
            "v2" | "v4" | "v8" if specifiers.elements.is_none() => {
                cursor.advance()?;
                specifiers.elements = name[1..].parse().ok();
            }
            _ if specifiers.pointer.is_some() && Space::parse(name).is_some() => {
                cursor.advance()?;
                if let Some(pointer) = &mut specifiers.pointer {
                    pointer.space = Space::parse(name);
                }
            }
            _ => {
                let unknown = cursor.error(ParseErrorKind::Type(name.into()));
                let kind = ScalarType::parse(name).filter(|_| specifiers.scalar.is_none());
                specifiers.scalar = Some(kind.ok_or(unknown)?);
                cursor.advance()?;
            }
        }
    }
    Ok(specifiers)
}

fn value_type(
    cursor: &Cursor<'_>,
    elements: Option<u8>,
    scalar: Option<ScalarType>,
) -> Result<ValueType, ParseError> {
    let scalar =
        scalar.ok_or_else(|| cursor.unexpected("a type like .b32, .u64, .f32 or .pred"))?;
    Ok(ValueType { scalar, elements: elements.unwrap_or(1) })
}

/// An attribute inside `.attribute(...)`.
pub(super) fn attribute(cursor: &mut Cursor<'_>) -> Result<Attribute, ParseError> {
    let Token::Dotted(name) = cursor.peek() else {
        return Err(cursor.unexpected("an attribute like .managed"));
    };
    cursor.advance()?;
    let arguments =
        if cursor.is("(") { cursor.enclosed(["(", ")"], Cursor::integer)? } else { Vec::new() };
    Ok(Attribute { name: name.into(), arguments })
}

fn declarator(cursor: &mut Cursor<'_>) -> Result<Declarator, ParseError> {
    let position = cursor.position();
    let name = cursor.name("the name of a variable")?;
    let count = if cursor.accept("<")? {
        let count = cursor.integer()?;
        cursor.expect(">")?;
        Some(count)
    } else {
        None
    };
    let dimensions = dimensions(cursor)?;
    let initializer = if cursor.accept("=")? { Some(initializer(cursor)?) } else { None };
    Ok(Declarator { position, name, count, dimensions, initializer })
}

fn dimensions(cursor: &mut Cursor<'_>) -> Result<Vec<Option<u64>>, ParseError> {
    let mut dimensions = Vec::new();
    while cursor.accept("[")? {
        dimensions.push(if cursor.is("]") { None } else { Some(cursor.integer()?) });
        cursor.expect("]")?;
    }
    Ok(dimensions)
}

fn initializer(cursor: &mut Cursor<'_>) -> Result<Initializer, ParseError> {
    if cursor.is("{") {
        let all = cursor.nested(|cursor| cursor.enclosed(["{", "}"], initializer))?;
        return Ok(Initializer::List(all));
    }
    expression(cursor, Operators::All).map(Initializer::Value)
}
