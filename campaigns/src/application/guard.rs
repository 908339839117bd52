//! What ends a program's processes when this one is killed and can do so no more.

use rustix::process::Pid;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A process that waits for the end of this one, however that comes, and then kills a process
/// group. The kernel closes the pipe that it reads from when this process is gone.
///
/// A parent-death signal alone ends the group's leader only. Processes that left the group are
/// not reached.
pub(super) struct Guard(Child);

impl Guard {
    /// Guards `group`.
    pub(super) fn new(group: Pid) -> io::Result<Guard> {
        let guard = Command::new("/bin/sh")
            .args(["-c", "read -r line; kill -s KILL -- -$1", "guard"])
            .arg(group.to_string())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal goes to this process's group, and must not end the guard.
            .process_group(0)
            .spawn()?;
        Ok(Guard(guard))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
