//! Owners of locks, and the check whether an owner is alive.

use crate::digest::hexadecimal;
use flipwave_host::input::{TEXT, read_text};
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A process on a machine. Lock files may outlive the process and be read by other versions: fields
/// keep their names, and missing fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    /// Host name.
    pub host: String,
    /// Digest of `/etc/machine-id`, which is confidential. Unchanged by a reboot. Empty without
    /// such a file.
    pub machine: String,
    /// `boot_id` of the kernel (random(4)), which changes with each boot.
    pub boot: String,
    /// PID namespace of the process (pid_namespaces(7)).
    pub pid_namespace: String,
    /// Process ID.
    pub process: i32,
    /// Start of the process in clock ticks since boot (proc_pid_stat(5), field 22), because process
    /// IDs are reused.
    pub started: u64,
    /// Command line.
    pub command: String,
    /// Time of the lock, in UTC.
    pub since: String,
    /// Random token, unique for each lock.
    pub token: String,
}

/// State of the advisory lock on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLock {
    /// A process holds it.
    Held,
    /// No process visible to this kernel holds it.
    Free,
    /// The file system does not support locks.
    Unknown,
}

/// State of an owner as seen from a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It is running.
    Alive,
    /// It has ended.
    Ended,
    /// It is on another machine, or not visible for another reason.
    Unseen,
}

impl Owner {
    /// Describes this process, with a new token.
    pub fn current() -> io::Result<Owner> {
        let read =
            |path: &str| read_text(Path::new(path), TEXT).unwrap_or_default().trim().to_owned();
        let process = std::process::id().cast_signed();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        Ok(Owner {
            host: read("/proc/sys/kernel/hostname"),
            machine: machine_digest(&read("/etc/machine-id")),
            boot: read("/proc/sys/kernel/random/boot_id"),
            pid_namespace: namespace.to_string_lossy().into_owned(),
            process,
            started: running_since(process).unwrap_or(0),
            command: words.join(" "),
            since: utc(SystemTime::now()),
            token: token()?,
        })
    }

    /// Returns the state of this owner as seen from the process `observer`. `lock` is the state of
    /// the lock on the owner's file.
    pub fn life(&self, observer: &Owner, lock: FileLock) -> Life {
        if lock == FileLock::Held {
            return Life::Alive;
        }
        if self.boot == observer.boot && !self.boot.is_empty() {
            return if self.pid_namespace == observer.pid_namespace {
                if is_running(self.process, self.started) { Life::Alive } else { Life::Ended }
            } else if lock == FileLock::Free {
                // The process ID is meaningless here, but the same kernel manages the lock.
                Life::Ended
            } else {
                Life::Unseen
            };
        }
        let is_same_machine = self.host == observer.host
            && self.machine == observer.machine
            && !observer.machine.is_empty();
        // The machine has been rebooted since.
        if is_same_machine { Life::Ended } else { Life::Unseen }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.token.is_empty() {
            return f.write_str("an unknown process");
        }
        let Owner { host, process, command, since, .. } = self;
        write!(f, "process {process} on {host} since {since} (`{command}`)")
    }
}

/// Returns `true` if the process with this start time is running.
fn is_running(process: i32, started: u64) -> bool {
    match running_since(process) {
        Some(since) => since == started || started == 0,
        // Processes of other users may be hidden in /proc, but accept signals.
        None => Pid::from_raw(process)
            .is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::PERM)),
    }
}

/// Start of a process in clock ticks since boot; `None` if it does not exist or is a zombie.
fn running_since(process: i32) -> Option<u64> {
    let text = read_text(format!("/proc/{process}/stat").as_ref(), TEXT).ok()?;
    // The second field, a name in parentheses, may contain any characters.
    let (_, after) = text.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    // The state is field 3.
    let started = fields.nth(22 - 4)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

/// Public digest of a machine ID.
fn machine_digest(id: &str) -> String {
    match id {
        "" => String::new(),
        id => hexadecimal(&Sha256::digest(["flipwave ", id].concat())),
    }
}

/// Creates a unique token of 16 hexadecimal digits.
fn token() -> io::Result<String> {
    let mut bytes = [0; 8];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// Formats a time as in ISO 8601: `2026-11-22T06:35:44Z`.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn this() -> Owner {
        Owner::current().expect("this process")
    }

    #[test]
    fn serialized_owners_are_fixed() {
        let owner = Owner {
            host: "node17".to_owned(),
            machine: "machine".to_owned(),
            boot: "boot".to_owned(),
            pid_namespace: "pid:[1]".to_owned(),
            process: 4711,
            started: 99,
            command: "flipwave run".to_owned(),
            since: "2026-11-22T06:35:44Z".to_owned(),
            token: "token".to_owned(),
        };
        let text = serde_json::to_string(&owner).expect("JSON");
        assert_eq!(
            text,
            "{\"host\":\"node17\",\"machine\":\"machine\",\"boot\":\"boot\",\
             \"pid_namespace\":\"pid:[1]\",\"process\":4711,\"started\":99,\
             \"command\":\"flipwave run\",\"since\":\"2026-11-22T06:35:44Z\",\"token\":\"token\"}"
        );
        assert_eq!(serde_json::from_str::<Owner>(&text).expect("an owner"), owner);
    }

    #[test]
    fn times_are_formatted_as_utc_dates() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn processes_with_a_reused_id_are_distinguished_by_their_start() {
        let this = this();
        assert_eq!(this.life(&this, FileLock::Unknown), Life::Alive);
        assert_eq!(this.life(&this, FileLock::Free), Life::Alive);
        let earlier = Owner { started: this.started - 1, ..this.clone() };
        assert_eq!(earlier.life(&this, FileLock::Free), Life::Ended);
        // The lock takes precedence.
        assert_eq!(earlier.life(&this, FileLock::Held), Life::Alive);
    }

    #[test]
    fn zombies_have_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let process = child.id().cast_signed();
        let this = this();
        let started = running_since(process).expect("a running process");
        let owner = Owner { process, started, ..this.clone() };
        assert_eq!(owner.life(&this, FileLock::Unknown), Life::Alive);
        child.kill().expect("killed");
        while owner.life(&this, FileLock::Unknown) == Life::Alive {}
        assert_eq!(owner.life(&this, FileLock::Unknown), Life::Ended);
        child.wait().expect("waited for");
        assert_eq!(owner.life(&this, FileLock::Unknown), Life::Ended);
    }

    #[test]
    fn owners_on_other_machines_are_unseen_and_those_before_a_reboot_have_ended() {
        let this = Owner { machine: "m".to_owned(), ..this() };
        let elsewhere =
            Owner { boot: "other".to_owned(), host: "other".to_owned(), ..this.clone() };
        assert_eq!(elsewhere.life(&this, FileLock::Free), Life::Unseen);
        let before = Owner { boot: "before".to_owned(), ..this.clone() };
        assert_eq!(before.life(&this, FileLock::Free), Life::Ended);
        // Host names are not unique.
        let without_id = Owner { machine: String::new(), ..before.clone() };
        assert_eq!(without_id.life(&this, FileLock::Free), Life::Unseen);
        let container = Owner { pid_namespace: "another".to_owned(), ..this.clone() };
        assert_eq!(container.life(&this, FileLock::Free), Life::Ended);
        assert_eq!(container.life(&this, FileLock::Unknown), Life::Unseen);
        assert_eq!(Owner::default().life(&this, FileLock::Free), Life::Unseen);
    }
}
