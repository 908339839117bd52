//! Helper programs such as compilers, which are killed with this program.
//!
//! A compiler may hang, and a batch system may not answer. Each program therefore leads its own
//! process group, which [`kill_all`] kills.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest output of a program in bytes.
const MAX_OUTPUT: u64 = crate::input::BINARY;

/// Errors returned by [`run`].
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The program cannot be started, or its output cannot be read.
    #[error("{0}")]
    Run(#[from] io::Error),
    /// The program was killed by [`kill_all`], or not started after it.
    #[error("interrupted")]
    Interrupted,
}

/// Running programs.
#[derive(Default)]
struct Running {
    /// Process groups of the programs.
    groups: Vec<Pid>,
    /// `true` once [`kill_all`] was called.
    is_ended: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { groups: Vec::new(), is_ended: false });

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all running programs with the processes that they have started. No program is started
/// after this.
pub fn kill_all() {
    let mut running = running();
    running.is_ended = true;
    for group in &running.groups {
        // The leader was not waited for, so that no other group has the number.
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

/// Runs a program with `input` as its standard input, and waits for its end. The output contains
/// the exit status.
///
/// # Errors
/// [`ChildError`].
pub fn run(command: &mut Command, input: &[u8]) -> Result<Output, ChildError> {
    // Files, as pipes would need a thread that empties them.
    let mut stdin = tempfile::tempfile()?;
    stdin.write_all(input)?;
    stdin.rewind()?;
    let [stdout, stderr] = [tempfile::tempfile()?, tempfile::tempfile()?];
    command.stdin(stdin).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let status = wait(start(command)?)?;
    // Closes the files.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Output { status, stdout: content(stdout)?, stderr: content(stderr)? })
}

fn content(mut file: File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    crate::input::read_rest(file, MAX_OUTPUT)
}

/// A started program and its process group.
struct Started {
    child: Child,
    group: Pid,
}

/// A running program with which this program exchanges messages. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Helper {
    child: Child,
    group: Pid,
}

impl Helper {
    /// Starts a program, which [`kill_all`] also kills.
    ///
    /// # Errors
    /// [`ChildError`].
    pub fn start(command: &mut Command) -> Result<Helper, ChildError> {
        let Started { child, group } = start(command)?;
        Ok(Helper { child, group })
    }

    /// Waits for the end of the program.
    ///
    /// # Errors
    /// [`ChildError::Interrupted`] if it was killed by [`kill_all`].
    pub fn wait(&mut self) -> Result<ExitStatus, ChildError> {
        wait_for(&mut self.child, self.group)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let mut running = running();
        running.groups.retain(|group| *group != self.group);
        // Fails if the program has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(command: &mut Command) -> Result<Started, ChildError> {
    use std::os::unix::process::CommandExt;
    // Locked until the program is listed: `kill_all` sees all started programs.
    let mut running = running();
    if running.is_ended {
        return Err(ChildError::Interrupted);
    }
    let child = command.process_group(0).spawn()?;
    let group = Pid::from_child(&child);
    running.groups.push(group);
    Ok(Started { child, group })
}

fn wait(mut started: Started) -> Result<ExitStatus, ChildError> {
    wait_for(&mut started.child, started.group)
}

fn wait_for(child: &mut Child, process: Pid) -> Result<ExitStatus, ChildError> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(process), options) {}
    let mut running = running();
    running.groups.retain(|group| *group != process);
    let status = child.wait()?;
    if running.is_ended { Err(ChildError::Interrupted) } else { Ok(status) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    /// One test, as no program is started after `kill_all`.
    #[test]
    fn programs_are_killed_with_the_processes_that_they_started() {
        let echoed = run(&mut shell("cat; echo no >&2; exit 3"), b"text").expect("a result");
        assert_eq!((&*echoed.stdout, &*echoed.stderr), (&b"text"[..], &b"no\n"[..]));
        assert_eq!(echoed.status.code(), Some(3));
        let missing = run(&mut Command::new("/missing/program"), b"");
        assert!(matches!(missing, Err(ChildError::Run(_))));

        let start = Instant::now();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("process");
        let line = format!("sleep 600 & echo $! > {}; wait", file.display());
        let ended = std::thread::scope(|scope| {
            let hanging = scope.spawn(|| run(&mut shell(&line), b""));
            while std::fs::read_to_string(&file).unwrap_or_default().is_empty() {
                assert!(start.elapsed() < Duration::from_secs(60), "the program does not start");
                std::thread::sleep(Duration::from_millis(5));
            }
            kill_all();
            hanging.join().expect("no panic")
        });
        assert!(matches!(ended, Err(ChildError::Interrupted)), "{ended:?}");
        let sleeper = std::fs::read_to_string(&file).expect("its number");
        let state = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", sleeper.trim()));
            status.unwrap_or_default().lines().nth(2).unwrap_or_default().to_owned()
        };
        while !(state().is_empty() || state().contains('Z')) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the process still runs: {}",
                state()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(matches!(run(&mut shell("true"), b""), Err(ChildError::Interrupted)));
    }
}
