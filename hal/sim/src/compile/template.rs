//! IR templates with abbreviations, in which the tables define operations.
//!
//! Arguments are `%a`, `%b`, `%c` and `%d`. Results are `%r` and `%s`: one bit per lane of a vector
//! operation, SCC of a scalar one. Other names are local to the template. In vector operations, `W`
//! is the type of a word per lane, `D` of two words, `F` and `E` of floating-point numbers of one
//! word and of two, `M` of a bit per lane, and `#31` is 31 in all lanes.

use super::value::{Shape, Value};
use std::fmt::Write;

/// Expands a template with these arguments. `number` is unique among the expansions in the
/// function; [`Value::Result`] of `number` names the result.
pub fn expand(code: &mut String, template: &str, arguments: &[Value], number: u32, shape: Shape) {
    for line in template.lines() {
        code.push_str("  ");
        for (index, token) in Tokens(line).enumerate() {
            let _ = match token {
                "%a" | "%b" | "%c" | "%d" if index > 0 => {
                    let argument = usize::from(token.as_bytes()[1] - b'a');
                    match arguments.get(argument) {
                        Some(value) => write!(code, "{value}"),
                        None => write!(code, "poison"),
                    }
                }
                "W" | "D" | "F" | "E" | "M" => write!(code, "{}", shape.named(token)),
                _ if token.starts_with('@') => write_name(code, token, shape),
                _ if token.starts_with('%') => write!(code, "{token}.{number}"),
                _ if token.starts_with('#') => write!(code, "splat (i32 {})", &token[1..]),
                _ => write!(code, "{token}"),
            };
        }
        code.push('\n');
    }
}

/// Writes the name of an intrinsic, whose types are abbreviated, too.
fn write_name(code: &mut String, name: &str, shape: Shape) -> std::fmt::Result {
    for (index, part) in name.split('.').enumerate() {
        let dot = if index == 0 { "" } else { "." };
        let lanes = shape.lanes();
        match part {
            "W" => write!(code, "{dot}v{lanes}i32")?,
            "D" => write!(code, "{dot}v{lanes}i64")?,
            "F" => write!(code, "{dot}v{lanes}f32")?,
            "E" => write!(code, "{dot}v{lanes}f64")?,
            part => write!(code, "{dot}{part}")?,
        }
    }
    Ok(())
}

/// Iterator over a line's words and the characters between them.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "%#._@-".contains(c);
        let first = self.0.chars().next()?;
        let end = self.0.find(|c| is_word(c) != is_word(first)).unwrap_or(self.0.len());
        let (token, remaining) = self.0.split_at(end);
        self.0 = remaining;
        Some(token)
    }
}
