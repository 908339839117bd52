//! Escaping of untrusted text for terminals.
//!
//! Names of kernels, ranges and files may contain anything: commands of a terminal, line ends, or
//! characters that change the order of the text after them.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes text for one line: control characters and line ends become `\x1b` and `\n`, for example.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, is_unsafe)
}

/// Escapes text of any number of lines: line ends and tabs stay, other control characters are
/// escaped.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| is_unsafe(character) && !matches!(character, '\n' | '\t'))
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        let code = u32::from(character);
        match character {
            _ if !is_escaped(character) => escaped.push(character),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            // Writing to a string cannot fail.
            _ if character.is_ascii() => drop(write!(escaped, "\\x{code:02x}")),
            _ => drop(write!(escaped, "\\u{{{code:x}}}")),
        }
    }
    Cow::Owned(escaped)
}

/// Returns `true` for control characters, line and paragraph separators, and characters that change
/// the direction of text.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
        || ('\u{202a}'..='\u{202e}').contains(&character)
        || ('\u{2066}'..='\u{2069}').contains(&character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_text_is_not() {
        let name = "a\x1b[2J\nb\t\u{9b}31m\r\u{202e}c\x7f";
        assert_eq!(printable(name), "a\\x1b[2J\\nb\\t\\u{9b}31m\\r\\u{202e}c\\x7f");
        assert_eq!(printable_lines(name), "a\\x1b[2J\nb\t\\u{9b}31m\\r\\u{202e}c\\x7f");
        for text in ["scale(float*, float)", "größe \"x\" 'y' \\z", ""] {
            assert!(matches!(printable(text), Cow::Borrowed(unchanged) if unchanged == text));
        }
    }
}
