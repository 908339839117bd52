//! The table of processes.

use crate::path::ProcessPath;
use crate::proc::{StartTime, Status, children, status};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Environment variable with the path of the table's file.
pub const TABLE_VARIABLE: &str = "FLIPWAVE_PROCESSES";

/// Environment variables in which launchers of MPI and of batch systems pass a process its rank.
pub const RANK_VARIABLES: [&CStr; 3] = [c"OMPI_COMM_WORLD_RANK", c"PMI_RANK", c"SLURM_PROCID"];

/// First bytes of a file with a table.
const MAGIC: u32 = u32::from_le_bytes(*b"FwPT");
/// Version of the file format.
const VERSION: u32 = 1;
/// Largest number of processes. Unused entries take no space on disk.
const CAPACITY: usize = 1 << 16;
/// Number of attempts to count siblings while other processes enter themselves.
const ATTEMPTS: usize = 1000;
/// Number of generations among which an ancestor is searched that has entered itself.
const GENERATIONS: usize = 64;

#[repr(C)]
struct Header {
    magic: AtomicU32,
    version: AtomicU32,
    /// Number of used entries.
    count: AtomicU32,
    /// Bit mask of the [`RANK_VARIABLES`] to ignore: they are set in the environment of the first
    /// process.
    ignored_ranks: AtomicU32,
    /// The program into which the fault is injected, of all programs that match; see [`claim`].
    injection_target: AtomicU32,
    /// The program that writes to the output file; others write to their own files. See [`claim`].
    output_writer: AtomicU32,
}

/// A process.
#[repr(C)]
struct Entry {
    /// Clock tick of the start time.
    tick: AtomicU64,
    pid: AtomicU32,
    /// Slot of the parent plus 1; 0 for none.
    parent: AtomicU32,
    /// Number among the parent's children.
    number: AtomicU32,
    /// MPI rank plus 1; 0 for none.
    rank: AtomicU32,
    /// Number of children that the process had started when it became its program.
    children: AtomicU32,
    /// Number of programs in the process that have opened a GPU.
    programs: AtomicU32,
    /// 1 once the other fields are written.
    is_ready: AtomicU32,
    unused: AtomicU32,
}

const BYTES: usize = size_of::<Header>() + CAPACITY * size_of::<Entry>();

/// A mapped table. It stays mapped as long as the process runs.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    base: NonNull<Header>,
}

// SAFETY: it only gives access to atomics, which stay mapped.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// Index of a process's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

/// A program that has opened a GPU. Its process may have run other programs before, by exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    slot: Slot,
    /// Number of programs in the process that opened a GPU before.
    number: u32,
}

impl Table {
    /// Creates a file with an empty table for an application. `has_variable` returns `true` for the
    /// variables in the application's environment: a rank that is set there is not a rank within
    /// the tree.
    ///
    /// # Errors
    /// If the file cannot be created or mapped.
    pub fn create(path: &Path, has_variable: impl Fn(&str) -> bool) -> io::Result<Table> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_len(BYTES as u64)?;
        let table = Table::map_file(path)?;
        let is_ignored = |name: &&CStr| name.to_str().is_ok_and(&has_variable);
        let ignored = RANK_VARIABLES.iter().enumerate().filter(|(_, name)| is_ignored(name));
        let ignored = ignored.fold(0, |mask, (bit, _)| mask | 1 << bit);
        table.header().ignored_ranks.store(ignored, Ordering::Relaxed);
        table.header().version.store(VERSION, Ordering::Relaxed);
        table.header().magic.store(MAGIC, Ordering::Release);
        Ok(table)
    }

    fn map_file(path: &Path) -> io::Result<Table> {
        let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
        Table::map(&path).ok_or_else(io::Error::last_os_error)
    }

    /// Maps the table that [`TABLE_VARIABLE`] names; `None` if there is none, or it has another
    /// version.
    pub fn from_environment() -> Option<Table> {
        // SAFETY: the name and the value end with a zero.
        let table = unsafe {
            let value = libc::getenv(c"FLIPWAVE_PROCESSES".as_ptr());
            (!value.is_null()).then(|| Table::map(CStr::from_ptr(value)))??
        };
        let header = table.header();
        let is_known = header.magic.load(Ordering::Acquire) == MAGIC
            && header.version.load(Ordering::Relaxed) == VERSION;
        is_known.then_some(table)
    }

    fn map(path: &CStr) -> Option<Table> {
        // SAFETY: system calls. The mapping has the size of a table, which is checked, and is never
        // unmapped; all of it is accessed as atomics, for which every bit pattern is valid.
        unsafe {
            // Each argument has the width of a register, as syscall(2) is variadic.
            let flags = libc::c_long::from(libc::O_RDWR | libc::O_CLOEXEC);
            let here = libc::c_long::from(libc::AT_FDCWD);
            let file = libc::syscall(libc::SYS_openat, here, path.as_ptr(), flags, 0_i64);
            if file < 0 {
                return None;
            }
            let end = libc::c_long::from(libc::SEEK_END);
            let length = libc::syscall(libc::SYS_lseek, file, 0_i64, end);
            let access = libc::c_long::from(libc::PROT_READ | libc::PROT_WRITE);
            let kind = libc::c_long::from(libc::MAP_SHARED);
            let base = if length == BYTES as i64 {
                libc::syscall(libc::SYS_mmap, 0_i64, BYTES, access, kind, file, 0_i64)
            } else {
                -1
            };
            libc::syscall(libc::SYS_close, file);
            let base = (base != -1).then_some(base as *mut Header)?;
            Some(Table { base: NonNull::new(base)? })
        }
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping is large enough, and aligned to a page.
        unsafe { self.base.as_ref() }
    }

    fn entries(&self) -> &[Entry] {
        let count = self.header().count.load(Ordering::Acquire) as usize;
        // SAFETY: entries follow the header, whose size is a multiple of their alignment. No more
        // entries than the mapping has. They have no padding, and every bit pattern is valid.
        unsafe {
            let first = self.base.as_ptr().add(1).cast::<Entry>();
            std::slice::from_raw_parts(first, count.min(CAPACITY))
        }
    }

    fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries().get(slot.0 as usize)
    }

    /// The last complete entry that `matches`.
    fn find(&self, matches: impl Fn(&Entry) -> bool) -> Option<Slot> {
        let index = self.entries().iter().rposition(|entry| entry.is_ready() && matches(entry))?;
        Some(Slot(index as u32))
    }

    /// Records that a program starts in this process, which may have run another program before.
    ///
    /// Returns `None` if the table is full or the process's start time cannot be read.
    pub fn start_program(&self) -> Option<Slot> {
        let process = status(std::process::id())?;
        let slot = self.find_or_enter(process)?;
        let entry = self.entry(slot)?;
        // Exec may have changed the environment.
        entry.rank.store(self.rank().map_or(0, |rank| rank + 1), Ordering::Relaxed);
        let children = self.count_children(process.start.pid, Some(slot), StartTime::MAX);
        entry.children.store(children, Ordering::Relaxed);
        Some(slot)
    }

    /// Records that this process was forked from `parent`, which may have ended.
    ///
    /// Returns `None` as [`Table::start_program`].
    pub fn start_fork(&self, parent: u32) -> Option<Slot> {
        self.enter(status(std::process::id())?, parent)
    }

    /// The entry of this process, which is added if the process has not entered itself.
    ///
    /// Returns `None` as [`Table::start_program`].
    pub fn current_slot(&self) -> Option<Slot> {
        self.find_or_enter(status(std::process::id())?)
    }

    fn find_or_enter(&self, process: Status) -> Option<Slot> {
        let known = self.find(|entry| entry.start() == process.start);
        known.map_or_else(|| self.enter(process, process.parent), Some)
    }

    fn enter(&self, process: Status, parent: u32) -> Option<Slot> {
        let ancestor = self.nearest_entered(parent);
        let number = self.count_children(parent, ancestor, process.start);
        let index = self.header().count.fetch_add(1, Ordering::AcqRel);
        if index as usize >= CAPACITY {
            self.header().count.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        let entry = self.entry(Slot(index))?;
        entry.tick.store(process.start.tick, Ordering::Relaxed);
        entry.pid.store(process.start.pid, Ordering::Relaxed);
        entry.parent.store(ancestor.map_or(0, |slot| slot.0 + 1), Ordering::Relaxed);
        entry.number.store(number, Ordering::Relaxed);
        entry.rank.store(self.rank().map_or(0, |rank| rank + 1), Ordering::Relaxed);
        entry.is_ready.store(1, Ordering::Release);
        Some(Slot(index))
    }

    /// The entry of a process, or of its nearest ancestor that has entered itself.
    fn nearest_entered(&self, mut pid: u32) -> Option<Slot> {
        for _ in 0..GENERATIONS {
            let found = self.find(|entry| entry.pid.load(Ordering::Relaxed) == pid);
            if found.is_some() || pid <= 1 {
                return found;
            }
            pid = status(pid)?.parent;
        }
        None
    }

    /// Counts the children of a process that were started before `limit`. `ancestor` is the entry
    /// of the process, or of its nearest ancestor that has entered itself.
    fn count_children(&self, parent: u32, ancestor: Option<Slot>, limit: StartTime) -> u32 {
        let ancestor = ancestor.map_or(0, |slot| slot.0 + 1);
        let ready_entries = || self.entries().iter().filter(|entry| entry.is_ready()).count();
        let mut count = 0;
        for _ in 0..ATTEMPTS {
            let before = ready_entries();
            count = self.try_count_children(parent, ancestor, limit);
            // A process that enters itself during the count may be counted twice, or not at all.
            if ready_entries() == before {
                break;
            }
        }
        count
    }

    /// Counts children that have entered themselves, and running children that have not yet.
    fn try_count_children(&self, parent: u32, ancestor: u32, limit: StartTime) -> u32 {
        let is_entered_child = |entry: &Entry| {
            entry.is_ready()
                && entry.parent.load(Ordering::Relaxed) == ancestor
                && entry.start() < limit
        };
        // Running children first: one that ended before has entered itself.
        let mut running = 0;
        children(parent, |pid| {
            let Some(start) = status(pid).map(|status| status.start) else { return };
            let has_entered =
                || self.find(|entry| is_entered_child(entry) && entry.start() == start).is_some();
            if start < limit && !has_entered() {
                running += 1;
            }
        });
        let entered = self.entries().iter().filter(|entry| is_entered_child(entry)).count();
        running + entered as u32
    }

    /// The MPI rank in the environment of this process.
    fn rank(&self) -> Option<u32> {
        let ignored = self.header().ignored_ranks.load(Ordering::Relaxed);
        let variables =
            RANK_VARIABLES.iter().enumerate().filter(|(bit, _)| ignored & 1 << bit == 0);
        variables.map(|(_, name)| name).find_map(|name| {
            // SAFETY: the name and the value end with a zero.
            let value = unsafe {
                let value = libc::getenv(name.as_ptr());
                (!value.is_null()).then(|| CStr::from_ptr(value))?
            };
            value.to_str().ok()?.parse().ok().filter(|rank| *rank < u32::MAX)
        })
    }

    /// Records that a program in a process has opened a GPU.
    pub fn open_program(&self, slot: Slot) -> Program {
        let entry = self.entry(slot);
        let number = entry.map(|entry| entry.programs.fetch_add(1, Ordering::Relaxed));
        Program { slot, number: number.unwrap_or(0) }
    }

    /// The path of a program.
    pub fn path(&self, Program { slot, number: program }: Program) -> ProcessPath {
        let mut path = Vec::new();
        let mut next = Some(slot);
        let rank = self.entry(slot).map_or(0, |entry| entry.rank.load(Ordering::Relaxed));
        while let Some(entry) = next.and_then(|slot| self.entry(slot)) {
            let parent_slot = entry.parent.load(Ordering::Relaxed).checked_sub(1).map(Slot);
            let parent = parent_slot.and_then(|slot| self.entry(slot));
            let parent_rank = parent.map_or(0, |parent| parent.rank.load(Ordering::Relaxed));
            if rank != 0 && parent_rank != rank {
                break;
            }
            path.push(entry.number.load(Ordering::Relaxed));
            // A damaged table may have a cycle.
            next = parent_slot.filter(|_| path.len() < CAPACITY);
        }
        path.reverse();
        let children = self.entry(slot).map_or(0, |entry| entry.children.load(Ordering::Relaxed));
        ProcessPath { rank: rank.checked_sub(1), path, children, program }
    }

    /// Claims the injection of the fault for a program. Returns `true` for the first program that
    /// calls this, also in later calls.
    pub fn claim_injection(&self, program: Program) -> bool {
        claim(&self.header().injection_target, program)
    }

    /// Claims the output file for a program. Returns `true` for the first program that calls this,
    /// also in later calls.
    pub fn claim_output(&self, program: Program) -> bool {
        claim(&self.header().output_writer, program)
    }
}

impl Entry {
    fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire) == 1
    }

    fn start(&self) -> StartTime {
        StartTime { tick: self.tick.load(Ordering::Relaxed), pid: self.pid.load(Ordering::Relaxed) }
    }
}

/// Stores a program in a word that is still 0. Returns `true` if the word contains the program.
fn claim(word: &AtomicU32, Program { slot, number }: Program) -> bool {
    let program = number.wrapping_mul(CAPACITY as u32 * 2).wrapping_add(slot.0 + 1);
    match word.compare_exchange(0, program, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(owner) => owner == program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn table(folder: &Path) -> Table {
        Table::create(&folder.join("processes"), |_| false).expect("a table")
    }

    /// Forks a process that runs `child` and exits with its result.
    fn fork(child: impl FnOnce() -> i32) -> libc::pid_t {
        // SAFETY: the child makes system calls, and exits.
        match unsafe { libc::fork() } {
            // SAFETY: `_exit` ends the child without running handlers of the parent.
            0 => unsafe { libc::_exit(child()) },
            pid => pid,
        }
    }

    fn wait(child: libc::pid_t) -> i32 {
        let mut status = 0;
        // SAFETY: a child that nobody else waits for.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        libc::WEXITSTATUS(status)
    }

    /// Children enter themselves long after they were started, the last one first.
    #[test]
    fn children_are_numbered_in_the_order_of_their_start() {
        const CHILDREN: u32 = 6;
        let folder = tempfile::tempdir().expect("a folder");
        let table = table(folder.path());
        let slot = table.start_program().expect("an entry");
        let parent = std::process::id();
        let children: Vec<libc::pid_t> = (0..CHILDREN)
            .map(|child| {
                fork(|| {
                    // SAFETY: sleeps.
                    unsafe { libc::usleep(20_000 * (CHILDREN - child)) };
                    i32::from(table.start_fork(parent).is_none())
                })
            })
            .collect();
        assert!(children.iter().all(|child| wait(*child) == 0));
        let number = |child: &libc::pid_t| {
            let pid = *child as u32;
            let slot = table.find(|entry| entry.pid.load(Ordering::Relaxed) == pid);
            let program = Program { slot: slot.expect("an entry"), number: 0 };
            table.path(program).path.pop().expect("a number")
        };
        let numbers: Vec<u32> = children.iter().map(number).collect();
        // Tests that run at the same time may start processes between them.
        assert!(numbers.is_sorted(), "{numbers:?}");
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), CHILDREN as usize);
        assert_eq!(table.current_slot(), Some(slot));
    }

    #[test]
    fn only_the_first_program_claims_the_injection_or_the_output() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = table(folder.path());
        let slot = table.current_slot().expect("an entry");
        let (first, second) = (table.open_program(slot), table.open_program(slot));
        assert!(table.claim_output(second) && !table.claim_output(first));
        assert!(table.claim_output(second), "claimed before");
        assert!(table.claim_injection(first) && !table.claim_injection(second));
        assert_eq!(table.path(first).program, 0);
        assert_eq!(table.path(second).program, 1);
    }

    #[test]
    fn files_without_a_table_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("other");
        std::fs::write(&file, "short").expect("written");
        assert!(Table::map_file(&file).is_err());
        assert!(Table::create(&file, |_| false).is_err(), "the file exists");
    }
}
