//! The table.

use crate::place::Place;
use crate::proc::{Birth, Status, children, status};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The environment variable with the table's file.
pub const VARIABLE: &str = "FLIPWAVE_PROCESSES";

/// Environment variables in which launchers of MPI and of batch systems give a process its rank.
pub const RANKS: [&CStr; 3] = [c"OMPI_COMM_WORLD_RANK", c"PMI_RANK", c"SLURM_PROCID"];

/// The beginning of a file with a table, and the version of its format.
const MAGIC: u32 = u32::from_le_bytes(*b"FwPT");
const VERSION: u32 = 1;
/// Processes for which there is room. What is not used takes no disk.
const CAPACITY: usize = 1 << 16;
/// How often siblings are counted while others enter themselves.
const ATTEMPTS: usize = 1000;
/// Generations that are looked at for a parent that has entered itself.
const GENERATIONS: usize = 64;

#[repr(C)]
struct Header {
    magic: AtomicU32,
    version: AtomicU32,
    /// Entries that are taken.
    count: AtomicU32,
    /// Bits of those of [`RANKS`] that say nothing: they are in the environment of the first process.
    ignored_ranks: AtomicU32,
    /// The program that is struck, of those that may be.
    struck: AtomicU32,
    /// The program that writes to the output; others write to files of their own.
    writer: AtomicU32,
}

#[repr(C)]
struct Entry {
    /// Its birth.
    tick: AtomicU64,
    pid: AtomicU32,
    /// The parent's slot, from 1; 0 for none.
    parent: AtomicU32,
    /// The number among the parent's children.
    number: AtomicU32,
    /// The MPI rank, from 1; 0 for none.
    rank: AtomicU32,
    /// Children that it had when it became its program.
    children: AtomicU32,
    /// Programs in the process that have opened a GPU.
    programs: AtomicU32,
    /// 1 when the others are written.
    is_ready: AtomicU32,
    unused: AtomicU32,
}

const BYTES: usize = size_of::<Header>() + CAPACITY * size_of::<Entry>();

/// A table that is mapped. It stays mapped as long as the process runs.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    base: NonNull<Header>,
}

// SAFETY: all that it gives access to are atomics, which stay.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// The entry of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

/// A program that has opened a GPU, in a process that may have become others before by exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    slot: Slot,
    /// How many programs in the process have opened a GPU before.
    number: u32,
}

impl Table {
    /// Makes a file with an empty table for an application in whose environment `has` says which
    /// variables are: a rank that is there already is none of the tree's.
    ///
    /// # Errors
    /// If the file cannot be made or mapped.
    pub fn create(file: &Path, has: impl Fn(&str) -> bool) -> io::Result<Table> {
        let own = File::options().read(true).write(true).create_new(true).open(file)?;
        own.set_len(BYTES as u64)?;
        let table = Table::map_file(file)?;
        let is_ignored = |name: &&CStr| name.to_str().is_ok_and(&has);
        let bits = RANKS.iter().enumerate().filter(|(_, name)| is_ignored(name));
        let ignored = bits.fold(0, |mask, (bit, _)| mask | 1 << bit);
        table.header().ignored_ranks.store(ignored, Ordering::Relaxed);
        table.header().version.store(VERSION, Ordering::Relaxed);
        table.header().magic.store(MAGIC, Ordering::Release);
        Ok(table)
    }

    fn map_file(file: &Path) -> io::Result<Table> {
        let path = std::ffi::CString::new(file.as_os_str().as_bytes())?;
        Table::map(&path).ok_or_else(io::Error::last_os_error)
    }

    /// Opens the table of this process's tree; nothing if there is none, or none of this version.
    pub fn of_process() -> Option<Table> {
        // SAFETY: the name ends with a zero, and so does the value.
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
        // SAFETY: system calls. What is mapped is as long as the table, which is looked at, and
        // stays; all of it is accessed as atomics, whatever is in it.
        unsafe {
            // Each argument has the width of a register, as nothing says how wide it is.
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
            let base = match length == BYTES as i64 {
                true => libc::syscall(libc::SYS_mmap, 0_i64, BYTES, access, kind, file, 0_i64),
                false => -1,
            };
            libc::syscall(libc::SYS_close, file);
            let base = (base != -1).then_some(base as *mut Header)?;
            Some(Table { base: NonNull::new(base)? })
        }
    }

    fn header(&self) -> &Header {
        // SAFETY: mapped, and long enough; a page is aligned for it.
        unsafe { self.base.as_ref() }
    }

    fn entries(&self) -> &[Entry] {
        let count = self.header().count.load(Ordering::Acquire) as usize;
        // SAFETY: behind the header, whose size is a multiple of the entries' alignment; no more
        // than there is room for. The type has no padding that could matter, and any bits are right.
        unsafe {
            let first = self.base.as_ptr().add(1).cast::<Entry>();
            std::slice::from_raw_parts(first, count.min(CAPACITY))
        }
    }

    fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries().get(slot.0 as usize)
    }

    /// The last entry that is ready and of which `is_it` holds.
    fn find(&self, is_it: impl Fn(&Entry) -> bool) -> Option<Slot> {
        let place = self.entries().iter().rposition(|entry| entry.is_ready() && is_it(entry))?;
        Some(Slot(place as u32))
    }

    /// Notes that a program starts in this process, which may have been another before.
    ///
    /// Nothing if there is no room, or the system does not say when the process was born.
    pub fn start_program(&self) -> Option<Slot> {
        let own = status(std::process::id())?;
        let slot = self.known(own.birth).map_or_else(|| self.enter(own, own.parent), Some)?;
        let entry = self.entry(slot)?;
        // What comes with exec.
        entry.rank.store(self.rank().map_or(0, |rank| rank + 1), Ordering::Relaxed);
        let children = self.born_before(Birth::LAST, own.birth.pid, Some(slot));
        entry.children.store(children, Ordering::Relaxed);
        Some(slot)
    }

    /// Notes that this process was forked from `parent`, which may be gone.
    ///
    /// Nothing as of [`Table::start_program`].
    pub fn start_fork(&self, parent: u32) -> Option<Slot> {
        self.enter(status(std::process::id())?, parent)
    }

    /// The entry of this process, which is made if it has not entered itself.
    ///
    /// Nothing as of [`Table::start_program`].
    pub fn own(&self) -> Option<Slot> {
        let own = status(std::process::id())?;
        self.known(own.birth).map_or_else(|| self.enter(own, own.parent), Some)
    }

    fn known(&self, birth: Birth) -> Option<Slot> {
        self.find(|entry| entry.birth() == birth)
    }

    fn enter(&self, own: Status, parent: u32) -> Option<Slot> {
        let ancestor = self.ancestor(parent);
        let number = self.born_before(own.birth, parent, ancestor);
        let place = self.header().count.fetch_add(1, Ordering::AcqRel);
        if place as usize >= CAPACITY {
            self.header().count.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        let entry = self.entry(Slot(place))?;
        entry.tick.store(own.birth.tick, Ordering::Relaxed);
        entry.pid.store(own.birth.pid, Ordering::Relaxed);
        entry.parent.store(ancestor.map_or(0, |slot| slot.0 + 1), Ordering::Relaxed);
        entry.number.store(number, Ordering::Relaxed);
        entry.rank.store(self.rank().map_or(0, |rank| rank + 1), Ordering::Relaxed);
        entry.is_ready.store(1, Ordering::Release);
        Some(Slot(place))
    }

    /// The next of a process and its ancestors that has entered itself.
    fn ancestor(&self, mut pid: u32) -> Option<Slot> {
        for _ in 0..GENERATIONS {
            let found = self.find(|entry| entry.pid.load(Ordering::Relaxed) == pid);
            if found.is_some() || pid <= 1 {
                return found;
            }
            pid = status(pid)?.parent;
        }
        None
    }

    /// How many children of a process were born before `own`. `ancestor` is the process, or the next
    /// of its ancestors that has entered itself.
    fn born_before(&self, own: Birth, parent: u32, ancestor: Option<Slot>) -> u32 {
        let ancestor = ancestor.map_or(0, |slot| slot.0 + 1);
        let entered = || self.entries().iter().filter(|entry| entry.is_ready()).count();
        let mut number = 0;
        for _ in 0..ATTEMPTS {
            let before = entered();
            number = self.older(own, parent, ancestor);
            // One that enters itself meanwhile would be counted twice, or not at all.
            if entered() == before {
                break;
            }
        }
        number
    }

    /// Children that were born before and have entered themselves, and those that run and have not
    /// come to it.
    fn older(&self, own: Birth, parent: u32, ancestor: u32) -> u32 {
        let is_older = |entry: &Entry| {
            entry.is_ready()
                && entry.parent.load(Ordering::Relaxed) == ancestor
                && entry.birth() < own
        };
        // First those that run: one that has ended before then has entered itself.
        let mut running = 0;
        children(parent, |pid| {
            let birth = status(pid).map(|status| status.birth);
            // One that has entered itself is counted below.
            let is_counted = |birth| self.find(|e| is_older(e) && e.birth() == birth);
            if birth.is_some_and(|birth| birth < own && is_counted(birth).is_none()) {
                running += 1;
            }
        });
        let entered = self.entries().iter().filter(|entry| is_older(entry)).count();
        running + entered as u32
    }

    /// The MPI rank that the environment gives this process.
    fn rank(&self) -> Option<u32> {
        let ignored = self.header().ignored_ranks.load(Ordering::Relaxed);
        let wanted = RANKS.iter().enumerate().filter(|(bit, _)| ignored & 1 << bit == 0);
        wanted.map(|(_, name)| name).find_map(|name| {
            // SAFETY: the name ends with a zero, and so does the value.
            let value = unsafe {
                let value = libc::getenv(name.as_ptr());
                (!value.is_null()).then(|| CStr::from_ptr(value))?
            };
            value.to_str().ok()?.parse().ok().filter(|rank| *rank < u32::MAX)
        })
    }

    /// Notes that a program in a process has opened a GPU.
    pub fn open_program(&self, slot: Slot) -> Program {
        let number = self.entry(slot).map(|e| e.programs.fetch_add(1, Ordering::Relaxed));
        Program { slot, number: number.unwrap_or(0) }
    }

    /// The place of a program.
    pub fn place(&self, Program { slot, number: program }: Program) -> Place {
        let mut path = Vec::new();
        let mut next = Some(slot);
        let rank = self.entry(slot).map_or(0, |entry| entry.rank.load(Ordering::Relaxed));
        while let Some(entry) = next.and_then(|slot| self.entry(slot)) {
            let parent = entry.parent.load(Ordering::Relaxed).checked_sub(1).map(Slot);
            let inherited = parent.and_then(|parent| self.entry(parent));
            let inherited = inherited.map_or(0, |parent| parent.rank.load(Ordering::Relaxed));
            if rank != 0 && inherited != rank {
                break;
            }
            path.push(entry.number.load(Ordering::Relaxed));
            // A damaged table may have a circle.
            next = parent.filter(|_| path.len() < CAPACITY);
        }
        path.reverse();
        let children = self.entry(slot).map_or(0, |own| own.children.load(Ordering::Relaxed));
        Place { rank: rank.checked_sub(1), path, children, program }
    }

    /// Whether a program is the one that is struck: the first that asks is.
    pub fn is_struck(&self, program: Program) -> bool {
        claim(&self.header().struck, program)
    }

    /// Whether a program is the one that writes to the output: the first that asks is.
    pub fn is_writer(&self, program: Program) -> bool {
        claim(&self.header().writer, program)
    }
}

impl Entry {
    fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire) == 1
    }

    fn birth(&self) -> Birth {
        Birth { tick: self.tick.load(Ordering::Relaxed), pid: self.pid.load(Ordering::Relaxed) }
    }
}

/// Claims something for a program; whether it has it.
fn claim(word: &AtomicU32, Program { slot, number }: Program) -> bool {
    let own = number.wrapping_mul(CAPACITY as u32 * 2).wrapping_add(slot.0 + 1);
    match word.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(owner) => owner == own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn table(folder: &Path, has: impl Fn(&str) -> bool) -> Table {
        Table::create(&folder.join("processes"), has).expect("a table")
    }

    /// Forks a process that runs `own` and ends with what that gives.
    fn fork(own: impl FnOnce() -> i32) -> libc::pid_t {
        // SAFETY: the child makes system calls, and ends.
        match unsafe { libc::fork() } {
            // SAFETY: `_exit` ends the child without running handlers of the parent.
            0 => unsafe { libc::_exit(own()) },
            child => child,
        }
    }

    fn wait(child: libc::pid_t) -> i32 {
        let mut status = 0;
        // SAFETY: a child that nobody else waits for.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        libc::WEXITSTATUS(status)
    }

    /// Children enter themselves long after they were born, the last one first.
    #[test]
    fn numbers_are_in_the_order_of_birth_whoever_enters_itself_first() {
        const CHILDREN: u32 = 6;
        let folder = tempfile::tempdir().expect("a folder");
        let table = table(folder.path(), |_| false);
        let own = table.start_program().expect("an entry");
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
            let slot = table.find(|e| e.pid.load(Ordering::Relaxed) == pid).expect("an entry");
            table.place(Program { slot, number: 0 }).path.pop().expect("a number")
        };
        let numbers: Vec<u32> = children.iter().map(number).collect();
        // Tests that run at the same time may start processes between them.
        assert!(numbers.is_sorted(), "{numbers:?}");
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), CHILDREN as usize);
        assert_eq!(table.own(), Some(own));
    }

    #[test]
    fn one_program_is_struck_and_one_writes() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = table(folder.path(), |_| false);
        let slot = table.own().expect("an entry");
        let (first, second) = (table.open_program(slot), table.open_program(slot));
        assert!(table.is_writer(second) && !table.is_writer(first) && table.is_writer(second));
        assert!(table.is_struck(first) && !table.is_struck(second));
        assert_eq!(table.place(first).program, 0);
        assert_eq!(table.place(second).program, 1);
    }

    #[test]
    fn files_that_hold_no_table_are_not_mapped() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("other");
        std::fs::write(&file, "short").expect("written");
        assert!(Table::map_file(&file).is_err());
        assert!(Table::create(&file, |_| false).is_err(), "the file is there");
    }
}
