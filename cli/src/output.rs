//! Standard output and standard error. Whoever reads them may leave at any time: what was begun goes
//! on, and what nobody reads is not printed.

use flipwave_host::output::printable_lines;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};

/// Says something to people, on lines of standard error.
pub fn say(text: impl Display) {
    // There is nobody else to report a failure to.
    let _ = writeln!(io::stderr(), "{}", printable_lines(&text.to_string()));
}

/// Says what is wrong. All lines but the first are indented: a line end in somebody's name makes nothing
/// that looks like another message.
pub fn complain(text: impl Display) {
    say(text.to_string().replace('\n', "\n  "));
}

/// Standard output, for people: what a terminal would obey is escaped.
pub fn stdout() -> Output<Shown<StdoutLock<'static>>> {
    Output { inner: Shown { inner: io::stdout().lock(), rest: Vec::new() }, is_closed: false }
}

/// Standard output for programs, byte by byte, unless it is a terminal.
pub fn raw_stdout() -> Box<dyn Write> {
    let stdout = io::stdout().lock();
    if stdout.is_terminal() {
        return Box::new(self::stdout());
    }
    Box::new(Output { inner: stdout, is_closed: false })
}

/// Passes text on, with what a terminal would obey escaped.
pub struct Shown<W> {
    inner: W,
    /// The beginning of a character whose other bytes have not come yet.
    rest: Vec<u8>,
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = [std::mem::take(&mut self.rest).as_slice(), bytes].concat();
        let whole = match str::from_utf8(&all) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => all.len(),
        };
        self.rest = all[whole..].to_vec();
        let text = String::from_utf8_lossy(&all[..whole]);
        self.inner.write_all(printable_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Where what is printed goes, until nobody reads it any more.
pub struct Output<W> {
    inner: W,
    is_closed: bool,
}

impl<W: Write> Output<W> {
    fn unless_closed<T>(
        &mut self,
        unread: T,
        write: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.is_closed {
            return Ok(unread);
        }
        match write(&mut self.inner) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(unread)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(bytes.len(), |inner| inner.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), W::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails each time, and counts how often it is asked.
    struct Failing(ErrorKind, u32);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped_however_it_is_written() {
        let text = "a\x1b[31m größe\n";
        for step in 1..text.len() {
            let mut output = Shown { inner: Vec::new(), rest: Vec::new() };
            for part in text.as_bytes().chunks(step) {
                output.write_all(part).expect("written");
            }
            assert_eq!(output.inner, "a\\x1b[31m größe\n".as_bytes());
        }
    }

    #[test]
    fn what_nobody_reads_is_left_out_and_other_failures_are_reported() {
        let mut output = Output { inner: Failing(ErrorKind::BrokenPipe, 0), is_closed: false };
        for _ in 0..3 {
            output.write_all(b"text").expect("left out");
        }
        assert_eq!(output.inner.1, 1, "asked again");
        let mut output = Output { inner: Failing(ErrorKind::StorageFull, 0), is_closed: false };
        assert!(output.write_all(b"text").is_err());
    }
}
