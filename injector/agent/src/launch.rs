//! Starts applications with the agent, which is loaded because of environment variables.

use crate::devices::{ASSEMBLER, DevicesError, cuda_folder, devices_folder};
use crate::process_tree::{ProcessTree, die_by, signals};
use crate::run_files::RunFiles;
use crate::session::{Session, VARIABLE};
use crate::tool::{TOOLS, ToolPath, tools_environment};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// The file name of the agent library.
const AGENT: &str = "libflipwave_agent.so";
/// The file name of the preload shim, which loads the agent when a device is opened.
const PRELOAD_SHIM: &str = "libflipwave_preload.so";

/// The agent library and the preload shim.
#[derive(Clone, Debug)]
pub struct Library {
    agent: PathBuf,
    preload_shim: PathBuf,
    /// The folder below which the device files are kept.
    cache: PathBuf,
}

/// Errors returned when finding the agent library or preparing its device files.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// No folder contains both libraries.
    #[error(
        "cannot find {AGENT} and {PRELOAD_SHIM}, searched {}; they are built with the program and must \
         be kept next to it",
        searched.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Missing {
        /// The searched folders.
        searched: Vec<PathBuf>,
    },
    /// The path of the preload shim contains a separator of `LD_PRELOAD`.
    #[error(
        "{} cannot be loaded into applications: the path contains a space or a colon; move it to a \
         path without them",
        file.display()
    )]
    UnusablePath {
        /// The preload shim.
        file: PathBuf,
    },
    /// The device files cannot be written.
    #[error(transparent)]
    Devices(#[from] DevicesError),
}

/// Environment variables, by name.
pub type Environment = Vec<(&'static str, OsString)>;

impl Library {
    /// Finds the libraries next to the running program. Device files are kept below `cache`.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn find(cache: &Path) -> Result<Library, LibraryError> {
        let program = std::env::current_exe().unwrap_or_default();
        let folder = program.parent().unwrap_or(Path::new("."));
        // Cargo puts the newest build into `deps`; next to the program there may be an older one.
        let searched: Vec<PathBuf> =
            ["deps", "", "..", "../lib"].map(|subfolder| folder.join(subfolder)).to_vec();
        let in_folder = |folder: &PathBuf| folder.join(AGENT);
        let has_both = |agent: &PathBuf| {
            [AGENT, PRELOAD_SHIM].iter().all(|name| agent.with_file_name(name).is_file())
        };
        let agent = searched.iter().map(in_folder).find(has_both);
        let agent = agent.and_then(|agent| agent.canonicalize().ok());
        let agent = agent.ok_or(LibraryError::Missing { searched })?;
        let preload_shim = agent.with_file_name(PRELOAD_SHIM);
        // The separators of `LD_PRELOAD` (ld.so(8)).
        if preload_shim.as_os_str().as_encoded_bytes().iter().any(|byte| b" :".contains(byte)) {
            return Err(LibraryError::UnusablePath { file: preload_shim });
        }
        Ok(Library { agent, preload_shim, cache: cache.to_owned() })
    }

    /// The file of the agent library.
    pub fn file(&self) -> &Path {
        &self.agent
    }

    /// The environment variable with the library search path.
    pub const PATHS: &str = "LD_LIBRARY_PATH";
    /// The environment variable with the preloaded libraries.
    pub const PRELOAD: &str = "LD_PRELOAD";
    /// The environment variable with the folder of device files.
    pub const DEVICES: &str = "FLIPWAVE_DEVICES";

    /// The variables to set for an application that inherits the environment of this process.
    ///
    /// # Errors
    /// [`LibraryError::Devices`].
    pub fn environment(&self, session: &Session) -> Result<Environment, LibraryError> {
        self.environment_with(session, |name| std::env::var_os(name))
    }

    /// The variables to set for an application whose other variables are returned by `inherited`.
    ///
    /// # Errors
    /// As [`Library::environment`].
    pub fn environment_with(
        &self,
        session: &Session,
        inherited: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Environment, LibraryError> {
        let path = session.task.tool_path().unwrap_or(ToolPath::Embedded);
        let mut all = self.variables(session, Some(path), inherited(TOOLS));
        if path != ToolPath::Hardware {
            let mut preloads = self.preload_shim.clone().into_os_string();
            if let Some(inherited) = inherited(Library::PRELOAD).filter(|list| !list.is_empty()) {
                preloads.push(":");
                preloads.push(inherited);
            }
            all.push((Library::PRELOAD, preloads));
            if session.is_for_ptx() {
                let folder = cuda_folder(&self.agent, &self.cache)?;
                for name in ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"] {
                    if inherited(name).is_none() {
                        all.push((name, folder.join(ASSEMBLER).into()));
                    }
                }
                let mut paths = folder.into_os_string();
                if let Some(inherited) = inherited(Library::PATHS).filter(|list| !list.is_empty()) {
                    paths.push(":");
                    paths.push(inherited);
                }
                all.push((Library::PATHS, paths));
                return Ok(all);
            }
            all.push((Library::DEVICES, devices_folder(session, &self.cache)?.into()));
            // Makes HIP copy GPU memory for the host instead of mapping it, so that captures see the
            // bytes that the host reads.
            all.push(("ROC_ENABLE_LARGE_BAR", "0".into()));
        }
        Ok(all)
    }

    /// The variables to set for an application that runs on this machine's GPU.
    pub fn environment_on_hardware(
        &self,
        session: &Session,
        inherited: impl Fn(&str) -> Option<OsString>,
    ) -> Environment {
        self.variables(session, session.task.tool_path(), inherited(TOOLS))
    }

    /// The session, the process table and, if `path` is given, the variables that make the runtime load
    /// the agent in front of the tools libraries in `tools`.
    fn variables(
        &self,
        session: &Session,
        path: Option<ToolPath>,
        tools: Option<OsString>,
    ) -> Environment {
        // A session is plain data, whose serialization cannot fail.
        let text = serde_json::to_string(session).unwrap_or_default();
        let tools = path.map(|_| tools_environment(&self.agent, tools));
        let processes = session.processes.as_deref().map(RunFiles::variable);
        let all = std::iter::once((VARIABLE, text.into())).chain(processes);
        all.chain(tools.into_iter().flatten()).collect()
    }
}

/// Disables address space layout randomization in programs that this process starts.
fn disable_address_randomization() {
    /// Queries the current value.
    const QUERY: libc::c_ulong = 0xffff_ffff;
    // SAFETY: changes a flag of this process. If that is not permitted, addresses stay randomized.
    unsafe {
        let now = libc::personality(QUERY);
        if now >= 0 {
            libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
    }
}

/// The treatment of an application that keeps running after a stop signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPolicy {
    /// The signal is only forwarded, and the application decides.
    ForwardOnly,
    /// The application's process tree is killed after 1.5 seconds.
    KillAfterGrace,
}

/// The time between a stop signal and killing the application.
const GRACE: Duration = Duration::from_millis(1500);

/// The interval at which a running application is polled.
const TICK: Duration = Duration::from_millis(100);

/// Runs an application and waits until its whole process tree has ended; processes that outlive the
/// application are killed. Calls `poll` periodically and once at the end.
///
/// Signals sent to this process are forwarded to the application while it runs; Ctrl-C in a terminal
/// reaches both. `policy` selects what happens if the application keeps running after a stop signal.
/// Addresses are not randomized, so that runs of a program are alike. If this process is killed, the
/// application is killed too, and the folder of `files` is removed.
///
/// # Errors
/// If the application cannot be started or waited for.
pub fn run_application(
    command: &[OsString],
    environment: &[(&str, OsString)],
    files: &RunFiles,
    policy: StopPolicy,
    mut poll: impl FnMut(),
) -> std::io::Result<ExitStatus> {
    let (program, arguments) =
        command.split_first().ok_or(std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
    disable_address_randomization();
    let mut application = Command::new(program);
    application.args(arguments).envs(environment.iter().map(|(name, value)| (*name, value)));
    // A signal that arrives now stays pending until it can be forwarded.
    let blocked = BlockedSignals::new();
    let before = blocked.before;
    let unblock = move || {
        set_mask(libc::SIG_SETMASK, &before);
        Ok(())
    };
    // SAFETY: `unblock` makes a system call and nothing else.
    let mut tree = unsafe { ProcessTree::start_with(application, Some(files.folder()), unblock) }?;
    let forwarding = Forwarding::to(tree.program);
    drop(blocked);
    // SAFETY: makes a new file, or fails.
    let end = unsafe { libc::syscall(libc::SYS_pidfd_open, tree.reaper.id(), 0) } as libc::c_int;
    let mut wait = libc::pollfd { fd: end, events: libc::POLLIN, revents: 0 };
    let mut deadline = None;
    let status = loop {
        // SAFETY: one entry is read and written. Without a file it is a sleep.
        unsafe { libc::poll(&raw mut wait, 1, TICK.as_millis() as libc::c_int) };
        if let Some(status) = tree.reaper.try_wait()? {
            break status;
        }
        if policy == StopPolicy::KillAfterGrace && STOP_RECEIVED.load(Ordering::Acquire) {
            deadline.get_or_insert_with(|| Instant::now() + GRACE);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            tree.kill();
        }
        poll();
    };
    drop(forwarding);
    poll();
    Ok(status)
}

/// `true` once a stop signal has been received.
static STOP_RECEIVED: AtomicBool = AtomicBool::new(false);

/// The process that signals are forwarded to; 0 for none.
static APPLICATION: AtomicI32 = AtomicI32::new(0);

/// The signals that are forwarded to the application.
const FORWARDED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// Blocks [`FORWARDED`] in this thread until it is dropped.
struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> BlockedSignals {
        BlockedSignals { before: set_mask(libc::SIG_BLOCK, &signals(&FORWARDED)) }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        set_mask(libc::SIG_SETMASK, &self.before);
    }
}

/// Changes the signal mask of this thread and returns the previous one.
fn set_mask(how: libc::c_int, set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = signals(&[]);
    // SAFETY: reads one set and writes another.
    unsafe { libc::pthread_sigmask(how, set, &raw mut before) };
    before
}

/// Forwards [`FORWARDED`] to the application, except signals that this process ignores, until it is
/// dropped.
struct Forwarding {
    /// The previous action of each signal.
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Forwarding {
    fn to(application: i32) -> Forwarding {
        APPLICATION.store(application, Ordering::Release);
        let mut before = Vec::new();
        for signal in FORWARDED {
            // SAFETY: both are structures of numbers; the handler makes one system call.
            unsafe {
                let (mut new, mut old): (libc::sigaction, libc::sigaction) = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut old);
                if old.sa_sigaction == libc::SIG_IGN {
                    continue;
                }
                new.sa_sigaction = forward as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(signal, &raw const new, std::ptr::null_mut());
                before.push((signal, old));
            }
        }
        Forwarding { before }
    }
}

impl Drop for Forwarding {
    /// Stops forwarding, because the process ID may be reused from now on.
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the action that the system returned for this signal.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        APPLICATION.store(0, Ordering::Release);
    }
}

/// Signal handler that forwards a signal to the application.
extern "C" fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    /// Sent by the kernel for a terminal, which also signals the application.
    const KERNEL: libc::c_int = 0x80;
    if matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP) {
        STOP_RECEIVED.store(true, Ordering::Release);
    }
    let application = APPLICATION.load(Ordering::Acquire);
    // SAFETY: the kernel passes valid information about the signal.
    unsafe {
        if application > 0 && (*info).si_code != KERNEL {
            libc::kill(application, signal);
        }
    }
}

/// Returns the exit code of the application. If a signal ended the application, ends this process by the
/// same signal.
pub fn end_as(status: ExitStatus) -> u8 {
    if let Some(signal) = status.signal() {
        die_by(signal);
    }
    exit_code(status)
}

/// The exit code with which a shell would report the status of a process.
pub fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
