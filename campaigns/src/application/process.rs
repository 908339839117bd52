//! One program run to its end, whatever that is.

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

/// How often limits are looked at.
const TICK: Duration = Duration::from_millis(10);

/// How often the memory of all processes is looked at, which takes a walk through `/proc`; that of
/// the first is looked at each time.
const MEMORY_PERIOD: Duration = Duration::from_millis(200);

/// How often the size of the program's folder is looked at.
const FOLDER_PERIOD: Duration = Duration::from_secs(1);

/// What a run may take; past that it is ended.
///
/// The memory is that which is really used, looked at a hundred times a second, and a program
/// that takes much at once may be above the limit for that long. The kernel's own limits do not
/// serve: RLIMIT_AS and RLIMIT_DATA count address space that the GPU's runtime reserves and never
/// uses, RLIMIT_RSS does nothing, all of them hold for each process by itself, and what the
/// program makes of a failed allocation does not show why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time.
    pub timeout: Duration,
    /// Bytes of memory, of all its processes together.
    pub memory: u64,
    /// Bytes of each of standard output, standard error, and the files in its folder together,
    /// inputs included.
    pub output: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with an exit code.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// It took longer than it may.
    TimedOut,
    /// It took more memory than it may.
    OutOfMemory,
    /// It wrote more than it may.
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
        // A process that was waited for has one or the other.
        status.code().map_or(Ended::Signalled(status.signal().unwrap_or(0)), Ended::Exited)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Exited(code) => write!(f, "ended with exit code {code}"),
            Ended::Signalled(signal) => write!(f, "was ended by signal {signal}"),
            Ended::TimedOut => f.write_str("did not end in time"),
            Ended::OutOfMemory => f.write_str("took more memory than it may"),
            Ended::OutputTooLarge => f.write_str("wrote more than it may"),
        }
    }
}

/// A program that ran.
#[derive(Debug)]
pub(super) struct Finished {
    pub ended: Ended,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub elapsed: Duration,
}

/// How long processes that were killed may take to end. One that waits for a device cannot.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a program in `scratch` with exactly this environment, until it ends or is ended; nothing
/// that it started is left, nor is it when this process is killed. It reads `stdin`, or nothing.
///
/// # Errors
/// [`ApplicationError`] if it does not start or cannot be watched, and when `interrupt` becomes
/// true.
pub(super) fn run(
    command: &CommandLine,
    environment: &BTreeMap<OsString, OsString>,
    scratch: &Scratch,
    stdin: Option<&Path>,
    limits: &Limits,
    interrupt: &AtomicBool,
) -> Result<Finished, ApplicationError> {
    let clock = Instant::now();
    let mut family = start(command, environment, scratch, stdin)?;
    let mut stdout = Capture::new(family.reaper.stdout.take());
    let mut stderr = Capture::new(family.reaper.stderr.take());
    let captures = [&mut stdout, &mut stderr];
    let deadline = clock + limits.timeout;
    let stopped = watch(&family, captures, scratch, limits, deadline, interrupt);
    let ended = family.end(PATIENCE).map_err(ApplicationError::Watch)?;
    let status = ended.ok_or(ApplicationError::Stuck { pid: family.program })?;
    let elapsed = clock.elapsed();
    let within = stdout.finish(limits.output) && stderr.finish(limits.output);
    let ended = match stopped.map_err(ApplicationError::Watch)? {
        Some(Stop::Interrupt) => return Err(ApplicationError::Interrupted),
        Some(Stop::Limit(ended)) => ended,
        None if !within || scratch.size() > limits.output => Ended::OutputTooLarge,
        None => status.into(),
    };
    Ok(Finished { ended, stdout: stdout.bytes, stderr: stderr.bytes, elapsed })
}

/// Starts a program as the leader of a session of its own.
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
    // SAFETY: between fork and exec a process may only do what is safe in a signal handler.
    // `settle` makes system calls and nothing else: it takes no lock and allocates nothing.
    unsafe { ProcessTree::start(program, settle) }
        .map_err(|reason| ApplicationError::Start { program: command.program.clone(), reason })
}

/// Prepares the new process, in which it runs: it leads a session, no signal is blocked, it leaves no
/// core file, and has the same addresses each time.
fn settle() -> io::Result<()> {
    setsid()?;
    let mut none = MaybeUninit::uninit();
    // SAFETY: system calls on this process, and a set on its stack.
    unsafe {
        // What asks this tool to end came to its whole group, from which this process has parted.
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut());
    }
    // Where the machine's memory runs out, the kernel is to end the program, not this one. Some
    // containers have no such file.
    if let Ok(file) = open(c"/proc/self/oom_score_adj", OFlags::WRONLY, Mode::empty()) {
        let _ = rustix::io::write(&file, b"1000");
    }
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    // SAFETY: personality(2) takes a number and touches no memory. Some containers forbid it;
    // addresses then differ from run to run, which the fault-free runs show if it matters.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    Ok(())
}

/// Why a program is ended.
enum Stop {
    Limit(Ended),
    Interrupt,
}

/// Takes what a program writes until it ends by itself, or says why it has to be ended.
fn watch(
    family: &ProcessTree,
    mut captures: [&mut Capture; 2],
    scratch: &Scratch,
    limits: &Limits,
    deadline: Instant,
    interrupt: &AtomicBool,
) -> io::Result<Option<Stop>> {
    // Readable when the program and all of its own have ended; they need not be waited for.
    let reaper = Pid::from_child(&family.reaper);
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
            if !capture.take(limits.output)? {
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
        let mut resident = memory::resident_of(family.program);
        if now >= next_memory {
            resident = memory::resident(reaper.as_raw_nonzero().get())?;
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
