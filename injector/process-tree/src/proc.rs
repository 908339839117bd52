//! Information on processes from `/proc` (proc(5)), read without allocating memory.

use std::io::Write;

/// Start of a process, by which it is compared with its siblings: the clock tick, and the process
/// number, which the system assigns in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartTime {
    /// Clock ticks since the system was booted.
    pub tick: u64,
    /// Process number.
    pub pid: u32,
}

impl StartTime {
    /// A time after the start of every process.
    pub const MAX: StartTime = StartTime { tick: u64::MAX, pid: u32::MAX };
}

/// Current status of a process.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    pub start: StartTime,
    /// Process number of the parent.
    pub parent: u32,
}

/// Reads the beginning of a file. The path ends with a zero.
fn read<'a>(path: &[u8], bytes: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: the path ends with a zero; at most the whole buffer is written. System calls, as the
    // C library's functions may be intercepted in this process.
    let length = unsafe {
        let flags = libc::c_long::from(libc::O_RDONLY | libc::O_CLOEXEC);
        let here = libc::c_long::from(libc::AT_FDCWD);
        let file = libc::syscall(libc::SYS_openat, here, path.as_ptr(), flags, 0_i64);
        if file < 0 {
            return None;
        }
        let length = libc::syscall(libc::SYS_read, file, bytes.as_mut_ptr(), bytes.len());
        libc::syscall(libc::SYS_close, file);
        length
    };
    bytes.get(..usize::try_from(length).ok()?)
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Status of a process; `None` if it does not exist.
pub fn status(pid: u32) -> Option<Status> {
    let mut path = [0; 32];
    write!(&mut path[..31], "/proc/{pid}/stat").ok()?;
    let mut text = [0; 512];
    let text = read(&path, &mut text)?;
    // The second field, the program's name in parentheses, may contain anything.
    let after_name = text.get(text.iter().rposition(|byte| *byte == b')')? + 2..)?;
    let mut fields = after_name.split(|byte| *byte == b' ');
    // These begin with the third field. The parent is the fourth, the start time the 22nd.
    let parent = decimal(fields.nth(1)?)?;
    let tick = decimal(fields.nth(17)?)?;
    Some(Status { start: StartTime { tick, pid }, parent: parent as u32 })
}

/// Calls `visit` with the process number of each current child of a process.
pub fn children(pid: u32, mut visit: impl FnMut(u32)) {
    let mut path = [0; 32];
    if write!(&mut path[..31], "/proc/{pid}/task").is_err() {
        return;
    }
    numeric_entries(&path, |thread| {
        let mut path = [0; 64];
        let mut text = [0; 4096];
        if write!(&mut path[..63], "/proc/{pid}/task/{thread}/children").is_ok()
            && let Some(text) = read(&path, &mut text)
        {
            let numbers = text.split(|byte| *byte == b' ').filter_map(decimal);
            numbers.for_each(|child| visit(child as u32));
        }
    });
}

/// Calls `visit` with each entry of a folder whose name is a number. The path ends with a zero.
fn numeric_entries(path: &[u8], mut visit: impl FnMut(u32)) {
    // SAFETY: the path ends with a zero; at most the whole buffer is written.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let (flags, here) = (libc::c_long::from(flags), libc::c_long::from(libc::AT_FDCWD));
        let folder = libc::syscall(libc::SYS_openat, here, path.as_ptr(), flags, 0_i64);
        if folder < 0 {
            return;
        }
        // Offsets in `struct linux_dirent64` of getdents(2): the entry's length at 16, its
        // zero-terminated name at 19.
        let mut buffer = [0u8; 2048];
        loop {
            let length =
                libc::syscall(libc::SYS_getdents64, folder, buffer.as_mut_ptr(), buffer.len());
            let length = usize::try_from(length).unwrap_or(0);
            let Some(mut entries) = buffer.get(..length) else { break };
            if entries.is_empty() {
                break;
            }
            while let Some([low, high]) = entries.get(16..18) {
                let size = usize::from(u16::from_ne_bytes([*low, *high]));
                let (entry, next) = entries.split_at(size.clamp(19, entries.len()));
                entries = next;
                let name = entry[19..].split(|byte| *byte == 0).next().unwrap_or_default();
                if let Some(number) = decimal(name) {
                    visit(number as u32);
                }
            }
        }
        libc::syscall(libc::SYS_close, folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn children_are_found_with_their_parent_and_start_times() {
        let sleep = || Command::new("sleep").arg("60").spawn().expect("sleep");
        let mut both = [sleep(), sleep()];
        let status = both.each_ref().map(|child| status(child.id()).expect("it runs"));
        let mut found = Vec::new();
        children(std::process::id(), |child| found.push(child));
        assert!(status.iter().all(|status| status.parent == std::process::id()));
        assert!(status[0].start < status[1].start);
        assert!(both.iter().all(|child| found.contains(&child.id())), "{found:?}");
        for child in &mut both {
            child.kill().expect("it runs");
            child.wait().expect("an end");
        }
        assert!(super::status(u32::MAX).is_none());
    }
}
