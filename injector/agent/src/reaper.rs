//! A program and all that it starts, however far that runs from it: a process of its own between
//! this one and the program outlives neither, and leaves nothing of the program behind.
//!
//! That process, the reaper, is a subreaper (`PR_SET_CHILD_SUBREAPER`, prctl(2)): what the program
//! starts and leaves, in a session of its own, too, becomes a child of the reaper. When the program
//! has ended, or this process says so or is gone, the reaper kills its children until none is left.
//! It kills nothing else: a number that it has as a child's cannot be another process's, because
//! nobody but the reaper waits for its children.

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

/// A program that runs, with all that it has started.
#[derive(Debug)]
pub struct Family {
    /// The reaper. Its standard streams, and how it ends, are the program's.
    pub reaper: Child,
    /// The number of the program's process.
    pub program: i32,
    /// The reaper ends the family when this is closed, be it by the end of this process.
    hold: Option<OwnedFd>,
}

impl Family {
    /// Starts a program, whose process calls `prepare` before it becomes the program.
    ///
    /// # Errors
    /// If it cannot be started, or `prepare` fails.
    ///
    /// # Safety
    /// `prepare` does only what is safe in a signal handler: it runs between fork and exec.
    pub unsafe fn start(
        command: Command,
        prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Family> {
        // SAFETY: promised by the caller.
        unsafe { Family::start_with(command, None, prepare) }
    }

    /// The same with a folder, which the reaper removes with the files in it if this process is gone
    /// when the family has ended.
    ///
    /// # Errors
    /// As [`Family::start`].
    ///
    /// # Safety
    /// As [`Family::start`].
    pub unsafe fn start_with(
        mut command: Command,
        folder: Option<&Path>,
        mut prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Family> {
        let folder = folder.and_then(|folder| CString::new(folder.as_os_str().as_bytes()).ok());
        let left = Left { owner: std::process::id(), folder };
        let ([held, hold], [born, birth]) = (pipe()?, pipe()?);
        let (held_end, birth_end) = (held.as_raw_fd(), birth.as_raw_fd());
        // SAFETY: `part` makes system calls and nothing else; the rest is promised by the caller.
        unsafe {
            command.pre_exec(move || {
                part(held_end, birth_end, &left)?;
                prepare()
            });
        }
        let reaper = command.spawn()?;
        drop((held, birth));
        let mut number = [0; 4];
        // Written before the program could become one.
        File::from(born).read_exact(&mut number)?;
        Ok(Family { reaper, program: i32::from_ne_bytes(number), hold: Some(hold) })
    }

    /// Has what is left of the family killed, which is not waited for.
    pub fn kill(&mut self) {
        self.hold = None;
    }

    /// Kills what is left of the family and waits until it has ended; how the program ended, nothing
    /// if the family has not after `patience`.
    ///
    /// # Errors
    /// If it cannot be waited for.
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
    // SAFETY: just made, and nobody else's.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// What is to be removed when a process is gone.
struct Left {
    owner: u32,
    /// A folder of files.
    folder: Option<CString>,
}

impl Left {
    /// Removes it if the process is gone, whose child this one is.
    fn remove(&self) {
        // SAFETY: system calls; names end with a zero.
        unsafe {
            if libc::getppid() as u32 == self.owner {
                return;
            }
            if let Some(folder) = &self.folder {
                entries(folder, |place, name| {
                    libc::unlinkat(place, name.as_ptr(), 0);
                });
                libc::rmdir(folder.as_ptr());
            }
        }
    }
}

/// Parts the process that is to become the program into the reaper, in which this never returns,
/// and a child of it, which becomes the program and ends with the reaper.
fn part(held: RawFd, birth: RawFd, left: &Left) -> io::Result<()> {
    // SAFETY: system calls on this process, which has one thread, and what is on its stack.
    unsafe {
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) != 0 {
            return Err(io::Error::last_os_error());
        }
        let (mut children, mut before) = (signals(&[libc::SIGCHLD]), signals(&[]));
        // Before there is a child: it discards what is pending.
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
            program => reap(program, held, birth, &raw mut children, left),
        }
    }
}

/// A set of signals.
pub fn signals(all: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call makes a set of it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        all.iter().for_each(|signal| {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        });
        set.assume_init()
    }
}

/// The reaper's life.
///
/// # Safety
/// It is the only thread of its process, `children` is blocked.
unsafe fn reap(
    program: libc::pid_t,
    held: RawFd,
    birth: RawFd,
    children: *mut libc::sigset_t,
    left: &Left,
) -> ! {
    // SAFETY: system calls on this process, and what is on its stack.
    unsafe {
        let number = program.to_ne_bytes();
        libc::write(birth, number.as_ptr().cast(), number.len());
        libc::prctl(libc::PR_SET_NAME, c"flipwave-reaper".as_ptr());
        // What a terminal sends to all is for the program.
        for signal in (1..32).filter(|signal| *signal != libc::SIGCHLD) {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Whoever reads what the program writes is to see its end.
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
            let mut news = [0u8; 128];
            libc::read(ended, news.as_mut_ptr().cast(), news.len());
            has_children = collect(program, &mut status);
        }
        while has_children {
            if !kill_children() {
                // Without a list of all processes, the program is the only one that is known.
                if status.is_some() {
                    break;
                }
                libc::kill(program, libc::SIGKILL);
            }
            libc::usleep(1000);
            has_children = collect(program, &mut status);
        }
        left.remove();
        leave(status.unwrap_or(libc::SIGKILL));
    }
}

/// Waits for children that have ended, and notes how the program has; whether there are others.
unsafe fn collect(program: libc::pid_t, status: &mut Option<libc::c_int>) -> bool {
    loop {
        let mut own = 0;
        // SAFETY: writes a number.
        match unsafe { libc::waitpid(-1, &raw mut own, libc::WNOHANG) } {
            0 => return true,
            -1 => return false,
            child if child == program => *status = Some(own),
            _ => {}
        }
    }
}

/// Closes all files with these numbers.
unsafe fn close(first: libc::c_uint, last: libc::c_uint) {
    // SAFETY: nobody in this process uses them any more.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
            let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, 1 << 20) as libc::c_uint;
            (first..=last.min(most)).for_each(|file| {
                libc::close(file as RawFd);
            });
        }
    }
}

/// Kills each child of this process, by the list of all processes; whether there is one.
unsafe fn kill_children() -> bool {
    // SAFETY: system calls.
    let own = unsafe { libc::getpid() };
    // SAFETY: nothing else is done with what is killed.
    unsafe {
        entries(c"/proc", |_, name| {
            let process = number(name.to_bytes());
            if process.is_some_and(|process| parent(process) == Some(own)) {
                libc::kill(process.unwrap_or(0).max(1), libc::SIGKILL);
            }
        })
    }
}

/// Calls `each` with each name in a folder, and the folder; whether it can be read.
unsafe fn entries(folder: &CStr, mut each: impl FnMut(RawFd, &CStr)) -> bool {
    // SAFETY: system calls that write to what is on the stack.
    unsafe {
        let list = libc::open(folder.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY);
        if list < 0 {
            return false;
        }
        // `struct linux_dirent64` of getdents(2): length at 16, name from 19 on.
        let mut buffer = [0u8; 4096];
        loop {
            let length =
                libc::syscall(libc::SYS_getdents64, list, buffer.as_mut_ptr(), buffer.len());
            let Some(mut rest) = buffer.get(..usize::try_from(length).unwrap_or(0)) else { break };
            if rest.is_empty() {
                break;
            }
            while let Some([low, high]) = rest.get(16..18) {
                let (entry, others) = rest
                    .split_at(usize::from(u16::from_ne_bytes([*low, *high])).clamp(19, rest.len()));
                rest = others;
                if let Ok(name) = CStr::from_bytes_until_nul(&entry[19..]) {
                    each(list, name);
                }
            }
        }
        libc::close(list);
        true
    }
}

/// The number that a text begins with.
fn number(text: &[u8]) -> Option<libc::pid_t> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |sum, digit| {
        let tens = sum.unwrap_or(0i32).saturating_mul(10);
        Some(tens.saturating_add(i32::from(digit - b'0')))
    })
}

/// The parent of a process, unless it has ended (proc_pid_stat(5): the fourth field; the second, in
/// brackets, may hold anything).
unsafe fn parent(process: libc::pid_t) -> Option<libc::pid_t> {
    let mut path = [0; 32];
    write!(&mut path[..31], "/proc/{process}/stat").ok()?;
    let mut text = [0u8; 256];
    // SAFETY: the path ends with a zero; what is read goes to the stack.
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

/// Ends this process as another has ended.
fn leave(status: libc::c_int) -> ! {
    // SAFETY: ends this process.
    unsafe {
        if libc::WIFSIGNALED(status) {
            die_by(libc::WTERMSIG(status));
        }
        libc::_exit(exit_code(ExitStatus::from_raw(status)).into())
    }
}

/// Ends this process by a signal, without a core file. Returns for signals that do not end one.
pub fn die_by(signal: libc::c_int) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let own = signals(&[signal]);
    // SAFETY: system calls on this process, which is at its end.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const own, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    /// Starts a script, and waits for a word that it prints.
    fn start(script: &str) -> Family {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::piped());
        // SAFETY: does nothing.
        let mut family = unsafe { Family::start(command, || Ok(())) }.expect("sh");
        let mut line = String::new();
        let stdout = family.reaper.stdout.take().expect("a pipe");
        io::BufRead::read_line(&mut io::BufReader::new(stdout), &mut line).expect("a line");
        family
    }

    fn runs(pid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, after)| !after.starts_with(['Z', 'X']))
    }

    /// Forks twice, in a session of its own, and prints its number into a file.
    fn runaway(file: &std::path::Path) -> String {
        let file = file.display();
        format!(
            "(setsid sh -c 'sh -c \"echo \\$\\$ > {file}.part; mv {file}.part {file}; exec sleep 600\" &' &); until [ -e {file} ]; do sleep 0.01; done; echo ready;"
        )
    }

    #[test]
    fn what_a_program_leaves_in_a_session_of_its_own_ends_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, rest, patience) in
            [("ends", "read line < /dev/null; exit 7", 600), ("stays", "exec sleep 600", 0)]
        {
            let file = folder.path().join(name);
            let mut family = start(&format!("{} {rest}", runaway(&file)));
            let text = std::fs::read_to_string(&file).expect("its number");
            let pid: i32 = text.trim().parse().expect("a number");
            let status = match patience {
                0 => {
                    assert!(runs(pid) && runs(family.program));
                    family.end(Duration::from_secs(60)).expect("watched").expect("an end")
                }
                _ => family.reaper.wait().expect("an end"),
            };
            assert!(!runs(pid) && !runs(family.program), "{name}");
            let expected =
                if patience == 0 { (None, Some(libc::SIGKILL)) } else { (Some(7), None) };
            assert_eq!((status.code(), status.signal()), expected, "{name}");
        }
    }

    #[test]
    fn nobody_else_is_killed() {
        let mut other = Command::new("sleep").arg("600").spawn().expect("sleep");
        let mut family = start("echo ready; exec sleep 600");
        let status = family.end(Duration::from_secs(60)).expect("watched").expect("an end");
        assert_eq!(status.signal(), Some(libc::SIGKILL));
        assert!(runs(other.id() as i32));
        other.kill().expect("killed");
        other.wait().expect("ended");
    }

    #[test]
    fn a_program_that_does_not_start_is_an_error() {
        // It may end before the reaper waits for it, or after.
        for _ in 0..200 {
            let command = Command::new("/missing/program");
            // SAFETY: does nothing.
            let error = unsafe { Family::start(command, || Ok(())) }.expect_err("no program");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
