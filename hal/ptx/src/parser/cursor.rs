//! The tokens of a text, with one token of lookahead.

use crate::lexer::{Lexer, Token, error};
use crate::{MAX_DEPTH, Name, Number, ParseError, ParseErrorKind, Position};

/// Position in a text that is being parsed.
pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    token: Token<'a>,
    position: Position,
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Result<Cursor<'a>, ParseError> {
        let mut lexer = Lexer::new(text);
        let (token, position) = lexer.next()?;
        Ok(Cursor { lexer, token, position, depth: 0 })
    }

    /// The next token.
    pub fn peek(&self) -> Token<'a> {
        self.token
    }

    /// Position of the next token.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The token after the next one.
    pub fn second(&self) -> Result<Token<'a>, ParseError> {
        self.lexer.clone().next().map(|(token, _)| token)
    }

    /// Consumes the next token.
    pub fn advance(&mut self) -> Result<Token<'a>, ParseError> {
        let (token, position) = self.lexer.next()?;
        self.position = position;
        Ok(std::mem::replace(&mut self.token, token))
    }

    pub fn is(&self, symbol: &str) -> bool {
        self.token == Token::Symbol(symbol)
    }

    /// Consumes a symbol if it is next.
    pub fn accept(&mut self, symbol: &str) -> Result<bool, ParseError> {
        let is_next = self.is(symbol);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Consumes a directive if it is next; its name has no dot.
    pub fn accept_dotted(&mut self, name: &str) -> Result<bool, ParseError> {
        let is_next = self.token == Token::Dotted(name);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    pub fn expect(&mut self, symbol: &'static str) -> Result<(), ParseError> {
        if self.accept(symbol)? { Ok(()) } else { Err(self.unexpected(quoted(symbol))) }
    }

    /// The error of a next token that the grammar does not allow.
    pub fn unexpected(&self, expected: &'static str) -> ParseError {
        let found = self.token.describe();
        error(self.position, ParseErrorKind::Unexpected { expected, found })
    }

    pub fn error(&self, kind: ParseErrorKind) -> ParseError {
        error(self.position, kind)
    }

    pub fn word(&mut self, expected: &'static str) -> Result<&'a str, ParseError> {
        let Token::Word(word) = self.token else { return Err(self.unexpected(expected)) };
        self.advance()?;
        Ok(word)
    }

    pub fn name(&mut self, expected: &'static str) -> Result<Name, ParseError> {
        self.word(expected).map(Name::from)
    }

    pub fn text(&mut self) -> Result<Name, ParseError> {
        let Token::Text(text) = self.token else { return Err(self.unexpected("a string")) };
        self.advance()?;
        Ok(text.into())
    }

    pub fn number(&mut self) -> Result<Number, ParseError> {
        let Token::Number(text) = self.token else { return Err(self.unexpected("a number")) };
        let invalid = || self.error(ParseErrorKind::Number(text.chars().take(80).collect()));
        let number = Number::parse(text).ok_or_else(invalid)?;
        self.advance()?;
        Ok(number)
    }

    pub fn integer(&mut self) -> Result<u64, ParseError> {
        let unexpected = self.unexpected("an integer");
        match self.number()? {
            Number::Integer { value, .. } => Ok(value),
            Number::Single(_) | Number::Double(_) => Err(unexpected),
        }
    }

    /// An integer of at most 32 bits.
    pub fn small(&mut self) -> Result<u32, ParseError> {
        let unexpected = self.unexpected("an integer below 4294967296");
        u32::try_from(self.integer()?).map_err(|_| unexpected)
    }

    /// One or more elements, separated by commas.
    pub fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut all = vec![element(self)?];
        while self.accept(",")? {
            all.push(element(self)?);
        }
        Ok(all)
    }

    /// Elements between two symbols, separated by commas.
    pub fn enclosed<T>(
        &mut self,
        [open, close]: [&'static str; 2],
        element: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.expect(open)?;
        if self.accept(close)? {
            return Ok(Vec::new());
        }
        let all = self.list(element)?;
        self.expect(close)?;
        Ok(all)
    }

    /// Number of nested parts around the next token.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Parses a nested part of the grammar, up to [`MAX_DEPTH`] levels deep.
    pub fn nested<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(ParseErrorKind::Depth));
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }
}

/// A symbol in quotes, for error messages.
fn quoted(symbol: &'static str) -> &'static str {
    match symbol {
        ";" => "`;`",
        ":" => "`:`",
        "," => "`,`",
        "(" => "`(`",
        ")" => "`)`",
        "{" => "`{`",
        "}" => "`}`",
        "[" => "`[`",
        "]" => "`]` or an offset",
        ">" => "`>`",
        _ => symbol,
    }
}
