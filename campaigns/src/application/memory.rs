//! The memory that a program and all that it has started take.

use std::collections::HashMap;
use std::io;

/// What `/proc` says of a process.
#[derive(Clone, Copy, Debug)]
struct Process {
    parent: i32,
    /// Bytes in memory.
    resident: u64,
}

/// Bytes in memory of all that a process has started, and of what that has; not its own. Memory
/// that several of them share counts several times.
pub(super) fn resident(ancestor: i32) -> io::Result<u64> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        all.extend(number.and_then(|number| Some((number, process(number)?))));
    }
    // Numbers of parents may be greater than those of children: each line is followed up.
    let descends = |mut process: Process| {
        let mut left = all.len();
        while process.parent != ancestor && left > 0 {
            let Some(parent) = all.get(&process.parent) else { return false };
            (process, left) = (*parent, left - 1);
        }
        process.parent == ancestor
    };
    Ok(all.values().filter(|own| descends(**own)).map(|own| own.resident).sum())
}

/// Bytes in memory of one process; 0 once it has ended.
pub(super) fn resident_of(number: i32) -> u64 {
    process(number).map_or(0, |process| process.resident)
}

/// A process, unless it has ended.
fn process(number: i32) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // proc_pid_stat(5): the second field, a name in brackets, may hold anything.
    let (_, after) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    if matches!(field(3)?, "Z" | "X") {
        return None;
    }
    let pages: u64 = field(24)?.parse().ok()?;
    let resident = pages * rustix::param::page_size() as u64;
    Some(Process { parent: field(4)?.parse().ok()?, resident })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    #[test]
    fn the_memory_of_all_descendants_counts() {
        // A shell with a shell in a session of its own, which has a child, too.
        let script = "setsid sh -c 'sleep 600 & echo $!; wait' & wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh, and setsid of util-linux");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let sleep: i32 = line.trim().parse().expect("a number");
        let shell = child.id() as i32;
        // It is a shell until it becomes another program, whose memory grows as it starts.
        let is_started = || {
            let name = std::fs::read_to_string(format!("/proc/{sleep}/comm")).unwrap_or_default();
            name.trim() == "sleep" && resident_of(sleep) > 100_000
        };
        let clock = std::time::Instant::now();
        while !is_started() && clock.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let own = resident_of(sleep);
        assert!(own > 100_000 && resident_of(shell) > 100_000);
        let below = resident(shell).expect("/proc");
        assert!(below > own, "the shell in between counts: {below}, {own}");
        assert!(resident(std::process::id() as i32).expect("/proc") > below);
        assert_eq!(resident(i32::MAX).expect("/proc"), 0);
        let _ = Command::new("kill").args(["-9", line.trim()]).status();
        child.wait().expect("ended");
        assert_eq!(resident_of(sleep), 0);
    }
}
