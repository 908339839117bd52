//! Keeps away from LLVM's assembler what it does not survive or what is no instruction.
//!
//! Directives reach the file system (`.incbin`) or run without bound (`.rept`). On strings and
//! comments that do not end, and on characters that no instruction has, the parser can loop for
//! ever.

use crate::AssembleError;

/// # Errors
/// The first thing in `text` that must not reach LLVM.
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
                4 + end.ok_or_else(|| refuse(text, at, "the comment does not end"))?
            }
            b'"' => {
                let end = rest[1..line(rest)].iter().position(|byte| *byte == b'"');
                2 + end.ok_or_else(|| refuse(text, at, "the string does not end on its line"))?
            }
            b'.' if begins_directive(bytes, at) => return Err(refuse(text, at, DIRECTIVE)),
            _ if is_allowed(byte) => 1,
            _ => return Err(refuse(text, at, "no instruction has this character")),
        };
    }
    Ok(())
}

const DIRECTIVE: &str = "a directive is not an instruction; only instructions and labels whose \
                         names do not begin with a dot are assembled";

/// Bytes up to the end of the line.
fn line(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// In instructions, dots stand within numbers and after names only.
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

fn refuse(text: &str, at: usize, message: &str) -> AssembleError {
    let before = &text.as_bytes()[..at];
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    AssembleError { line: lines as u32 + 1, column: column as u32 + 1, message: message.to_owned() }
}
