//! Messages between this program and the host side of a tool, as in `include/host.c`.

/// The content of a request.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Appends a number of 32 bits.
    pub fn word(&mut self, number: u32) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// Appends a number of 64 bits.
    pub fn wide(&mut self, number: u64) {
        self.bytes.extend(number.to_le_bytes());
    }

    /// Appends a text: its length, its bytes, and a zero byte. Zero bytes within it become question marks.
    pub fn text(&mut self, text: &str) {
        self.word(text.len() as u32);
        self.bytes.extend(text.bytes().map(|byte| if byte == 0 { b'?' } else { byte }));
        self.bytes.push(0);
    }

    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The whole content.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// An answer that ends early or is otherwise invalid, for example because the tool overwrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The content of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their start.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// Returns `true` at the end.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a number of 32 bits.
    pub fn word(&mut self) -> Result<u32, Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// Reads a number of 64 bits.
    pub fn wide(&mut self) -> Result<u64, Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Reads a text: its length and its bytes.
    pub fn text(&mut self) -> Result<String, Malformed> {
        let length = self.word()? as usize;
        Ok(String::from_utf8_lossy(self.bytes(length)?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        writer.word(7);
        writer.wide(1 << 40);
        writer.text("a\0b");
        let bytes = writer.into_bytes();
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.word(), reader.wide()), (Ok(7), Ok(1 << 40)));
        assert_eq!(reader.text(), Ok("a?b".to_owned()));
        assert_eq!(reader.bytes(1), Ok(&[0][..]));
        assert!(reader.is_empty());
        assert_eq!(reader.word(), Err(Malformed));
    }

    #[test]
    fn texts_that_are_cut_off_are_malformed() {
        assert_eq!(Reader::new(&[9, 0, 0, 0, b'a']).text(), Err(Malformed));
    }
}
