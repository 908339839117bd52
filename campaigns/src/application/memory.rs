//! Measures the memory of a program and its descendants.

use std::collections::HashMap;
use std::io;

/// A process in `/proc`.
#[derive(Clone, Copy, Debug)]
struct Process {
    parent: i32,
    /// Resident bytes.
    resident: u64,
}

/// Total resident bytes of all descendants of a process, without the process itself. Memory shared
/// by several of them counts several times.
pub(super) fn resident_of_descendants(ancestor: i32) -> io::Result<u64> {
    let mut all = HashMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        all.extend(number.and_then(|number| Some((number, process(number)?))));
    }
    // The process ID of a parent may be greater than that of its child, so each chain is followed
    // to its root.
    let is_descendant = |mut process: Process| {
        let mut left = all.len();
        while process.parent != ancestor && left > 0 {
            let Some(parent) = all.get(&process.parent) else { return false };
            (process, left) = (*parent, left - 1);
        }
        process.parent == ancestor
    };
    let descendants = all.values().filter(|process| is_descendant(**process));
    Ok(descendants.map(|process| process.resident).sum())
}

/// Resident bytes of one process; 0 after its end.
pub(super) fn resident_of(number: i32) -> u64 {
    process(number).map_or(0, |process| process.resident)
}

/// Reads a process; `None` after its end.
fn process(number: i32) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // proc_pid_stat(5): the second field, a name in parentheses, may contain any characters.
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
        // A shell whose child is a shell in another session, which has a child.
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
        // Waits until the shell has executed `sleep`, and its memory has grown.
        let is_started = || {
            let name = std::fs::read_to_string(format!("/proc/{sleep}/comm")).unwrap_or_default();
            name.trim() == "sleep" && resident_of(sleep) > 100_000
        };
        let clock = std::time::Instant::now();
        while !is_started() && clock.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let resident = resident_of(sleep);
        assert!(resident > 100_000 && resident_of(shell) > 100_000);
        let descendants = |process| resident_of_descendants(process).expect("/proc");
        let below = descendants(shell);
        assert!(below > resident, "the second shell does not count: {below}, {resident}");
        assert!(descendants(std::process::id() as i32) > below);
        assert_eq!(descendants(i32::MAX), 0);
        let _ = Command::new("kill").args(["-9", line.trim()]).status();
        child.wait().expect("ended");
        assert_eq!(resident_of(sleep), 0);
    }
}
