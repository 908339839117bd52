//! Modules: directives, variables and functions.

use super::cursor::Cursor;
use super::declaration::{attribute, declaration, parameter};
use super::statement::block;
use crate::lexer::Token;
use crate::{
    Alias, File, Function, FunctionKind, Item, ItemKind, Linkage, Module, Name, ParseError,
    ParseErrorKind, Performance, Section, SectionEntry, SectionValue, Space, Times,
};

pub(super) fn module(cursor: &mut Cursor<'_>) -> Result<Module, ParseError> {
    if cursor.peek() != Token::Dotted("version") {
        return Err(cursor.error(ParseErrorKind::NoVersion(cursor.peek().describe())));
    }
    let mut items = Vec::new();
    while cursor.peek() != Token::End {
        // An empty statement.
        if cursor.accept(";")? {
            continue;
        }
        let position = cursor.position();
        items.push(Item { position, kind: item(cursor)? });
    }
    Ok(Module { items })
}

fn item(cursor: &mut Cursor<'_>) -> Result<ItemKind, ParseError> {
    const EXPECTED: &str = "a directive, a variable or a function";
    let Token::Dotted(name) = cursor.peek() else { return Err(cursor.unexpected(EXPECTED)) };
    match name {
        "version" => version(cursor),
        "target" => {
            cursor.advance()?;
            cursor.list(|cursor| cursor.name("a target like sm_80")).map(ItemKind::Target)
        }
        "address_size" => {
            cursor.advance()?;
            cursor.small().map(ItemKind::AddressSize)
        }
        "file" => file(cursor).map(ItemKind::File),
        "section" => section(cursor).map(ItemKind::Section),
        "pragma" => pragma(cursor).map(ItemKind::Pragma),
        "alias" => {
            cursor.advance()?;
            let name = cursor.name("a name")?;
            cursor.expect(",")?;
            let function = cursor.name("the name of a function")?;
            cursor.expect(";")?;
            Ok(ItemKind::Alias(Alias { name, function }))
        }
        _ => {
            let linkage = linkage(cursor)?;
            match cursor.peek() {
                Token::Dotted("entry" | "func") => {
                    function(cursor, linkage).map(|found| ItemKind::Function(Box::new(found)))
                }
                Token::Dotted(name) if Space::parse(name).is_some() => {
                    declaration(cursor, linkage).map(|found| ItemKind::Variable(Box::new(found)))
                }
                _ => Err(cursor.unexpected(EXPECTED)),
            }
        }
    }
}

fn version(cursor: &mut Cursor<'_>) -> Result<ItemKind, ParseError> {
    cursor.advance()?;
    let Token::Number(text) = cursor.peek() else {
        return Err(cursor.unexpected("a version like 8.0"));
    };
    let parts = text.split_once('.');
    let parsed = parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let (major, minor) = parsed.ok_or_else(|| cursor.unexpected("a version like 8.0"))?;
    cursor.advance()?;
    Ok(ItemKind::Version { major, minor })
}

fn file(cursor: &mut Cursor<'_>) -> Result<File, ParseError> {
    cursor.advance()?;
    let number = cursor.integer()?;
    let path = cursor.text()?;
    let times = if cursor.accept(",")? {
        let modified = cursor.integer()?;
        cursor.expect(",")?;
        Some(Times { modified, bytes: cursor.integer()? })
    } else {
        None
    };
    Ok(File { number, path, times })
}

pub(super) fn pragma(cursor: &mut Cursor<'_>) -> Result<Vec<Name>, ParseError> {
    cursor.advance()?;
    let texts = cursor.list(Cursor::text)?;
    cursor.expect(";")?;
    Ok(texts)
}

fn linkage(cursor: &mut Cursor<'_>) -> Result<Option<Linkage>, ParseError> {
    let linkage = match cursor.peek() {
        Token::Dotted("extern") => Linkage::Extern,
        Token::Dotted("visible") => Linkage::Visible,
        Token::Dotted("weak") => Linkage::Weak,
        Token::Dotted("common") => Linkage::Common,
        _ => return Ok(None),
    };
    cursor.advance()?;
    Ok(Some(linkage))
}

fn section(cursor: &mut Cursor<'_>) -> Result<Section, ParseError> {
    cursor.advance()?;
    let Token::Dotted(name) = cursor.peek() else {
        return Err(cursor.unexpected("the name of a section, like .debug_info"));
    };
    cursor.advance()?;
    cursor.expect("{")?;
    let mut entries = Vec::new();
    while !cursor.accept("}")? {
        entries.push(match cursor.peek() {
            Token::Dotted(kind) => {
                cursor.advance()?;
                let values = cursor.list(section_value)?;
                SectionEntry::Values { kind: kind.into(), values }
            }
            Token::Word(label) => {
                cursor.advance()?;
                cursor.expect(":")?;
                SectionEntry::Label(label.into())
            }
            _ => return Err(cursor.unexpected("values like .b32 1, a label, or `}`")),
        });
    }
    Ok(Section { name: name.into(), entries })
}

fn section_value(cursor: &mut Cursor<'_>) -> Result<SectionValue, ParseError> {
    let name: Name = match cursor.peek() {
        Token::Word(name) => name.into(),
        Token::Dotted(name) => format!(".{name}").into(),
        _ => return signed(cursor).map(SectionValue::Integer),
    };
    cursor.advance()?;
    if cursor.accept("+")? {
        let offset = signed(cursor)?;
        return Ok(SectionValue::Symbol { name, offset });
    }
    if cursor.accept("-")? {
        return match cursor.peek() {
            Token::Word(start) => {
                cursor.advance()?;
                Ok(SectionValue::Difference { end: name, start: start.into() })
            }
            _ => signed(cursor).map(|offset| SectionValue::Symbol { name, offset: -offset }),
        };
    }
    Ok(SectionValue::Symbol { name, offset: 0 })
}

fn signed(cursor: &mut Cursor<'_>) -> Result<i128, ParseError> {
    let is_negative = cursor.accept("-")?;
    let value = i128::from(cursor.integer()?);
    Ok(if is_negative { -value } else { value })
}

fn function(cursor: &mut Cursor<'_>, linkage: Option<Linkage>) -> Result<Function, ParseError> {
    let is_entry = cursor.advance()? == Token::Dotted("entry");
    let kind = if is_entry { FunctionKind::Entry } else { FunctionKind::Device };
    let mut attributes = Vec::new();
    while cursor.accept_dotted("attribute")? {
        attributes.extend(cursor.enclosed(["(", ")"], attribute)?);
    }
    let results = if cursor.is("(") { cursor.enclosed(["(", ")"], parameter)? } else { Vec::new() };
    let position = cursor.position();
    let name = cursor.name("the name of a function")?;
    let parameters =
        if cursor.is("(") { Some(cursor.enclosed(["(", ")"], parameter)?) } else { None };
    let mut directives = Vec::new();
    while let Token::Dotted(_) = cursor.peek() {
        directives.push(performance(cursor)?);
    }
    let body = if cursor.accept(";")? {
        None
    } else if cursor.is("{") {
        Some(block(cursor)?)
    } else {
        return Err(cursor.unexpected("a performance directive, `;` or `{`"));
    };
    Ok(Function {
        position,
        linkage,
        kind,
        attributes,
        results,
        name,
        parameters,
        directives,
        body,
    })
}

/// A directive between the parameters and the code of a function.
pub(super) fn performance(cursor: &mut Cursor<'_>) -> Result<Performance, ParseError> {
    let Token::Dotted(name) = cursor.peek() else { return Err(cursor.unexpected("a directive")) };
    if name == "pragma" {
        return pragma(cursor).map(Performance::Pragma);
    }
    cursor.advance()?;
    let values = if let Token::Number(_) = cursor.peek() {
        cursor.list(Cursor::integer)?
    } else {
        Vec::new()
    };
    Ok(Performance::Numbers { name: name.into(), values })
}
