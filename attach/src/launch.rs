//! How the library gets into an application: by the environment of its process.

use crate::reaper::{Family, die_by};
use crate::session::{Session, VARIABLE};
use crate::tool::{TOOLS, ToolPath, tools_environment};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The name under which AMD's runtime looks for the library.
const SONAME: &str = "libhsakmt.so.1";
/// The library's own.
const FILE: &str = "libflipwave_attach.so";

/// The library, ready to be loaded into applications.
#[derive(Clone, Debug)]
pub struct Library {
    /// A folder in which it has the name that the runtime looks for.
    folder: PathBuf,
}

/// No library, or none that can be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// It is not where it should be.
    #[error(
        "{FILE} is in none of {}; it is built with the program, and has to be kept beside it",
        looked.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Missing {
        /// Folders that were looked in.
        looked: Vec<PathBuf>,
    },
    /// It cannot be given its other name.
    #[error("cannot keep a link to the library in {}: {reason}; set FLIPWAVE_CACHE to another folder", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
}

impl Library {
    /// Finds the library beside the running program, and keeps a link to it in a folder of its own
    /// below `cache`.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn find(cache: &Path) -> Result<Library, LibraryError> {
        let program = std::env::current_exe().unwrap_or_default();
        let beside = program.parent().unwrap_or(Path::new("."));
        let looked: Vec<PathBuf> =
            ["", "deps", "..", "../lib"].map(|folder| beside.join(folder)).to_vec();
        let file = looked.iter().map(|folder| folder.join(FILE)).find(|file| file.is_file());
        let file = file.and_then(|file| file.canonicalize().ok());
        let file = file.ok_or(LibraryError::Missing { looked })?;
        let mut hasher = DefaultHasher::new();
        file.hash(&mut hasher);
        let folder = cache.join(format!("runtime-{:016x}", hasher.finish()));
        let failed = |reason| LibraryError::Folder { folder: folder.clone(), reason };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let link = folder.join(SONAME);
        if std::fs::read_link(&link).is_ok_and(|target| target == file) {
            return Ok(Library { folder });
        }
        // Another process may do the same at the same time.
        let own = folder.join(format!("{SONAME}.{}", std::process::id()));
        let _ = std::fs::remove_file(&own);
        std::os::unix::fs::symlink(&file, &own).map_err(failed)?;
        std::fs::rename(&own, &link).map_err(failed)?;
        Ok(Library { folder })
    }

    /// The variable with the folders of libraries.
    pub const PATHS: &str = "LD_LIBRARY_PATH";

    /// What has to be in the environment of an application, beside what is in this process's.
    pub fn environment(&self, session: &Session) -> Vec<(&'static str, OsString)> {
        self.environment_beside(session, |name| std::env::var_os(name))
    }

    /// The same for an application that otherwise gets the variables that `others` gives by name.
    pub fn environment_beside(
        &self,
        session: &Session,
        others: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        let path = session.task.tool_path().unwrap_or(ToolPath::Embedded);
        let mut all = self.variables(session, Some(path), others(TOOLS));
        if path != ToolPath::Hardware {
            let mut paths = self.folder.clone().into_os_string();
            if let Some(others) = others(Library::PATHS).filter(|others| !others.is_empty()) {
                paths.push(":");
                paths.push(others);
            }
            all.push((Library::PATHS, paths));
            // HIP then has the GPU's memory copied for the host, where it would have it read by the
            // processor: captures see what the host gets.
            all.push(("ROC_ENABLE_LARGE_BAR", "0".into()));
        }
        all
    }

    /// The same for an application that runs on this machine's own GPU.
    pub fn environment_on_hardware(
        &self,
        session: &Session,
        others: impl Fn(&str) -> Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        self.variables(session, session.task.tool_path(), others(TOOLS))
    }

    fn variables(
        &self,
        session: &Session,
        path: Option<ToolPath>,
        tools: Option<OsString>,
    ) -> Vec<(&'static str, OsString)> {
        // A session is plain data.
        let text = serde_json::to_string(session).unwrap_or_default();
        let own = path.map(|path| tools_environment(path, &self.folder.join(SONAME), tools));
        std::iter::once((VARIABLE, text.into())).chain(own.into_iter().flatten()).collect()
    }
}

/// Becomes the application: this process goes on as its program. Returns only if that fails.
///
/// Addresses are not randomised, so that runs of a program are alike.
pub fn become_application(
    command: &[OsString],
    environment: &[(&str, OsString)],
) -> std::io::Error {
    let Some((program, arguments)) = command.split_first() else {
        return std::io::Error::from(std::io::ErrorKind::InvalidInput);
    };
    same_addresses();
    let variables = environment.iter().map(|(name, value)| (*name, value));
    Command::new(program).args(arguments).envs(variables).exec()
}

/// Lets programs that this process becomes have the same addresses each time.
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

/// How often whoever runs an application looks at it.
const TICK: Duration = Duration::from_millis(100);

/// Runs the application, and waits until it and all that it has started have ended: with it, what is
/// left ends. Calls `look` now and then meanwhile, and when it is over. Signals that are sent to this
/// process are the application's; so is what the terminal sends to both, Ctrl-C for example.
///
/// # Errors
/// If it cannot be started, or waited for.
pub fn run_application(
    command: &[OsString],
    environment: &[(&str, OsString)],
    mut look: impl FnMut(),
) -> std::io::Result<ExitStatus> {
    let (program, arguments) =
        command.split_first().ok_or(std::io::Error::from(std::io::ErrorKind::InvalidInput))?;
    same_addresses();
    let mut application = Command::new(program);
    application.args(arguments).envs(environment.iter().map(|(name, value)| (*name, value)));
    // SAFETY: does nothing.
    let mut family = unsafe { Family::start(application, || Ok(())) }?;
    pass_signals_on(family.program);
    // SAFETY: makes a new file, or fails.
    let end = unsafe { libc::syscall(libc::SYS_pidfd_open, family.reaper.id(), 0) } as libc::c_int;
    let mut wait = libc::pollfd { fd: end, events: libc::POLLIN, revents: 0 };
    let status = loop {
        // SAFETY: one entry is read and written. Without a file it is a sleep.
        unsafe { libc::poll(&raw mut wait, 1, TICK.as_millis() as libc::c_int) };
        if let Some(status) = family.reaper.try_wait()? {
            break status;
        }
        look();
    };
    look();
    Ok(status)
}

/// Who gets the signals that are sent to this process.
static APPLICATION: AtomicI32 = AtomicI32::new(0);

/// Has this process pass signals on, unless it ignores them.
fn pass_signals_on(application: i32) {
    APPLICATION.store(application, Ordering::Release);
    let signals =
        [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];
    for signal in signals {
        // SAFETY: both are structures of numbers; the handler makes one system call.
        unsafe {
            let (mut own, mut before): (libc::sigaction, libc::sigaction) = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut before);
            if before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            own.sa_sigaction = pass_on as *const () as usize;
            own.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const own, std::ptr::null_mut());
        }
    }
}

extern "C" fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    /// From a terminal: the application has it, too.
    const KERNEL: libc::c_int = 0x80;
    // SAFETY: the kernel gives it; a process that has ended and was waited for gets nothing, as
    // long as its number is not used again.
    unsafe {
        if (*info).si_code != KERNEL {
            libc::kill(APPLICATION.load(Ordering::Acquire), signal);
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

/// The exit code by which a shell tells how a process ended.
pub fn exit_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
