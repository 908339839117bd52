//! Finds memory that the program gave to GPUs and has since unmapped without telling the driver.

use std::ops::Range;

/// The parts of these pages where this process has no memory, in ascending order.
pub fn unmapped(pages: Range<u64>) -> Vec<Range<u64>> {
    if is_mapped(&pages) {
        return Vec::new();
    }
    // Without the list of mappings, none of the pages can be trusted.
    let Ok(list) = std::fs::read_to_string("/proc/self/maps") else { return vec![pages] };
    gaps(pages, list.lines().filter_map(parse_mapping))
}

/// Returns `true` if all of these pages are mapped. Costs one system call that walks the list of
/// mappings and does nothing else (msync(2), `MS_ASYNC`).
fn is_mapped(pages: &Range<u64>) -> bool {
    let length = (pages.end - pages.start) as usize;
    // SAFETY: changes nothing.
    let result = unsafe { libc::msync(pages.start as *mut _, length, libc::MS_ASYNC) };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOMEM)
}

/// The address range of a line of `/proc/self/maps` (proc_pid_maps(5)).
fn parse_mapping(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

/// The parts of `pages` outside of `mappings`, which are in ascending order.
fn gaps(pages: Range<u64>, mappings: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut start = pages.start;
    let overlaps = |mapping: &Range<u64>| mapping.end > pages.start && mapping.start < pages.end;
    for mapping in mappings.filter(overlaps) {
        if start < mapping.start {
            gaps.push(start..mapping.start);
        }
        start = mapping.end;
    }
    if start < pages.end {
        gaps.push(start..pages.end);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_unmapped_pages_are_found() {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory, of which the pages 1, 3 and 4 are unmapped again.
        let start = unsafe {
            let start = libc::mmap(std::ptr::null_mut(), 6 * 4096, access, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(unmapped(start as u64..start as u64 + 6 * 4096), []);
            libc::munmap(start.byte_add(4096), 4096);
            libc::munmap(start.byte_add(3 * 4096), 2 * 4096);
            start as u64
        };
        let page = |index: u64| start + index * 4096;
        assert_eq!(unmapped(page(0)..page(6)), [page(1)..page(2), page(3)..page(5)]);
        assert_eq!(unmapped(page(1)..page(4)), [page(1)..page(2), page(3)..page(4)]);
        assert_eq!(unmapped(page(5)..page(6)), []);
        assert_eq!(unmapped(0x1000..0x2000).len(), 1, "no process has the first pages");
    }
}
