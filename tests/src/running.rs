//! A running `flipwave` program.

use crate::program;
use std::ffi::OsStr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit of all waits.
const PATIENCE: Duration = Duration::from_secs(300);

/// A running program that can receive signals. It is killed on drop.
pub struct RunningProgram {
    child: Child,
    stderr: PathBuf,
}

impl RunningProgram {
    /// Starts the program in `folder`, with standard error in the file `stderr` there.
    pub fn start<S: AsRef<OsStr>>(folder: &Path, arguments: &[S], stderr: &str) -> RunningProgram {
        let mut command = Command::new(program());
        command.args(arguments);
        RunningProgram::from_command(command, folder, stderr)
    }

    /// Starts a command that is or executes the program.
    pub fn from_command(mut command: Command, folder: &Path, stderr: &str) -> RunningProgram {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: between fork and exec, the process makes one system call, which accesses no
            // memory. The call is needed because a shell that runs tests in the background ignores
            // these signals, and the program does not handle ignored signals.
            unsafe {
                command.pre_exec(move || match libc::signal(signal, libc::SIG_DFL) {
                    libc::SIG_ERR => Err(std::io::Error::last_os_error()),
                    _ => Ok(()),
                });
            }
        }
        let stderr = folder.join(stderr);
        let file = std::fs::File::create(&stderr).expect("a file");
        let command = command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(file).spawn().expect("flipwave starts");
        RunningProgram { child, stderr }
    }

    /// Process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.stderr).expect("a file")).into_owned()
    }

    /// Sends a signal to the program.
    pub fn send(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).expect("a process number");
        // SAFETY: a signal to a child of this process that has not been waited for.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    /// Waits until `is_so` returns `true`.
    ///
    /// # Panics
    /// If the program ends before, or after a time limit.
    #[track_caller]
    pub fn wait_until(&mut self, mut is_so: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            let state = self.child.try_wait().expect("its state");
            assert!(state.is_none(), "the program ended: {state:?}\n{}", self.stderr());
            assert!(Instant::now() < end, "it takes too long");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for the end of the program. Returns the exit code, or the signal as an error.
    ///
    /// # Panics
    /// After a time limit.
    #[track_caller]
    pub fn end(&mut self) -> Result<i32, i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its state") {
                return status.code().ok_or(status.signal().unwrap_or(0));
            }
            assert!(Instant::now() < end, "it does not end\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
