//! The processes of a session: a program run on its own leads one, and all that it starts are in
//! it unless they found another.

use super::error::ApplicationError;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io;
use std::time::{Duration, Instant};

/// How long processes that were killed may take to end. One that waits for a device cannot.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process that has not ended.
#[derive(Clone, Copy, Debug)]
struct Member {
    pid: Pid,
    session: i32,
    /// Bytes in memory.
    resident: u64,
}

/// Bytes in memory of all processes in the session that `leader` leads. Memory that several of
/// them share counts several times.
pub(super) fn resident(leader: Pid) -> io::Result<u64> {
    Ok(members(leader)?.iter().map(|member| member.resident).sum())
}

/// Bytes in memory of one process; 0 once it has ended.
pub(super) fn resident_of(pid: Pid) -> u64 {
    member(pid).map_or(0, |member| member.resident)
}

/// Kills the session that `leader` leads, which must not be waited for before, and returns when
/// nothing of it runs any more.
///
/// # Errors
/// [`ApplicationError::Stuck`], [`ApplicationError::Watch`].
pub(super) fn end(leader: Pid) -> Result<(), ApplicationError> {
    let clock = Instant::now();
    // All of the group at once: none of it can start another process in between.
    match kill_process_group(leader, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(reason) => return Err(ApplicationError::Watch(reason.into())),
    }
    loop {
        let left = members(leader).map_err(ApplicationError::Watch)?;
        let Some(first) = left.first() else { return Ok(()) };
        if clock.elapsed() > PATIENCE {
            return Err(ApplicationError::Stuck { pid: first.pid.as_raw_nonzero().get() });
        }
        for member in left {
            // It may end by itself in between.
            let _ = kill_process(member.pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn members(leader: Pid) -> io::Result<Vec<Member>> {
    let mut members = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        members.extend(number.and_then(member));
    }
    members.retain(|member| member.session == leader.as_raw_nonzero().get());
    Ok(members)
}

/// What `/proc` says of a process, unless it has ended.
fn member(pid: Pid) -> Option<Member> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // proc_pid_stat(5): the second field, a name in brackets, may hold anything.
    let (_, behind) = text.rsplit_once(')')?;
    let fields: Vec<&str> = behind.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    if matches!(field(3)?, "Z" | "X") {
        return None;
    }
    let pages: u64 = field(24)?.parse().ok()?;
    let resident = pages * rustix::param::page_size() as u64;
    Some(Member { pid, session: field(6)?.parse().ok()?, resident })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The number of this process's own session is 0 where its leader is outside of the container,
    /// so that a child leads one here.
    #[test]
    fn a_process_is_found_in_its_session() {
        let mut child =
            Command::new("setsid").args(["sleep", "60"]).spawn().expect("setsid of util-linux");
        let pid = Pid::from_child(&child);
        let clock = Instant::now();
        // The child becomes a leader, and then another program, whose memory grows as it starts.
        let name = || std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
        let is_asleep = || name().is_ok_and(|name| name == "sleep\n") && resident_of(pid) > 100_000;
        while !is_asleep() && clock.elapsed() < PATIENCE {}
        let found = members(pid).expect("/proc");
        assert_eq!(found.iter().map(|member| member.pid).collect::<Vec<_>>(), [pid]);
        assert!(resident(pid).expect("/proc") > 100_000);
        assert!(resident_of(pid) > 100_000);
        end(pid).expect("killed");
        assert!(members(pid).expect("/proc").is_empty());
        assert_eq!(resident_of(pid), 0);
        child.wait().expect("waited for");
        assert!(members(Pid::from_raw(i32::MAX).expect("a number")).expect("/proc").is_empty());
    }
}
