//! Rejects text that LLVM's assembler must not see.
//!
//! Directives access the file system (`.incbin`) or run without bound (`.rept`). On unterminated
//! strings and comments, and on characters that occur in no instruction, LLVM's parser can loop
//! forever.

use crate::AssembleError;

/// Checks that `text` contains only instructions, labels and comments.
///
/// # Errors
/// The first directive, unterminated string or comment, or invalid character.
pub(crate) fn check(text: &str) -> Result<(), AssembleError> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &text.as_bytes()[at..];
        at += match byte {
            b';' => line(rest),
            b'/' if rest.starts_with(b"//") => line(rest),
            b'/' if rest.starts_with(b"/*") => {
                let end = rest[2..].windows(2).position(|pair| pair == b"*/");
                4 + end.ok_or_else(|| reject(text, at, "unterminated comment"))?
            }
            b'"' => {
                let end = rest[1..line(rest)].iter().position(|byte| *byte == b'"');
                2 + end.ok_or_else(|| reject(text, at, "unterminated string"))?
            }
            b'.' if begins_directive(bytes, at) => return Err(reject(text, at, DIRECTIVE)),
            _ if is_allowed(byte) => 1,
            _ => return Err(reject(text, at, "invalid character")),
        };
    }
    Ok(())
}

const DIRECTIVE: &str = "directives are not supported; use instructions and labels without a \
                         leading dot only";

/// Number of bytes before the end of the line.
fn line(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// Returns `true` if the dot at index `at` starts a directive. In instructions, dots occur only inside
/// numbers and after names.
fn begins_directive(bytes: &[u8], at: usize) -> bool {
    let continues_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    let number = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    !number && !before.is_some_and(continues_name)
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || byte.is_ascii_whitespace()
        || b"_.,:[]()|&~^+-*/%<>=!".contains(&byte)
}

fn reject(text: &str, at: usize, message: &str) -> AssembleError {
    let before = &text.as_bytes()[..at];
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    AssembleError { line: lines as u32 + 1, column: column as u32 + 1, message: message.to_owned() }
}
