//! Runs a program until it ends or exceeds a limit.

use super::capture::Capture;
use super::command::CommandLine;
use super::error::ApplicationError;
use super::memory;
use super::scratch::Scratch;
use crate::run::due_cause::DueCause;
use flipwave_agent::ProcessTree;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open, setrlimit, setsid};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Interval between checks of the limits.
const TICK: Duration = Duration::from_millis(10);

/// Interval between checks of the memory of all processes, which requires reading `/proc`. The
/// memory of the first process is checked at each tick.
const MEMORY_PERIOD: Duration = Duration::from_millis(200);

/// Interval between checks of the size of the program's folder.
const FOLDER_PERIOD: Duration = Duration::from_secs(1);

/// Limits of a run, which is killed when it exceeds one.
///
/// The memory limit applies to resident memory, which is measured a hundred times a second, so a
/// program may exceed it for a short time. The limits of the kernel are unsuitable: RLIMIT_AS and
/// RLIMIT_DATA count address space that the GPU's runtime reserves but never uses, RLIMIT_RSS has
/// no effect, and all of them apply to single processes. A program that handles a failed allocation
/// also would not show why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time.
    pub timeout: Duration,
    /// Bytes of memory of all processes.
    pub memory: u64,
    /// Bytes of standard output, of standard error, and of all files in the run's folder including
    /// inputs; applies to each of the three.
    pub output: u64,
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Exited with a code.
    Exited(i32),
    /// Killed by a signal.
    Signalled(i32),
    /// Exceeded the time limit.
    TimedOut,
    /// Exceeded the memory limit.
    OutOfMemory,
    /// Exceeded the output limit.
    OutputTooLarge,
}

impl Ended {
    /// The cause of DUE of a faulty run that ended like this, if the golden run ended otherwise.
    pub(crate) fn due_cause(self) -> DueCause {
        match self {
            Ended::Exited(_) => DueCause::ExitCode,
            Ended::Signalled(_) => DueCause::Signal,
            Ended::TimedOut => DueCause::Timeout,
            Ended::OutOfMemory => DueCause::OutOfMemory,
            Ended::OutputTooLarge => DueCause::OutputTooLarge,
        }
    }
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Ended {
        // The status of an ended process contains either an exit code or a signal.
        status.code().map_or(Ended::Signalled(status.signal().unwrap_or(0)), Ended::Exited)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Exited(code) => write!(f, "ended with exit code {code}"),
            Ended::Signalled(signal) => write!(f, "was killed by signal {signal}"),
            Ended::TimedOut => f.write_str("exceeded the time limit"),
            Ended::OutOfMemory => f.write_str("exceeded the memory limit"),
            Ended::OutputTooLarge => f.write_str("exceeded the output limit"),
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    pub ended: Ended,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub elapsed: Duration,
}

/// Time for killed processes to end. A process that waits for a device cannot end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a program in `scratch` with this environment until it ends or exceeds a limit, and kills
/// all of its descendants, also when this process is killed. Without `stdin`, standard input is
/// empty.
///
/// # Errors
/// [`ApplicationError`] if the program cannot be started or monitored, and when `interrupt` becomes
/// `true`.
pub(super) fn run(
    command: &CommandLine,
    environment: &BTreeMap<OsString, OsString>,
    scratch: &Scratch,
    stdin: Option<&Path>,
    limits: &Limits,
    interrupt: &AtomicBool,
) -> Result<Finished, ApplicationError> {
    let clock = Instant::now();
    let mut tree = start(command, environment, scratch, stdin)?;
    let mut stdout = Capture::new(tree.reaper.stdout.take());
    let mut stderr = Capture::new(tree.reaper.stderr.take());
    let captures = [&mut stdout, &mut stderr];
    let deadline = clock + limits.timeout;
    let stopped = watch(&tree, captures, scratch, limits, deadline, interrupt);
    let ended = tree.end(PATIENCE).map_err(ApplicationError::Watch)?;
    let status = ended.ok_or(ApplicationError::Stuck { pid: tree.program })?;
    let elapsed = clock.elapsed();
    let is_within_limit = stdout.finish(limits.output) && stderr.finish(limits.output);
    let ended = match stopped.map_err(ApplicationError::Watch)? {
        Some(Stop::Interrupt) => return Err(ApplicationError::Interrupted),
        Some(Stop::Limit(ended)) => ended,
        None if !is_within_limit || scratch.size() > limits.output => Ended::OutputTooLarge,
        None => status.into(),
    };
    Ok(Finished { ended, stdout: stdout.bytes, stderr: stderr.bytes, elapsed })
}

/// Starts a program as the leader of a new session.
fn start(
    command: &CommandLine,
    environment: &BTreeMap<OsString, OsString>,
    scratch: &Scratch,
    stdin: Option<&Path>,
) -> Result<ProcessTree, ApplicationError> {
    let stdin = match stdin {
        None => Stdio::null(),
        Some(path) => flipwave_host::input::open(path)
            .map_err(|reason| ApplicationError::Stdin { path: path.to_owned(), reason })?
            .into(),
    };
    let mut program = Command::new(&command.program);
    program
        .args(&command.arguments)
        .env_clear()
        .envs(environment)
        .current_dir(scratch.files())
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: between fork and exec, only async-signal-safe functions are allowed.
    // `prepare_process` only makes system calls; it takes no locks and does not allocate.
    unsafe { ProcessTree::start(program, prepare_process) }
        .map_err(|reason| ApplicationError::Start { program: command.program.clone(), reason })
}

/// Prepares the current, new process: starts a session, unblocks signals, disables core files and
/// address space randomization.
fn prepare_process() -> io::Result<()> {
    setsid()?;
    let mut none = MaybeUninit::uninit();
    // SAFETY: system calls on this process, with a signal set on its stack.
    unsafe {
        // Clears pending signals, which were sent to the process group of this program before
        // `setsid`.
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
    // If the machine runs out of memory, the kernel should kill the application first. Some
    // containers lack the file.
    if let Ok(file) = open(c"/proc/self/oom_score_adj", OFlags::WRONLY, Mode::empty()) {
        let _ = rustix::io::write(&file, b"1000");
    }
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // SAFETY: personality(2) takes a number and accesses no memory. Some containers forbid it;
    // addresses then differ between runs, and golden runs differ if this matters.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    Ok(())
}

/// Reason for killing a program.
enum Stop {
    Limit(Ended),
    Interrupt,
}

/// Captures the output of a program until it ends. Returns the reason if the program has to be
/// killed.
fn watch(
    tree: &ProcessTree,
    mut captures: [&mut Capture; 2],
    scratch: &Scratch,
    limits: &Limits,
    deadline: Instant,
    interrupt: &AtomicBool,
) -> io::Result<Option<Stop>> {
    // Readable when the program and all of its descendants have ended, even if nothing waits for
    // them.
    let reaper = Pid::from_child(&tree.reaper);
    let process = pidfd_open(reaper, PidfdFlags::empty())?;
    let mut next_memory = Instant::now() + MEMORY_PERIOD;
    let mut next_folder = Instant::now() + FOLDER_PERIOD;
    loop {
        let mut descriptors = vec![PollFd::new(&process, PollFlags::IN)];
        let pipes = captures.iter().filter_map(|capture| capture.pipe.as_ref());
        descriptors.extend(pipes.map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)));
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
        match poll(&mut descriptors, Some(&tick)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !descriptors[0].revents().is_empty() {
            return Ok(None);
        }
        for capture in &mut captures {
            if !capture.read_available(limits.output)? {
                return Ok(Some(Stop::Limit(Ended::OutputTooLarge)));
            }
        }
        let now = Instant::now();
        if interrupt.load(Ordering::Relaxed) {
            return Ok(Some(Stop::Interrupt));
        }
        if now >= deadline {
            return Ok(Some(Stop::Limit(Ended::TimedOut)));
        }
        let mut resident = memory::resident_of(tree.program);
        if now >= next_memory {
            resident = memory::resident_of_descendants(reaper.as_raw_nonzero().get())?;
            next_memory = now + MEMORY_PERIOD;
        }
        if resident > limits.memory {
            return Ok(Some(Stop::Limit(Ended::OutOfMemory)));
        }
        if now >= next_folder {
            next_folder = now + FOLDER_PERIOD;
            if scratch.size() > limits.output {
                return Ok(Some(Stop::Limit(Ended::OutputTooLarge)));
            }
        }
    }
}
