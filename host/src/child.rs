//! Programs that help, such as compilers: run to their end, and ended with this one.
//!
//! A compiler may hang, and a batch system may not answer. Each program therefore leads a process
//! group of its own, which [`end_all`] kills.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that are taken of what a program prints.
const LARGEST_OUTPUT: u64 = crate::input::BINARY;

/// A program that has no result.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// It cannot be started, or its output cannot be read.
    #[error("{0}")]
    Run(#[from] io::Error),
    /// It was ended by [`end_all`], or not started any more.
    #[error("interrupted")]
    Interrupted,
}

/// Programs that run.
#[derive(Default)]
struct Running {
    groups: Vec<Pid>,
    is_ended: bool,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { groups: Vec::new(), is_ended: false });

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all programs that run, with what they have started, and starts none any more.
pub fn end_all() {
    let mut running = running();
    running.is_ended = true;
    for group in &running.groups {
        // Its leader has not been waited for, so that the number is still its own.
        let _ = kill_process_group(*group, Signal::KILL);
    }
}

/// Runs a program with `input` on its standard input, until it ends.
///
/// # Errors
/// [`ChildError`]. How the program ended is in the output.
pub fn run(command: &mut Command, input: &[u8]) -> Result<Output, ChildError> {
    // Files need no thread to keep pipes from filling up.
    let mut stdin = tempfile::tempfile()?;
    stdin.write_all(input)?;
    stdin.rewind()?;
    let [stdout, stderr] = [tempfile::tempfile()?, tempfile::tempfile()?];
    command.stdin(stdin).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let status = wait(start(command)?)?;
    // The program's ends are closed with the command's.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Output { status, stdout: content(stdout)?, stderr: content(stderr)? })
}

fn content(mut file: File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    crate::input::read_rest(file, LARGEST_OUTPUT)
}

/// A program that was started, and the group that it leads.
struct Started {
    child: Child,
    group: Pid,
}

fn start(command: &mut Command) -> Result<Started, ChildError> {
    use std::os::unix::process::CommandExt;
    // Held meanwhile: `end_all` sees all that were started.
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
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(started.group), options) {}
    let mut running = running();
    running.groups.retain(|group| *group != started.group);
    let status = started.child.wait()?;
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

    /// One test, as nothing is started after the end.
    #[test]
    fn programs_run_to_their_end_and_are_killed_with_what_they_started() {
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
                assert!(start.elapsed() < Duration::from_secs(60), "it does not start");
                std::thread::sleep(Duration::from_millis(5));
            }
            end_all();
            hanging.join().expect("no panic")
        });
        assert!(matches!(ended, Err(ChildError::Interrupted)), "{ended:?}");
        let sleeper = std::fs::read_to_string(&file).expect("its number");
        let state = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", sleeper.trim()));
            status.unwrap_or_default().lines().nth(2).unwrap_or_default().to_owned()
        };
        while !(state().is_empty() || state().contains('Z')) {
            assert!(start.elapsed() < Duration::from_secs(60), "it goes on: {}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(matches!(run(&mut shell("true"), b""), Err(ChildError::Interrupted)));
    }
}
