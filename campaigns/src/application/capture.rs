//! What a program writes to a pipe, up to a limit.

use rustix::fs::{OFlags, fcntl_setfl};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;

/// Bytes read at once: as much as a pipe holds.
const CHUNK: usize = 64 * 1024;

/// What came out of a pipe.
pub(super) struct Capture {
    /// The pipe's end, until the other is closed.
    pub pipe: Option<File>,
    /// What came out so far.
    pub bytes: Vec<u8>,
}

impl Capture {
    /// Nothing of `pipe` yet.
    pub(super) fn new(pipe: Option<impl Into<OwnedFd>>) -> Capture {
        Capture { pipe: pipe.map(|pipe| File::from(pipe.into())), bytes: Vec::new() }
    }

    /// Takes what is there, without waiting, but no more than a chunk. Says whether there are at
    /// most `limit` bytes in all.
    pub(super) fn take(&mut self, limit: u64) -> io::Result<bool> {
        self.take_chunk()?;
        Ok(self.bytes.len() as u64 <= limit)
    }

    /// Takes what is left of a program that has ended, with all that it has started.
    pub(super) fn finish(&mut self, limit: u64) -> bool {
        while self.bytes.len() as u64 <= limit && matches!(self.take_chunk(), Ok(true)) {}
        let within = self.bytes.len() as u64 <= limit;
        self.bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        within
    }

    /// Whether there was anything to take.
    fn take_chunk(&mut self) -> io::Result<bool> {
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
