//! How the library gets into an application: by the environment of its process.

use crate::devices::{DevicesError, devices_folder};
use crate::reaper::{Family, die_by, signals};
use crate::run_files::RunFiles;
use crate::session::{Session, VARIABLE};
use crate::tool::{TOOLS, ToolPath, tools_environment};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// The library's file.
const FILE: &str = "libflipwave_agent.so";
/// What is loaded before all else, and loads the library when a device is opened. It is beside it.
const PRELOADED: &str = "libflipwave_preload.so";

/// The library, ready to be loaded into applications.
#[derive(Clone, Debug)]
pub struct Library {
    file: PathBuf,
    /// What is loaded before all else.
    preloaded: PathBuf,
    /// Where folders with files of the driver are kept.
    cache: PathBuf,
}

/// No library, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It is not where it should be.
    #[error(
        "{FILE} and {PRELOADED} are in none of {}; they are built with the program, and have to be \
         kept beside it",
        looked.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Missing {
        /// Folders that were looked in.
        looked: Vec<PathBuf>,
    },
    /// It is in a folder that no list of such libraries can name.
    #[error(
        "{} cannot be loaded into applications: keep it where no folder's name has a space or a \
         colon",
        file.display()
    )]
    Unnameable {
        /// The library.
        file: PathBuf,
    },
    /// What the driver shows of the GPUs cannot be written.
    #[error(transparent)]
    Devices(#[from] DevicesError),
}

/// Variables.
pub type Environment = Vec<(&'static str, OsString)>;

impl Library {
    /// Finds the library beside the running program. Files that show the GPUs are kept below `cache`.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn find(cache: &Path) -> Result<Library, LibraryError> {
        let program = std::env::current_exe().unwrap_or_default();
        let beside = program.parent().unwrap_or(Path::new("."));
        // Cargo leaves the newest in `deps`; beside the program there may be one of an earlier build.
        let looked: Vec<PathBuf> =
            ["deps", "", "..", "../lib"].map(|folder| beside.join(folder)).to_vec();
        let in_folder = |folder: &PathBuf| folder.join(FILE);
        let has_both = |file: &PathBuf| {
            [FILE, PRELOADED].iter().all(|name| file.with_file_name(name).is_file())
        };
        let file = looked.iter().map(in_folder).find(has_both);
        let file = file.and_then(|file| file.canonicalize().ok());
        let file = file.ok_or(LibraryError::Missing { looked })?;
        let preloaded = file.with_file_name(PRELOADED);
        // How lists of libraries are divided (ld.so(8)).
        if preloaded.as_os_str().as_encoded_bytes().iter().any(|byte| b" :".contains(byte)) {
            return Err(LibraryError::Unnameable { file: preloaded });
        }
        Ok(Library { file, preloaded, cache: cache.to_owned() })
    }

    /// Where the library is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The variable with the folders of libraries.
    pub const PATHS: &str = "LD_LIBRARY_PATH";
    /// The variable with what the system's loader loads before all else.
    pub const PRELOAD: &str = "LD_PRELOAD";
    /// The variable with the folder of files that show the GPUs.
    pub const DEVICES: &str = "FLIPWAVE_DEVICES";

    /// What has to be in the environment of an application, beside what is in this process's.
    ///
    /// # Errors
    /// [`LibraryError::Devices`].
    pub fn environment(&self, session: &Session) -> Result<Environment, LibraryError> {
        self.environment_beside(session, |name| std::env::var_os(name))
    }

    /// The same for an application that otherwise gets the variables that `others` gives by name.
    ///
    /// # Errors
    /// As [`Library::environment`].
    pub fn environment_beside(
        &self,
        session: &Session,
        others: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Environment, LibraryError> {
        let path = session.task.tool_path().unwrap_or(ToolPath::Embedded);
        let mut all = self.variables(session, Some(path), others(TOOLS));
        if path != ToolPath::Hardware {
            let mut preloaded = self.preloaded.clone().into_os_string();
            if let Some(others) = others(Library::PRELOAD).filter(|others| !others.is_empty()) {
                preloaded.push(":");
                preloaded.push(others);
            }
            all.push((Library::PRELOAD, preloaded));
            all.push((Library::DEVICES, devices_folder(session, &self.cache)?.into()));
            // HIP then has the GPU's memory copied for the host, where it would have it read by the
            // processor: captures see what the host gets.
            all.push(("ROC_ENABLE_LARGE_BAR", "0".into()));
        }
        Ok(all)
    }

    /// The same for an application that runs on this machine's own GPU.
    pub fn environment_on_hardware(
        &self,
        session: &Session,
        others: impl Fn(&str) -> Option<OsString>,
    ) -> Environment {
        self.variables(session, session.task.tool_path(), others(TOOLS))
    }

    fn variables(
        &self,
        session: &Session,
        path: Option<ToolPath>,
        tools: Option<OsString>,
    ) -> Environment {
        // A session is plain data.
        let text = serde_json::to_string(session).unwrap_or_default();
        let own = path.map(|_| tools_environment(&self.file, tools));
        let processes = session.processes.as_deref().map(RunFiles::variable);
        let all = std::iter::once((VARIABLE, text.into())).chain(processes);
        all.chain(own.into_iter().flatten()).collect()
    }
}

/// Lets programs that this process starts have the same addresses each time.
fn same_addresses() {
    const ONLY_ASKED: libc::c_ulong = 0xffff_ffff;
    // SAFETY: changes a flag of this process. Where that is not allowed addresses differ.
    unsafe {
        let now = libc::personality(ONLY_ASKED);
        if now >= 0 {
            libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
    }
}

/// What becomes of an application that goes on when it was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It goes on: signals are its own.
    GoesOn,
    /// It is killed with all that it has started, 1.5 seconds later.
    IsKilled,
}

/// How long an application may take to end in good order when it was asked to.
const GRACE: Duration = Duration::from_millis(1500);

/// How often whoever runs an application looks at it.
const TICK: Duration = Duration::from_millis(100);

/// Runs the application, and waits until it and all that it has started have ended: with it, what is
/// left ends. Calls `look` now and then meanwhile, and when it is over. Signals that are sent to this
/// process are the application's as long as it runs; so is what the terminal sends to both, Ctrl-C
/// for example. `asked` says what becomes of it when it goes on after one that asks it to end.
/// Addresses are not randomised, so that runs of a program are alike. If this process is
/// killed, so is the application, and its files are removed with their folder.
///
/// # Errors
/// If it cannot be started, or waited for.
pub fn run_application(
    command: &[OsString],
    environment: &[(&str, OsString)],
    files: &RunFiles,
    asked: Asked,
    mut look: impl FnMut(),
) -> std::io::Result<ExitStatus> {
    let (program, arguments) =
        command.split_first().ok_or(std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
    same_addresses();
    let mut application = Command::new(program);
    application.args(arguments).envs(environment.iter().map(|(name, value)| (*name, value)));
    // One that comes now is passed on as soon as there is somebody to get it.
    let held = Held::new();
    let before = held.before;
    let unblock = move || {
        set_mask(libc::SIG_SETMASK, &before);
        Ok(())
    };
    // SAFETY: `unblock` makes a system call and nothing else.
    let mut family = unsafe { Family::start_with(application, Some(files.folder()), unblock) }?;
    let forwarding = Forwarding::to(family.program);
    drop(held);
    // SAFETY: makes a new file, or fails.
    let end = unsafe { libc::syscall(libc::SYS_pidfd_open, family.reaper.id(), 0) } as libc::c_int;
    let mut wait = libc::pollfd { fd: end, events: libc::POLLIN, revents: 0 };
    let mut deadline = None;
    let status = loop {
        // SAFETY: one entry is read and written. Without a file it is a sleep.
        unsafe { libc::poll(&raw mut wait, 1, TICK.as_millis() as libc::c_int) };
        if let Some(status) = family.reaper.try_wait()? {
            break status;
        }
        if asked == Asked::IsKilled && IS_ASKED_TO_END.load(Ordering::Acquire) {
            deadline.get_or_insert_with(|| Instant::now() + GRACE);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            family.kill();
        }
        look();
    };
    drop(forwarding);
    look();
    Ok(status)
}

/// Whether a signal has come that asks a program to end.
static IS_ASKED_TO_END: AtomicBool = AtomicBool::new(false);

/// Who gets the signals that are sent to this process; 0 for nobody else.
static APPLICATION: AtomicI32 = AtomicI32::new(0);

/// The signals that are the application's.
const FORWARDED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

/// These signals are blocked in this thread until this is dropped.
struct Held {
    before: libc::sigset_t,
}

impl Held {
    fn new() -> Held {
        Held { before: set_mask(libc::SIG_BLOCK, &signals(&FORWARDED)) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        set_mask(libc::SIG_SETMASK, &self.before);
    }
}

/// Changes which signals are blocked in this thread; which were.
fn set_mask(how: libc::c_int, set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = signals(&[]);
    // SAFETY: reads one set and writes another.
    unsafe { libc::pthread_sigmask(how, set, &raw mut before) };
    before
}

/// This process passes signals on, but for those that it ignores, until this is dropped.
struct Forwarding {
    /// What was done with each before.
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
                new.sa_sigaction = pass_on as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(signal, &raw const new, std::ptr::null_mut());
                before.push((signal, old));
            }
        }
        Forwarding { before }
    }
}

impl Drop for Forwarding {
    /// The application's number may be another process's from now on.
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: what the system has given for this signal.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
        APPLICATION.store(0, Ordering::Release);
    }
}

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    /// From a terminal: the application has it, too.
    const KERNEL: libc::c_int = 0x80;
    if matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP) {
        IS_ASKED_TO_END.store(true, Ordering::Release);
    }
    let application = APPLICATION.load(Ordering::Acquire);
    // SAFETY: the kernel gives what it says of the signal.
    unsafe {
        if application > 0 && (*info).si_code != KERNEL {
            libc::kill(application, signal);
        }
    }
}

/// Ends this process as the application has ended, if a signal has ended it; else its exit code.
pub fn end_as(status: ExitStatus) -> u8 {
    if let Some(signal) = status.signal() {
        die_by(signal);
    }
    exit_code(status)
}

/// The exit code by which a shell reports how a process ended.
pub fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
