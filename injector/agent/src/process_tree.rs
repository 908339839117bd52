//! Runs a program and ensures that its whole process tree ends with it or with this process.
//!
//! An intermediate process, the reaper, runs between this process and the program. It is a child subreaper
//! (`PR_SET_CHILD_SUBREAPER`, prctl(2)): processes that the program starts and abandons, even in other
//! sessions, become children of the reaper. When the program has ended, or this process requests it or is
//! gone, the reaper kills its children until none is left. It cannot kill other processes: the process ID
//! of a child is not reused before the reaper waits for the child.

use crate::launch::exit_code;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// A running program with its process tree.
#[derive(Debug)]
pub struct ProcessTree {
    /// The reaper, which has the standard streams and the exit status of the program.
    pub reaper: Child,
    /// The process ID of the program.
    pub program: i32,
    /// The write end of a pipe. The reaper kills the tree when it is closed, also by the end of this
    /// process.
    hold: Option<OwnedFd>,
}

impl ProcessTree {
    /// Starts a program; its process calls `prepare` before exec.
    ///
    /// # Errors
    /// If the program cannot be started or `prepare` fails.
    ///
    /// # Safety
    /// `prepare` must be async-signal-safe, because it runs between fork and exec.
    pub unsafe fn start(
        command: Command,
        prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<ProcessTree> {
        // SAFETY: promised by the caller.
        unsafe { ProcessTree::start_with(command, None, prepare) }
    }

    /// Works like [`ProcessTree::start`]. If this process is gone when the tree has ended, the reaper also
    /// removes `folder` and the files in it.
    ///
    /// # Errors
    /// As [`ProcessTree::start`].
    ///
    /// # Safety
    /// As [`ProcessTree::start`].
    pub unsafe fn start_with(
        mut command: Command,
        folder: Option<&Path>,
        mut prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<ProcessTree> {
        let folder = folder.and_then(|folder| CString::new(folder.as_os_str().as_bytes()).ok());
        let cleanup = Cleanup { owner: std::process::id(), folder };
        let ([held, hold], [id_reader, id_writer]) = (pipe()?, pipe()?);
        let (held_fd, id_fd) = (held.as_raw_fd(), id_writer.as_raw_fd());
        // SAFETY: `split` only makes system calls; `prepare` is the caller's responsibility.
        unsafe {
            command.pre_exec(move || {
                split(held_fd, id_fd, &cleanup)?;
                prepare()
            });
        }
        let reaper = command.spawn()?;
        drop((held, id_writer));
        let mut id = [0; 4];
        // The reaper writes the process ID before the program can start.
        File::from(id_reader).read_exact(&mut id)?;
        Ok(ProcessTree { reaper, program: i32::from_ne_bytes(id), hold: Some(hold) })
    }

    /// Kills the remaining processes of the tree, without waiting for their end.
    pub fn kill(&mut self) {
        self.hold = None;
    }

    /// Kills the remaining processes of the tree and waits until they have ended. Returns the exit status
    /// of the program, or `None` if the tree has not ended within `patience`.
    ///
    /// # Errors
    /// If waiting fails.
    pub fn end(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        self.kill();
        let clock = Instant::now();
        loop {
            let status = self.reaper.try_wait()?;
            if status.is_some() || clock.elapsed() > patience {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn pipe() -> io::Result<[OwnedFd; 2]> {
    let mut ends = [0; 2];
    // SAFETY: writes two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were just created and have no other owner.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// A folder to remove if its owner is gone.
struct Cleanup {
    /// The process ID of the owner, which is the parent of the reaper.
    owner: u32,
    folder: Option<CString>,
}

impl Cleanup {
    /// Removes the folder and its files unless the owner still runs.
    fn run(&self) {
        // SAFETY: system calls with zero-terminated names.
        unsafe {
            if libc::getppid() as u32 == self.owner {
                return;
            }
            if let Some(folder) = &self.folder {
                entries(folder, |directory, name| {
                    libc::unlinkat(directory, name.as_ptr(), 0);
                });
                libc::rmdir(folder.as_ptr());
            }
        }
    }
}

/// Forks the calling process into the reaper, which never returns from here, and its child, which becomes
/// the program and ends with the reaper.
fn split(held: RawFd, id_writer: RawFd, cleanup: &Cleanup) -> io::Result<()> {
    // SAFETY: system calls on this process, which has one thread, and on its stack.
    unsafe {
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) != 0 {
            return Err(io::Error::last_os_error());
        }
        let (mut children, mut before) = (signals(&[libc::SIGCHLD]), signals(&[]));
        // Done before the fork, because it discards pending signals.
        let inherited = libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const children, &raw mut before);
        let reaper = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::signal(libc::SIGCHLD, inherited);
                libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != reaper {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                Ok(())
            }
            program => reap(program, held, id_writer, &raw mut children, cleanup),
        }
    }
}

/// Creates a set of signals.
pub fn signals(all: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        all.iter().for_each(|signal| {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        });
        set.assume_init()
    }
}

/// Runs the reaper until the process tree has ended.
///
/// # Safety
/// The calling thread is the only one of its process, and the signals `children` are blocked.
unsafe fn reap(
    program: libc::pid_t,
    held: RawFd,
    id_writer: RawFd,
    children: *mut libc::sigset_t,
    cleanup: &Cleanup,
) -> ! {
    // SAFETY: system calls on this process and on its stack.
    unsafe {
        let id = program.to_ne_bytes();
        libc::write(id_writer, id.as_ptr().cast(), id.len());
        libc::prctl(libc::PR_SET_NAME, c"flipwave-reaper".as_ptr());
        // A terminal signals the whole process group; those signals are for the program.
        for signal in (1..32).filter(|signal| *signal != libc::SIGCHLD) {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Closes the inherited files, so that readers of the program's output see its end.
        let held = held as libc::c_uint;
        if held > 0 {
            close(0, held - 1);
        }
        close(held + 1, libc::c_uint::MAX);
        let ended = libc::signalfd(-1, children, libc::SFD_NONBLOCK);
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut ends = [poll(held as RawFd), poll(ended)];
        let (mut status, mut has_children) = (None, true);
        while has_children && status.is_none() && ends[0].revents == 0 {
            libc::poll(ends.as_mut_ptr(), 2, -1);
            let mut event = [0u8; 128];
            libc::read(ended, event.as_mut_ptr().cast(), event.len());
            has_children = collect(program, &mut status);
        }
        while has_children {
            if !kill_children() {
                // Without /proc, the program is the only known child.
                if status.is_some() {
                    break;
                }
                libc::kill(program, libc::SIGKILL);
            }
            libc::usleep(1000);
            has_children = collect(program, &mut status);
        }
        cleanup.run();
        exit_as(status.unwrap_or(libc::SIGKILL));
    }
}

/// Waits for ended children and stores the status of the program. Returns `true` if children are left.
unsafe fn collect(program: libc::pid_t, status: &mut Option<libc::c_int>) -> bool {
    loop {
        let mut child_status = 0;
        // SAFETY: writes a number.
        match unsafe { libc::waitpid(-1, &raw mut child_status, libc::WNOHANG) } {
            0 => return true,
            -1 => return false,
            child if child == program => *status = Some(child_status),
            _ => {}
        }
    }
}

/// Closes all files with these numbers.
unsafe fn close(first: libc::c_uint, last: libc::c_uint) {
    // SAFETY: this process no longer uses them.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
            let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, 1 << 20) as libc::c_uint;
            (first..=last.min(most)).for_each(|file| {
                libc::close(file as RawFd);
            });
        }
    }
}

/// Kills each child of this process. Returns `false` if /proc cannot be read.
unsafe fn kill_children() -> bool {
    // SAFETY: a system call.
    let reaper = unsafe { libc::getpid() };
    // SAFETY: system calls; only children are killed.
    unsafe {
        entries(c"/proc", |_, name| {
            let process = number(name.to_bytes());
            if process.is_some_and(|process| parent(process) == Some(reaper)) {
                libc::kill(process.unwrap_or(0).max(1), libc::SIGKILL);
            }
        })
    }
}

/// Calls `each` with a folder's file descriptor and each name in the folder. Returns `false` if the folder
/// cannot be opened.
unsafe fn entries(folder: &CStr, mut each: impl FnMut(RawFd, &CStr)) -> bool {
    // SAFETY: system calls that write to the stack.
    unsafe {
        let list = libc::open(folder.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY);
        if list < 0 {
            return false;
        }
        // `struct linux_dirent64` of getdents(2): length at offset 16, name at offset 19.
        let mut buffer = [0u8; 4096];
        loop {
            let length =
                libc::syscall(libc::SYS_getdents64, list, buffer.as_mut_ptr(), buffer.len());
            let length = usize::try_from(length).unwrap_or(0);
            let Some(mut entries) = buffer.get(..length) else { break };
            if entries.is_empty() {
                break;
            }
            while let Some([low, high]) = entries.get(16..18) {
                let length = usize::from(u16::from_ne_bytes([*low, *high]));
                let (entry, following) = entries.split_at(length.clamp(19, entries.len()));
                entries = following;
                if let Ok(name) = CStr::from_bytes_until_nul(&entry[19..]) {
                    each(list, name);
                }
            }
        }
        libc::close(list);
        true
    }
}

/// Parses the number at the start of a text.
fn number(text: &[u8]) -> Option<libc::pid_t> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |sum, digit| {
        let tens = sum.unwrap_or(0i32).saturating_mul(10);
        Some(tens.saturating_add(i32::from(digit - b'0')))
    })
}

/// The parent of a process, unless the process has ended. It is the fourth field of proc_pid_stat(5); the
/// second, in parentheses, may contain any characters.
unsafe fn parent(process: libc::pid_t) -> Option<libc::pid_t> {
    let mut path = [0; 32];
    write!(&mut path[..31], "/proc/{process}/stat").ok()?;
    let mut text = [0u8; 256];
    // SAFETY: the path is zero-terminated, and the text is read to the stack.
    let length = unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY);
        if file < 0 {
            return None;
        }
        let length = libc::read(file, text.as_mut_ptr().cast(), text.len());
        libc::close(file);
        length
    };
    let text = text.get(..usize::try_from(length).ok()?)?;
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    // ") S 123 ..."
    number(text.get(name_end + 4..)?)
}

/// Ends this process with the status of another process.
fn exit_as(status: libc::c_int) -> ! {
    // SAFETY: ends this process.
    unsafe {
        if libc::WIFSIGNALED(status) {
            die_by(libc::WTERMSIG(status));
        }
        libc::_exit(exit_code(ExitStatus::from_raw(status)).into())
    }
}

/// Ends this process by a signal, without a core file. Returns if the signal does not end a process.
pub fn die_by(signal: libc::c_int) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let set = signals(&[signal]);
    // SAFETY: system calls on this process, which is about to end.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    /// Starts a script and waits until it has printed a line.
    fn start(script: &str) -> ProcessTree {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        // SAFETY: `prepare` does nothing.
        let mut tree = unsafe { ProcessTree::start(command, || Ok(())) }.expect("sh");
        let mut line = String::new();
        let stdout = tree.reaper.stdout.take().expect("a pipe");
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut line).expect("a line");
        tree
    }

    fn runs(pid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
    }

    /// Script that starts a process in a new session, whose parents end, and writes its ID to a file.
    fn runaway(file: &std::path::Path) -> String {
        let file = file.display();
        format!(
            "(setsid sh -c 'sh -c \"echo \\$\\$ > {file}.part; mv {file}.part {file}; exec sleep 600\" &' &); until [ -e {file} ]; do sleep 0.01; done; echo ready;"
        )
    }

    #[test]
    fn processes_in_other_sessions_end_with_the_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("exits");
        let script = format!("{} read line < /dev/null; exit 7", runaway(&file));
        let mut tree = start(&script);
        let status = tree.reaper.wait().expect("an end");
        assert!(!runs(process_id(&file)) && !runs(tree.program));
        assert_eq!((status.code(), status.signal()), (Some(7), None));
    }

    #[test]
    fn processes_in_other_sessions_are_killed_with_the_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("stays");
        let mut tree = start(&format!("{} exec sleep 600", runaway(&file)));
        let runaway = process_id(&file);
        assert!(runs(runaway) && runs(tree.program));
        let status = tree.end(Duration::from_secs(60)).expect("watched").expect("an end");
        assert!(!runs(runaway) && !runs(tree.program));
        assert_eq!((status.code(), status.signal()), (None, Some(libc::SIGKILL)));
    }

    fn process_id(file: &Path) -> i32 {
        let text = std::fs::read_to_string(file).expect("a process ID");
        text.trim().parse().expect("a number")
    }

    #[test]
    fn unrelated_processes_are_not_killed() {
        let mut unrelated = Command::new("sleep").arg("600").spawn().expect("sleep");
        let mut tree = start("echo ready; exec sleep 600");
        let status = tree.end(Duration::from_secs(60)).expect("watched").expect("an end");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        assert!(runs(unrelated.id() as i32));
        unrelated.kill().expect("killed");
        unrelated.wait().expect("ended");
    }

    #[test]
    fn missing_program_is_an_error() {
        // The child may end before or after the reaper waits for it.
        for _ in 0..200 {
            let command = Command::new("/missing/program");
            // SAFETY: `prepare` does nothing.
            let error = unsafe { ProcessTree::start(command, || Ok(())) }.expect_err("no program");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
