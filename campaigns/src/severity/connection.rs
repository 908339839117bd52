//! A connection to a judge.

use super::message::{Answer, Greeting, Question};
use super::{JudgeSource, Judgement};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use serde::Serialize;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval of checking for cancellation while waiting for an answer.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time for a judge program to exit after the connection is closed.
const EXIT_TIME: Duration = Duration::from_secs(2);

/// Maximum length of an answer in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Limits on waiting for a judge.
#[derive(Clone, Debug)]
pub(super) struct WaitLimit {
    /// Set when the campaign is cancelled.
    pub stopped: Arc<AtomicBool>,
    /// Time limit of an answer.
    pub timeout: Duration,
}

impl WaitLimit {
    /// Checks that there is time left for an answer requested at `start`.
    fn check(&self, start: Instant) -> Result<(), String> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        if start.elapsed() < self.timeout {
            return Ok(());
        }
        Err(format!(
            "gave no answer within {} s; if it needs more time, increase `severity.timeout`",
            self.timeout.as_secs_f64()
        ))
    }
}

/// A connection to a judge.
pub(super) struct Connection {
    stream: BufReader<UnixStream>,
    child: Option<Child>,
    wait_limit: WaitLimit,
    /// Time at which the current answer was requested.
    start: Instant,
    /// `true` if waiting ended at the time limit or by cancellation. The judge is then killed immediately.
    has_timed_out: bool,
}

impl Connection {
    /// Starts or connects to the judge, and sends it the outputs of the golden run.
    ///
    /// # Errors
    /// Returns the reason why the judge is not available.
    pub fn open<'a>(
        source: &JudgeSource,
        wait_limit: WaitLimit,
        greeting: &Greeting,
        golden: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Connection, String> {
        let (stream, child) = match source {
            JudgeSource::Socket(path) => (connect(path, &wait_limit)?, None),
            JudgeSource::Command { command, directory } => {
                let failed = |error: std::io::Error| format!("cannot be started: {error}");
                let (stream, stdin) = UnixStream::pair().map_err(failed)?;
                let error = std::io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
                let child = Command::new(&command.program)
                    .args(&command.arguments)
                    .current_dir(directory)
                    .stdin(OwnedFd::from(stdin))
                    .stdout(error)
                    // The terminal sends signals to the campaign, which then ends the judge.
                    .process_group(0)
                    .spawn()
                    .map_err(failed)?;
                (stream, Some(child))
            }
        };
        let timeouts = stream.set_read_timeout(Some(POLL_INTERVAL));
        let timeouts = timeouts.and_then(|()| stream.set_write_timeout(Some(POLL_INTERVAL)));
        timeouts.map_err(|error| error.to_string())?;
        let mut connection = Connection {
            stream: BufReader::new(stream),
            child,
            wait_limit,
            start: Instant::now(),
            has_timed_out: false,
        };
        connection.send(greeting, golden)?;
        let answer = connection.answer()?;
        Answer::ready(&answer)?;
        Ok(connection)
    }

    /// Sends the outputs of an injection to the judge, and returns its judgement.
    ///
    /// # Errors
    /// Returns the reason why there is no judgement.
    pub fn ask<'a>(
        &mut self,
        question: &Question,
        outputs: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Judgement, String> {
        self.start = Instant::now();
        self.expect_silence()?;
        self.send(question, outputs)?;
        let answer = self.answer()?;
        Answer::judgement(&answer, question.index)
    }

    /// Checks that the judge has sent nothing unrequested, which would be mistaken for the next answer.
    fn expect_silence(&mut self) -> Result<(), String> {
        self.set_nonblocking(true)?;
        let has_unread = self.stream.fill_buf().map(|bytes| !bytes.is_empty());
        self.set_nonblocking(false)?;
        // A closed connection is detected when the question is sent.
        if has_unread.unwrap_or(false) {
            return Err("sent an unexpected line; expected one line for each question".to_owned());
        }
        Ok(())
    }

    fn set_nonblocking(&self, is_nonblocking: bool) -> Result<(), String> {
        self.stream.get_ref().set_nonblocking(is_nonblocking).map_err(|error| error.to_string())
    }

    /// Closes the connection, which tells the judge that there are no more questions.
    pub fn close(&self) {
        // A failure needs no handling.
        let _ = self.stream.get_ref().shutdown(Shutdown::Both);
    }

    fn send<'a>(
        &mut self,
        line: &impl Serialize,
        mut outputs: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), String> {
        let mut line = serde_json::to_vec(line).map_err(|error| error.to_string())?;
        line.push(b'\n');
        self.write(&line)?;
        outputs.try_for_each(|bytes| self.write(bytes))
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            match self.stream.get_mut().write(bytes) {
                Ok(0) => return Err(self.lost()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) => self.wait_on(&error)?,
            }
        }
        Ok(())
    }

    /// Reads the next line.
    fn answer(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let received = match self.stream.fill_buf() {
                Ok(received) => received,
                Err(error) => {
                    self.wait_on(&error)?;
                    continue;
                }
            };
            let end = received.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
            let taken = end.unwrap_or(received.len());
            line.extend_from_slice(&received[..taken]);
            self.stream.consume(taken);
            if taken == 0 {
                return Err(self.lost());
            }
            if line.len() > MAX_ANSWER_BYTES {
                return Err(format!("its answer is longer than {MAX_ANSWER_BYTES} bytes"));
            }
            // Partial lines do not extend the time limit.
            self.check_wait_limit()?;
        }
        String::from_utf8(line).map_err(|_| "its answer is not valid UTF-8".to_owned())
    }

    fn check_wait_limit(&mut self) -> Result<(), String> {
        let checked = self.wait_limit.check(self.start);
        self.has_timed_out |= checked.is_err();
        checked
    }

    /// Handles an error of a read or write: returns `Ok` to continue waiting.
    fn wait_on(&mut self, error: &std::io::Error) -> Result<(), String> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                self.check_wait_limit()?;
                let ended = self.child.as_mut().map(Child::try_wait);
                // Children of the judge may still hold its end of the connection.
                if matches!(ended, Some(Ok(Some(_)))) { Err(self.lost()) } else { Ok(()) }
            }
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Err(self.lost()),
            _ => Err(error.to_string()),
        }
    }

    /// Describes why the connection was lost.
    fn lost(&mut self) -> String {
        let status = self.child.as_mut().and_then(|child| end(child, EXIT_TIME).ok());
        match status {
            Some(status) => format!(
                "ended without an answer, {status}; its messages are above, on standard error"
            ),
            None => "closed the connection without an answer".to_owned(),
        }
    }
}

/// Connects to a server; retries while it is busy.
fn connect(path: &Path, wait_limit: &WaitLimit) -> Result<UnixStream, String> {
    let failed = |error: Errno| format!("cannot be reached: {error}");
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    let start = Instant::now();
    loop {
        // A blocking connect would wait while the server is busy.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let socket = socket.map_err(failed)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false).map_err(|error| error.to_string())?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) => wait_limit.check(start)?,
            Err(error) => return Err(failed(error)),
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits up to `time` for a program to exit, then kills it.
fn end(child: &mut Child, time: Duration) -> std::io::Result<std::process::ExitStatus> {
    let start = Instant::now();
    let mut status = child.try_wait()?;
    while status.is_none() && start.elapsed() < time {
        std::thread::sleep(Duration::from_millis(5));
        status = child.try_wait()?;
    }
    // Processes started by the program are in its group and may still run.
    // SAFETY: the group was created for this child; a signal to an empty group has no effect.
    unsafe { libc::killpg(child.id() as libc::pid_t, libc::SIGKILL) };
    status.map_or_else(|| child.wait(), Ok)
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
        if let Some(child) = &mut self.child {
            let is_urgent = self.has_timed_out || self.wait_limit.stopped.load(Ordering::Relaxed);
            let _ = end(child, if is_urgent { Duration::ZERO } else { EXIT_TIME });
        }
    }
}
