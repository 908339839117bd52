//! The process that runs a tool's host side.

use super::lines::LineOf;
use super::message::Reader;
use super::seconds;
use crate::{ToolError, ToolFile};
use flipwave_host::child::{ChildError, Helper};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// A request, as in `include/host.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Names the outputs and parameters.
    Describe = 1,
    /// Receives the offsets of texts in structures.
    LayOut,
    /// Calls `flipwave_instrument` for instructions.
    Instrument,
    /// Calls `flipwave_on_dispatch`.
    Dispatch,
    /// Calls `flipwave_finish`.
    Finish,
    /// Names the functions of a fault model.
    FaultFunctions,
    /// Calls the function of a fault model.
    Corrupt,
}

/// Status of an answer: done.
const DONE: u32 = 0;
/// Status of an answer: the tool reported an error.
const FAILED: u32 = 1;
/// Status of an answer: the tool crashed or took too long.
const CRASHED: u32 = 2;
/// The signal after the time limit.
const ALARM: u32 = 14;

/// A running host side. It ends when this value is dropped.
#[derive(Debug)]
pub struct HostProcess {
    child: Option<Helper>,
    stream: UnixStream,
    /// The program, for the lines of crashes.
    program: Vec<u8>,
    file: ToolFile,
}

impl HostProcess {
    /// Starts a program that was compiled from `file`.
    ///
    /// # Errors
    /// [`ToolError::HostProcess`].
    pub fn start(file: &ToolFile, program: Vec<u8>) -> Result<HostProcess, ToolError> {
        let (child, stream) = spawn(&program).map_err(|reason| failure(file, reason))?;
        Ok(HostProcess { child: Some(child), stream, program, file: file.clone() })
    }

    /// Sends a request and returns the content of the answer.
    ///
    /// # Errors
    /// [`ToolError::Tool`] for an error of the tool, [`ToolError::Crashed`] and [`ToolError::HostProcess`].
    pub fn ask(&mut self, request: Request, content: &[u8]) -> Result<Vec<u8>, ToolError> {
        let exchanged = self.exchange(request, content);
        let (status, content) = match exchanged {
            Ok(answer) => answer,
            Err(reason) => {
                let reason = self.describe(reason);
                // Kills it.
                self.child = None;
                return Err(failure(&self.file, reason));
            }
        };
        match status {
            DONE => Ok(content),
            FAILED => {
                let mut reader = Reader::new(&content);
                let (line, text) = (reader.word(), reader.text());
                let place = self.file.at_line(line.unwrap_or(0));
                Err(ToolError::Tool { place, message: text.unwrap_or_default() })
            }
            CRASHED => Err(self.crash(request, &content)),
            _ => Err(failure(&self.file, io::Error::other("invalid answer of the tool"))),
        }
    }

    fn exchange(&mut self, request: Request, content: &[u8]) -> io::Result<(u32, Vec<u8>)> {
        let mut head = (request as u32).to_le_bytes().to_vec();
        head.extend((content.len() as u64).to_le_bytes());
        // The tool may have crashed and left an answer.
        let written = self.stream.write_all(&head).and_then(|()| self.stream.write_all(content));
        let mut head = [0; 12];
        if let Err(reason) = self.stream.read_exact(&mut head) {
            return Err(written.err().unwrap_or(reason));
        }
        let (status, length) = head.split_at(4);
        let status = status.first_chunk().map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes));
        let length = length.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let mut content = Vec::new();
        Read::by_ref(&mut self.stream).take(length).read_to_end(&mut content)?;
        if content.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((status, content))
    }

    /// The reason why the process does not answer.
    fn describe(&mut self, reason: io::Error) -> io::Error {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof, WouldBlock};
        match reason.kind() {
            WouldBlock => io::Error::other(format!("it took more than {} seconds", seconds())),
            BrokenPipe | ConnectionReset | UnexpectedEof => {
                match self.child.as_mut().map(Helper::wait) {
                    Some(Ok(status)) => {
                        io::Error::other(format!("it ended unexpectedly ({status})"))
                    }
                    Some(Err(error)) => io::Error::other(error),
                    None => reason,
                }
            }
            _ => reason,
        }
    }

    /// The error for a crash, with the line of the tool's file.
    fn crash(&self, request: Request, content: &[u8]) -> ToolError {
        let mut reader = Reader::new(content);
        let (signal, inst) = (reader.word().unwrap_or(0), reader.word().unwrap_or(u32::MAX));
        let lines = LineOf::new(&self.program);
        let interrupted = reader.wide().ok();
        // The address before a return address is in the call.
        let callers = std::iter::from_fn(|| reader.wide().ok()?.checked_sub(1));
        let mut addresses = interrupted.into_iter().chain(callers);
        let line = addresses.find_map(|address| lines.find(&self.file.name, address));
        let function = match request {
            Request::Instrument => "flipwave_instrument",
            Request::Dispatch => "flipwave_on_dispatch",
            Request::Finish => "flipwave_finish",
            Request::Corrupt if self.file.line_of("flipwave_fault_word").is_some() => {
                "flipwave_fault_word"
            }
            Request::Corrupt => "flipwave_fault_number",
            Request::Describe | Request::LayOut | Request::FaultFunctions => "main",
        };
        let problem = match signal {
            ALARM => {
                format!("took more than {} seconds; it may contain an endless loop", seconds())
            }
            signal => format!("crashed by {}", signal_name(signal)),
        };
        let place = self.file.at_line(line.unwrap_or(0));
        let inst = (inst != u32::MAX).then_some(inst);
        ToolError::Crashed { place, function, problem, inst }
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // It ends at the end of its input; dropping it kills one that does not.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Starts a program from memory, so that no file system needs to permit its execution.
fn spawn(program: &[u8]) -> io::Result<(Helper, UnixStream)> {
    let mut file = File::from(memfd_create("flipwave-tool", MemfdFlags::CLOEXEC)?);
    file.write_all(program)?;
    let (ours, theirs) = UnixStream::pair()?;
    // The process ends itself at the time limit; this limit is for one that does not.
    ours.set_read_timeout(Some(Duration::from_secs(seconds() + 10)))?;
    let mut command = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    command.arg0("flipwave-tool").env_clear();
    let input = OwnedFd::from(theirs);
    command.stdin(input.try_clone()?).stdout(input);
    let child = Helper::start(&mut command).map_err(|error| match error {
        ChildError::Run(reason) => reason,
        ChildError::Interrupted => io::Error::other(error),
    })?;
    Ok((child, ours))
}

fn failure(file: &ToolFile, reason: io::Error) -> ToolError {
    ToolError::HostProcess { name: file.name.clone(), reason }
}

fn signal_name(number: u32) -> String {
    let names = [
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (11, "SIGSEGV, an invalid memory access"),
    ];
    let name = names.iter().find(|(known, _)| *known == number);
    name.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}
