//! Who holds a lock: written for people, and for those who ask whether it is still there.

use crate::digest::hexadecimal;
use flipwave_host::input::{TEXT, read_text};
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A process on a machine. The file of a lock may outlive the process, and other versions may read it: fields
/// keep their names, and missing ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    /// The machine's name.
    pub host: String,
    /// Digest of `/etc/machine-id`, which is not for others to read: the same after the machine has
    /// started anew. Empty where there is none.
    pub machine: String,
    /// Another each time that the machine starts (random(4), `boot_id`).
    pub boot: String,
    /// In which its number names it (pid_namespaces(7)).
    pub pid_namespace: String,
    /// Its number.
    pub process: i32,
    /// When it started, in clock ticks since the machine did (proc_pid_stat(5), field 22): numbers
    /// are given again.
    pub started: u64,
    /// What it is.
    pub command: String,
    /// Since when, in UTC.
    pub since: String,
    /// Random, and no other lock's.
    pub token: String,
}

/// Whether the kernel says that somebody has a file locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLock {
    /// Somebody has.
    Held,
    /// Nobody that this kernel can see.
    Free,
    /// The file system has no such locks.
    Unknown,
}

/// What can be said of an owner from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs.
    Alive,
    /// It has ended.
    Ended,
    /// It is of another machine, or cannot be seen from here.
    Unseen,
}

impl Owner {
    /// This process.
    pub fn this() -> io::Result<Owner> {
        let read =
            |path: &str| read_text(Path::new(path), TEXT).unwrap_or_default().trim().to_owned();
        let process = std::process::id().cast_signed();
        let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        Ok(Owner {
            host: read("/proc/sys/kernel/hostname"),
            machine: digest_of_machine(&read("/etc/machine-id")),
            boot: read("/proc/sys/kernel/random/boot_id"),
            pid_namespace: namespace.to_string_lossy().into_owned(),
            process,
            started: running_since(process).unwrap_or(0),
            command: words.join(" "),
            since: utc(SystemTime::now()),
            token: token()?,
        })
    }

    /// Whether this owner still runs, as far as that can be seen by `own` process; `lock` is what the
    /// kernel says of its file.
    pub fn life(&self, own: &Owner, lock: FileLock) -> Life {
        if lock == FileLock::Held {
            return Life::Alive;
        }
        if self.boot == own.boot && !self.boot.is_empty() {
            return match self.pid_namespace == own.pid_namespace {
                true if is_running(self.process, self.started) => Life::Alive,
                true => Life::Ended,
                // Its number says nothing here, but one kernel serves both.
                false if lock == FileLock::Free => Life::Ended,
                false => Life::Unseen,
            };
        }
        let is_same_machine =
            self.host == own.host && self.machine == own.machine && !own.machine.is_empty();
        // The machine has started anew since.
        if is_same_machine { Life::Ended } else { Life::Unseen }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.token.is_empty() {
            return f.write_str("a process that has not said who it is");
        }
        let Owner { host, process, command, since, .. } = self;
        write!(f, "process {process} on {host} since {since} (`{command}`)")
    }
}

/// Whether the process that started then runs.
fn is_running(process: i32, started: u64) -> bool {
    match running_since(process) {
        Some(since) => since == started || started == 0,
        // Where processes of others are hidden, they can still be asked for.
        None => Pid::from_raw(process)
            .is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::PERM)),
    }
}

/// When a process started, in clock ticks since the machine did; nothing if none is there, or one that
/// has ended and was not waited for.
fn running_since(process: i32) -> Option<u64> {
    let text = read_text(format!("/proc/{process}/stat").as_ref(), TEXT).ok()?;
    // The second field, a name in brackets, may hold anything.
    let (_, after) = text.rsplit_once(')')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    // The state is field 3.
    let started = fields.nth(22 - 4)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(started)
}

/// What stands for a machine's identity where others read it.
fn digest_of_machine(id: &str) -> String {
    match id {
        "" => String::new(),
        id => hexadecimal(&Sha256::digest(["flipwave ", id].concat())),
    }
}

/// Sixteen hexadecimal digits that nobody else has.
fn token() -> io::Result<String> {
    let mut bytes = [0; 8];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// A time as ISO 8601 has it, `2026-11-22T06:35:44Z`.
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
        Owner::this().expect("this process")
    }

    #[test]
    fn owners_have_a_fixed_text() {
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
    fn times_are_written_as_calendars_have_them() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(at(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn this_process_runs_and_an_earlier_one_of_its_number_does_not() {
        let own = this();
        assert_eq!(own.life(&own, FileLock::Unknown), Life::Alive);
        assert_eq!(own.life(&own, FileLock::Free), Life::Alive);
        let earlier = Owner { started: own.started - 1, ..own.clone() };
        assert_eq!(earlier.life(&own, FileLock::Free), Life::Ended);
        // Whatever else is known: who holds the file runs.
        assert_eq!(earlier.life(&own, FileLock::Held), Life::Alive);
    }

    #[test]
    fn a_process_that_was_killed_and_not_waited_for_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let process = child.id().cast_signed();
        let own = this();
        let owner = Owner { process, started: running_since(process).expect("it runs"), ..this() };
        assert_eq!(owner.life(&own, FileLock::Unknown), Life::Alive);
        child.kill().expect("killed");
        while owner.life(&own, FileLock::Unknown) == Life::Alive {}
        assert_eq!(owner.life(&own, FileLock::Unknown), Life::Ended);
        child.wait().expect("waited for");
        assert_eq!(owner.life(&own, FileLock::Unknown), Life::Ended);
    }

    #[test]
    fn other_machines_are_not_seen_and_this_one_before_it_started_anew_is_over() {
        let own = Owner { machine: "m".to_owned(), ..this() };
        let other = Owner { boot: "other".to_owned(), host: "other".to_owned(), ..own.clone() };
        assert_eq!(other.life(&own, FileLock::Free), Life::Unseen);
        let before = Owner { boot: "before".to_owned(), ..own.clone() };
        assert_eq!(before.life(&own, FileLock::Free), Life::Ended);
        // Names alone are not enough: many machines have the same.
        let nameless = Owner { machine: String::new(), ..before.clone() };
        assert_eq!(nameless.life(&own, FileLock::Free), Life::Unseen);
        let container = Owner { pid_namespace: "another".to_owned(), ..own.clone() };
        assert_eq!(container.life(&own, FileLock::Free), Life::Ended);
        assert_eq!(container.life(&own, FileLock::Unknown), Life::Unseen);
        assert_eq!(Owner::default().life(&own, FileLock::Free), Life::Unseen);
    }
}
