//! Standard output and standard error. A reader may close them at any time: the command then continues
//! and discards its further output.

use flipwave_host::output::printable_lines;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};

/// Prints a message to standard error.
pub fn say(text: impl Display) {
    // A failure cannot be reported anywhere else.
    let _ = writeln!(io::stderr(), "{}", printable_lines(&text.to_string()));
}

/// Prints an error or a warning to standard error. All lines but the first are indented, so that a line
/// break inside an untrusted name cannot imitate another message.
pub fn complain(text: impl Display) {
    say(text.to_string().replace('\n', "\n  "));
}

/// Locks standard output for text; terminal control characters are escaped.
pub fn stdout() -> Output<Escaped<StdoutLock<'static>>> {
    Output { inner: Escaped::new(io::stdout().lock()), is_closed: false }
}

/// Locks standard output for data, which is written unchanged unless standard output is a terminal.
pub fn raw_stdout() -> Box<dyn Write> {
    let stdout = io::stdout().lock();
    if stdout.is_terminal() {
        return Box::new(self::stdout());
    }
    Box::new(Output { inner: stdout, is_closed: false })
}

/// A writer of text that escapes terminal control characters.
pub struct Escaped<W> {
    inner: W,
    /// The first bytes of a character whose other bytes have not been written yet.
    incomplete: Vec<u8>,
}

impl<W> Escaped<W> {
    fn new(inner: W) -> Escaped<W> {
        Escaped { inner, incomplete: Vec::new() }
    }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = [std::mem::take(&mut self.incomplete).as_slice(), bytes].concat();
        let complete = match str::from_utf8(&all) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => all.len(),
        };
        self.incomplete = all[complete..].to_vec();
        let text = String::from_utf8_lossy(&all[..complete]);
        self.inner.write_all(printable_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A writer that discards its output once the reader has closed the pipe.
pub struct Output<W> {
    inner: W,
    is_closed: bool,
}

impl<W: Write> Output<W> {
    /// Calls `write`, or returns `discarded` if the reader has closed the pipe.
    fn unless_closed<T>(
        &mut self,
        discarded: T,
        write: impl FnOnce(&mut W) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.is_closed {
            return Ok(discarded);
        }
        match write(&mut self.inner) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(discarded)
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

    /// A writer whose writes fail and are counted.
    struct Failing {
        error: ErrorKind,
        writes: u32,
    }

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.writes += 1;
            Err(self.error.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn control_characters_are_escaped_across_any_split_of_writes() {
        let text = "a\x1b[31m größe\n";
        for step in 1..text.len() {
            let mut output = Escaped::new(Vec::new());
            for part in text.as_bytes().chunks(step) {
                output.write_all(part).expect("written");
            }
            assert_eq!(output.inner, "a\\x1b[31m größe\n".as_bytes());
        }
    }

    #[test]
    fn broken_pipe_discards_output_and_other_errors_are_returned() {
        let output = |error| Output { inner: Failing { error, writes: 0 }, is_closed: false };
        let mut closed = output(ErrorKind::BrokenPipe);
        for _ in 0..3 {
            closed.write_all(b"text").expect("discarded");
        }
        assert_eq!(closed.inner.writes, 1, "written again after the pipe was closed");
        assert!(output(ErrorKind::StorageFull).write_all(b"text").is_err());
    }
}
