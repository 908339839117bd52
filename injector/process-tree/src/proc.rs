//! What the system says of processes (proc(5)), read without taking memory.

use std::io::Write;

/// When a process was born, to compare it with its siblings: the clock tick of its start, and its
/// number, as the system gives numbers in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Birth {
    /// Clock ticks since the system was started.
    pub tick: u64,
    /// The process's number.
    pub pid: u32,
}

impl Birth {
    /// After all others.
    pub const LAST: Birth = Birth { tick: u64::MAX, pid: u32::MAX };
}

/// A process as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    /// Its birth.
    pub birth: Birth,
    /// Its parent's number.
    pub parent: u32,
}

/// Reads the beginning of a file.
fn read<'a>(path: &[u8], bytes: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: the path ends with a zero; what is read goes to `bytes`. System calls, as the C
    // library's functions may be replaced in this process.
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

/// What the system says of a process, if it is there.
pub fn status(pid: u32) -> Option<Status> {
    let mut path = [0; 32];
    write!(&mut path[..31], "/proc/{pid}/stat").ok()?;
    let mut text = [0; 512];
    let text = read(&path, &mut text)?;
    // The second field, in brackets, may hold anything.
    let rest = text.get(text.iter().rposition(|byte| *byte == b')')? + 2..)?;
    let mut fields = rest.split(|byte| *byte == b' ');
    // The third field is the first here: the parent is the fourth, the start the 22nd.
    let parent = decimal(fields.nth(1)?)?;
    let tick = decimal(fields.nth(17)?)?;
    Some(Status { birth: Birth { tick, pid }, parent: parent as u32 })
}

/// Calls `each` with the number of each child that a process has now.
pub fn children(pid: u32, mut each: impl FnMut(u32)) {
    let mut path = [0; 32];
    if write!(&mut path[..31], "/proc/{pid}/task").is_err() {
        return;
    }
    entries(&path, |thread| {
        let mut path = [0; 64];
        let mut text = [0; 4096];
        if write!(&mut path[..63], "/proc/{pid}/task/{thread}/children").is_ok()
            && let Some(text) = read(&path, &mut text)
        {
            let numbers = text.split(|byte| *byte == b' ').filter_map(decimal);
            numbers.for_each(|child| each(child as u32));
        }
    });
}

/// Calls `each` with each entry of a folder whose name is a number.
fn entries(path: &[u8], mut each: impl FnMut(u32)) {
    // SAFETY: the path ends with a zero; entries are written to the buffer.
    unsafe {
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let (flags, here) = (libc::c_long::from(flags), libc::c_long::from(libc::AT_FDCWD));
        let folder = libc::syscall(libc::SYS_openat, here, path.as_ptr(), flags, 0_i64);
        if folder < 0 {
            return;
        }
        // `struct linux_dirent64` of getdents(2): length at 16, name from 19 on, with a zero.
        let mut buffer = [0u8; 2048];
        loop {
            let length =
                libc::syscall(libc::SYS_getdents64, folder, buffer.as_mut_ptr(), buffer.len());
            let Some(mut rest) = buffer.get(..usize::try_from(length).unwrap_or(0)) else { break };
            if rest.is_empty() {
                break;
            }
            while let Some([low, high]) = rest.get(16..18) {
                let size = usize::from(u16::from_ne_bytes([*low, *high]));
                let (entry, others) = rest.split_at(size.clamp(19, rest.len()));
                rest = others;
                let name = entry[19..].split(|byte| *byte == 0).next().unwrap_or_default();
                if let Some(number) = decimal(name) {
                    each(number as u32);
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
    fn a_child_is_found_with_its_parent_and_after_an_older_one() {
        let sleep = || Command::new("sleep").arg("60").spawn().expect("sleep");
        let mut both = [sleep(), sleep()];
        let status = both.each_ref().map(|child| status(child.id()).expect("it runs"));
        let mut found = Vec::new();
        children(std::process::id(), |child| found.push(child));
        assert!(status.iter().all(|own| own.parent == std::process::id()));
        assert!(status[0].birth < status[1].birth);
        assert!(both.iter().all(|child| found.contains(&child.id())), "{found:?}");
        for child in &mut both {
            child.kill().expect("it runs");
            child.wait().expect("an end");
        }
        assert!(super::status(u32::MAX).is_none());
    }
}
