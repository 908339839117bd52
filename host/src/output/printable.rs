//! Text of others as people see it.
//!
//! Names of kernels, ranges and files may hold anything, also what a terminal takes for commands, what
//! looks like another line, or what shows the text after it in another order.

use std::borrow::Cow;
use std::fmt::Write;

/// Text on one line: control characters, line ends among them, are escaped as in `\x1b` and `\n`.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// Text of any number of lines: all other control characters are escaped.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |own| is_unsafe(own) && !matches!(own, '\n' | '\t'))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for own in text.chars() {
        match own {
            own if !is_escaped(own) => shown.push(own),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            // Writing to a string cannot fail.
            own if own.is_ascii() => drop(write!(shown, "\\x{:02x}", u32::from(own))),
            own => drop(write!(shown, "\\u{{{:x}}}", u32::from(own))),
        }
    }
    Cow::Owned(shown)
}

/// Control characters, line and paragraph separators, and what changes the direction of text.
fn is_unsafe(own: char) -> bool {
    own.is_control()
        || matches!(own, '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
        || ('\u{202a}'..='\u{202e}').contains(&own)
        || ('\u{2066}'..='\u{2069}').contains(&own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_text_is_not() {
        let name = "a\x1b[2J\nb\t\u{9b}31m\r\u{202e}c\x7f";
        assert_eq!(shown(name), "a\\x1b[2J\\nb\\t\\u{9b}31m\\r\\u{202e}c\\x7f");
        assert_eq!(shown_lines(name), "a\\x1b[2J\nb\t\\u{9b}31m\\r\\u{202e}c\\x7f");
        for text in ["scale(float*, float)", "größe \"x\" 'y' \\z", ""] {
            assert!(matches!(shown(text), Cow::Borrowed(own) if own == text));
        }
    }
}
