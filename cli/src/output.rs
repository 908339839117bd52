//! Standard output and standard error. Whoever reads them may leave at any time: what was begun goes
//! on, and what nobody reads is not printed.

use std::fmt::Display;
use std::io::{self, ErrorKind, StdoutLock, Write};

/// Says something to people, on a line of standard error.
pub fn say(text: impl Display) {
    // There is nobody else to report a failure to.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Standard output.
pub fn stdout() -> Output<StdoutLock<'static>> {
    Output { inner: io::stdout().lock(), is_closed: false }
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
