//! Captures the output of a program from a pipe, up to a limit.

use rustix::fs::{OFlags, fcntl_setfl};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;

/// Size of a read in bytes: the capacity of a pipe.
const CHUNK: usize = 64 * 1024;

/// The output of a program.
pub(super) struct Capture {
    /// The read end of the pipe; `None` after the end of the output.
    pub pipe: Option<File>,
    /// The bytes read so far.
    pub bytes: Vec<u8>,
}

impl Capture {
    /// Creates a capture of a pipe.
    pub(super) fn new(pipe: Option<impl Into<OwnedFd>>) -> Capture {
        Capture { pipe: pipe.map(|pipe| File::from(pipe.into())), bytes: Vec::new() }
    }

    /// Reads up to one chunk without waiting. Returns `true` if the total is at most `limit` bytes.
    pub(super) fn read_available(&mut self, limit: u64) -> io::Result<bool> {
        self.read_chunk()?;
        Ok(self.bytes.len() as u64 <= limit)
    }

    /// Reads the remaining output after all processes have ended. Returns `true` if the total is at
    /// most `limit` bytes.
    pub(super) fn finish(&mut self, limit: u64) -> bool {
        while self.bytes.len() as u64 <= limit && matches!(self.read_chunk(), Ok(true)) {}
        let within = self.bytes.len() as u64 <= limit;
        self.bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        within
    }

    /// Reads up to one chunk. Returns `false` if no data is available.
    fn read_chunk(&mut self) -> io::Result<bool> {
        let Some(pipe) = &mut self.pipe else { return Ok(false) };
        fcntl_setfl(&*pipe, OFlags::NONBLOCK)?;
        let mut chunk = [0; CHUNK];
        match pipe.read(&mut chunk) {
            Ok(0) => {
                self.pipe = None;
                Ok(false)
            }
            Ok(length) => {
                self.bytes.extend_from_slice(&chunk[..length]);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }
}
