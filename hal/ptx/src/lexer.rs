//! Tokens of PTX (PTX ISA, "Syntax").

use crate::{ParseError, ParseErrorKind, Position};

/// A token. Names borrow the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// An identifier, such as `%r1`, `$L__BB0_1`, `add` or `_`.
    Word(&'a str),
    /// A dot and a name, without the dot: `global`, `L1::no_allocate`, `2d`.
    Dotted(&'a str),
    /// A literal that begins with a digit.
    Number(&'a str),
    /// The content of a string, without quotes; escape sequences are kept.
    Text(&'a str),
    /// One of `, ; : { } ( ) [ ] < > @ ! | + - * / % & ^ ~ ? = .`, or an operator of two characters.
    Symbol(&'a str),
    /// The end of the text.
    End,
}

impl Token<'_> {
    /// Text for error messages.
    pub fn describe(&self) -> String {
        let cut = |text: &str| text.chars().take(40).collect::<String>();
        match self {
            Token::Word(text) | Token::Number(text) | Token::Symbol(text) => {
                format!("`{}`", cut(text))
            }
            Token::Dotted(text) => format!("`.{}`", cut(text)),
            Token::Text(text) => format!("`\"{}\"`", cut(text)),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

/// Splits a text into tokens.
#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    position: Position,
}

/// Operators of two characters.
const PAIRS: [&str; 8] = ["<<", ">>", "<=", ">=", "==", "!=", "&&", "||"];

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { rest: text, position: Position { line: 1, column: 1 } }
    }

    /// The next token and its position.
    pub fn next(&mut self) -> Result<(Token<'a>, Position), ParseError> {
        self.skip_blanks()?;
        let start = self.position;
        let bytes = self.rest.as_bytes();
        let Some(&first) = bytes.first() else { return Ok((Token::End, start)) };
        let token = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' => Token::Word(self.take(self.name_at(0))),
            b'%' if self.name_at(1) > 0 => Token::Word(self.take(1 + self.name_at(1))),
            b'0'..=b'9' => Token::Number(self.take(self.number_length())),
            b'.' if self.dotted_length() > 0 => {
                let text = self.take(1 + self.dotted_length());
                Token::Dotted(&text[1..])
            }
            b'"' => self.string(start)?,
            _ if PAIRS.iter().any(|pair| self.rest.starts_with(pair)) => {
                Token::Symbol(self.take(2))
            }
            _ if b",;:{}()[]<>@!|+-*/%&^~?=.".contains(&first) => Token::Symbol(self.take(1)),
            _ => {
                let character = self.rest.chars().next().unwrap_or_default();
                return Err(error(start, ParseErrorKind::Character(character)));
            }
        };
        Ok((token, start))
    }

    /// Consumes `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        for character in taken.chars() {
            if character == '\n' {
                self.position.line = self.position.line.saturating_add(1);
                self.position.column = 1;
            } else {
                self.position.column = self.position.column.saturating_add(1);
            }
        }
        self.rest = rest;
        taken
    }

    fn skip_blanks(&mut self) -> Result<(), ParseError> {
        loop {
            let bytes = self.rest.as_bytes();
            let blanks =
                bytes.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0).count();
            if blanks > 0 {
                self.take(blanks);
            } else if bytes.starts_with(b"//") {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if bytes.starts_with(b"/*") {
                let start = self.position;
                let open = || error(start, ParseErrorKind::OpenComment);
                let length = self.rest[2..].find("*/").ok_or_else(open)?;
                self.take(length + 4);
            } else {
                return Ok(());
            }
        }
    }

    /// Length of the name characters that begin at an offset.
    fn name_at(&self, offset: usize) -> usize {
        let bytes = self.rest.as_bytes().iter().skip(offset);
        bytes.take_while(|byte| is_name(**byte)).count()
    }

    /// Length of the name after a dot, which may contain `::`.
    fn dotted_length(&self) -> usize {
        let bytes = self.rest.as_bytes();
        let mut length = self.name_at(1);
        while length > 0 && bytes[1 + length..].starts_with(b"::") && self.name_at(3 + length) > 0 {
            length += 2 + self.name_at(3 + length);
        }
        length
    }

    fn number_length(&self) -> usize {
        let bytes = self.rest.as_bytes();
        let word = self.name_at(0);
        let is_prefixed = bytes[0] == b'0' && bytes.get(1).is_some_and(u8::is_ascii_alphabetic);
        if is_prefixed {
            return word;
        }
        let digits =
            |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
        let mut length = digits(0);
        let has_fraction = bytes.get(length) == Some(&b'.') && digits(length + 1) > 0;
        if has_fraction {
            length += 1 + digits(length + 1);
        }
        if matches!(bytes.get(length), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
            if digits(length + 1 + sign) > 0 {
                length += 1 + sign + digits(length + 1 + sign);
            }
        }
        if has_fraction { length } else { length.max(word) }
    }

    fn string(&mut self, start: Position) -> Result<Token<'a>, ParseError> {
        let mut is_escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        let end = end.ok_or_else(|| error(start, ParseErrorKind::OpenString))?;
        let text = self.take(end + 2);
        Ok(Token::Text(&text[1..=end]))
    }
}

pub(crate) fn error(position: Position, kind: ParseErrorKind) -> ParseError {
    ParseError { position, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(Token<'_>, u32, u32)> {
        let mut lexer = Lexer::new(text);
        let mut all = Vec::new();
        loop {
            match lexer.next().expect("tokens") {
                (Token::End, _) => return all,
                (token, position) => all.push((token, position.line, position.column)),
            }
        }
    }

    #[test]
    fn tokens_have_their_positions() {
        let found =
            tokens("@!%p1 bra\t$L_1; // end\n/* x\n */ ld.global.L1::no_allocate [%rd1+-8];");
        use Token::{Dotted, Number, Symbol, Word};
        let expected = [
            (Symbol("@"), 1, 1),
            (Symbol("!"), 1, 2),
            (Word("%p1"), 1, 3),
            (Word("bra"), 1, 7),
            (Word("$L_1"), 1, 11),
            (Symbol(";"), 1, 15),
            (Word("ld"), 3, 5),
            (Dotted("global"), 3, 7),
            (Dotted("L1::no_allocate"), 3, 14),
            (Symbol("["), 3, 31),
            (Word("%rd1"), 3, 32),
            (Symbol("+"), 3, 36),
            (Symbol("-"), 3, 37),
            (Number("8"), 3, 38),
            (Symbol("]"), 3, 39),
            (Symbol(";"), 3, 40),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn numbers_are_single_tokens() {
        for text in [
            "0xffU",
            "0f3F800000",
            "0d3FF0000000000000",
            "12",
            "017",
            "0b11U",
            "1.5",
            "1e-3",
            "8.0",
        ] {
            assert_eq!(tokens(text), [(Token::Number(text), 1, 1)]);
        }
        assert_eq!(tokens("1.x").len(), 2);
    }

    #[test]
    fn invalid_text_is_reported_with_its_position() {
        let text = |text| {
            let mut lexer = Lexer::new(text);
            loop {
                if let Err(error) = lexer.next() {
                    return error.to_string();
                }
            }
        };
        assert_eq!(text("a\n é"), "line 2, column 2: invalid character `é`");
        assert!(text(" /* a").starts_with("line 1, column 2: unterminated comment"));
        assert!(text("\"a\\\"").starts_with("line 1, column 1: unterminated string"));
    }
}
