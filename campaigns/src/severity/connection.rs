//! One connection to a judge.

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

/// How often it is looked at whether to stop while an answer is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// How long a program may take to end when nothing more is asked of it.
const TO_END: Duration = Duration::from_secs(2);

/// Bytes of an answer at most.
const LONGEST_ANSWER: usize = 1 << 20;

/// How long a judge is waited for.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    /// Becomes true when nobody wants an answer any more.
    pub stopped: Arc<AtomicBool>,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl Patience {
    /// Checks that there is still time for an answer that began to be waited for at `start`.
    fn check(&self, start: Instant) -> Result<(), String> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        if start.elapsed() < self.timeout {
            return Ok(());
        }
        Err(format!(
            "gave no answer within {} s; if it needs longer, give it more with `severity.timeout`",
            self.timeout.as_secs_f64()
        ))
    }
}

/// One connection to a judge.
pub(super) struct Connection {
    stream: BufReader<UnixStream>,
    child: Option<Child>,
    patience: Patience,
    /// When the answer that is waited for began to be.
    start: Instant,
    /// Whether the judge is not waited for when it is to end.
    is_given_up: bool,
}

impl Connection {
    /// Starts or reaches the judge, and shows it the outputs of the fault-free run.
    ///
    /// # Errors
    /// Says why it cannot be asked.
    pub fn open<'a>(
        source: &JudgeSource,
        patience: Patience,
        greeting: &Greeting,
        golden: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Connection, String> {
        let (stream, child) = match source {
            JudgeSource::Socket(path) => (connect(path, &patience)?, None),
            JudgeSource::Command { command, directory } => {
                let failed = |error: std::io::Error| format!("cannot be started: {error}");
                let (own, other) = UnixStream::pair().map_err(failed)?;
                let error = std::io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
                let child = Command::new(&command.program)
                    .args(&command.arguments)
                    .current_dir(directory)
                    .stdin(OwnedFd::from(other))
                    .stdout(error)
                    // Signals of the terminal are the campaign's, which ends it.
                    .process_group(0)
                    .spawn()
                    .map_err(failed)?;
                (own, Some(child))
            }
        };
        let timeouts = stream.set_read_timeout(Some(LOOK));
        let timeouts = timeouts.and_then(|()| stream.set_write_timeout(Some(LOOK)));
        timeouts.map_err(|error| error.to_string())?;
        let mut connection = Connection {
            stream: BufReader::new(stream),
            child,
            patience,
            start: Instant::now(),
            is_given_up: false,
        };
        connection.send(greeting, golden)?;
        let answer = connection.answer()?;
        Answer::ready(&answer)?;
        Ok(connection)
    }

    /// Shows the judge the outputs of an injection.
    ///
    /// # Errors
    /// Says why there is no judgement.
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

    /// Checks that nothing was said that nobody has asked for: it would be taken for the next answer.
    fn expect_silence(&mut self) -> Result<(), String> {
        self.set_nonblocking(true)?;
        let said = self.stream.fill_buf().map(|bytes| !bytes.is_empty());
        self.set_nonblocking(false)?;
        match said {
            Ok(true) => {
                Err("has said something that it was not asked; expected one line for each \
                             question"
                    .to_owned())
            }
            // That it is gone, the question finds out.
            _ => Ok(()),
        }
    }

    fn set_nonblocking(&self, is_so: bool) -> Result<(), String> {
        self.stream.get_ref().set_nonblocking(is_so).map_err(|error| error.to_string())
    }

    /// Says that nothing more is asked.
    pub fn close(&self) {
        // Nothing is left to be done if it fails.
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

    /// The next line.
    fn answer(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let said = match self.stream.fill_buf() {
                Ok(said) => said,
                Err(error) => {
                    self.wait_on(&error)?;
                    continue;
                }
            };
            let end = said.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
            let taken = end.unwrap_or(said.len());
            line.extend_from_slice(&said[..taken]);
            self.stream.consume(taken);
            if taken == 0 {
                return Err(self.lost());
            }
            if line.len() > LONGEST_ANSWER {
                return Err(format!("its answer is longer than {LONGEST_ANSWER} bytes"));
            }
            // One that says a little again and again is no reason to wait longer.
            self.check_patience()?;
        }
        String::from_utf8(line).map_err(|_| "its answer is no UTF-8".to_owned())
    }

    fn check_patience(&mut self) -> Result<(), String> {
        let checked = self.patience.check(self.start);
        self.is_given_up |= checked.is_err();
        checked
    }

    /// Goes on waiting where nothing has come yet and there is still time.
    fn wait_on(&mut self, error: &std::io::Error) -> Result<(), String> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                self.check_patience()?;
                let ended = self.child.as_mut().map(Child::try_wait);
                // Its own children may still have its end of the connection.
                if matches!(ended, Some(Ok(Some(_)))) { Err(self.lost()) } else { Ok(()) }
            }
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Err(self.lost()),
            _ => Err(error.to_string()),
        }
    }

    /// Why the judge says no more.
    fn lost(&mut self) -> String {
        let status = self.child.as_mut().and_then(|child| end(child, TO_END).ok());
        match status {
            Some(status) => format!(
                "ended without an answer, {status}; what it printed stands above, on standard error"
            ),
            None => "closed the connection without an answer".to_owned(),
        }
    }
}

/// Connects to a server, which may be busy.
fn connect(path: &Path, patience: &Patience) -> Result<UnixStream, String> {
    let failed = |error: Errno| format!("cannot be reached: {error}");
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    let start = Instant::now();
    loop {
        // A plain connection would wait for as long as the server is busy.
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
        let socket = socket.map_err(failed)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false).map_err(|error| error.to_string())?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) => patience.check(start)?,
            Err(error) => return Err(failed(error)),
        }
        std::thread::sleep(LOOK);
    }
}

/// Waits a little for a program that has nothing more to do, then ends it.
fn end(child: &mut Child, patience: Duration) -> std::io::Result<std::process::ExitStatus> {
    let start = Instant::now();
    let mut status = child.try_wait()?;
    while status.is_none() && start.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(5));
        status = child.try_wait()?;
    }
    // What it has started is of its group, and may go on without it.
    // SAFETY: a signal to a group that we have made; if there is nobody in it, nothing happens.
    unsafe { libc::killpg(child.id() as libc::pid_t, libc::SIGKILL) };
    status.map_or_else(|| child.wait(), Ok)
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
        if let Some(child) = &mut self.child {
            let is_hurried = self.is_given_up || self.patience.stopped.load(Ordering::Relaxed);
            let _ = end(child, if is_hurried { Duration::ZERO } else { TO_END });
        }
    }
}
