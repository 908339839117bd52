//! Parser of modules.

mod cursor;
mod declaration;
mod expression;
mod module;
mod operand;
mod statement;

use crate::{Module, ParseError};

/// Parses the text of a module.
///
/// # Errors
/// The first invalid token, with its position.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    let mut cursor = cursor::Cursor::new(text)?;
    module::module(&mut cursor)
}

#[cfg(test)]
mod tests;
