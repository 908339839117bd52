//! Available memory, which limits the data that are read from a capture.

use std::path::Path;

/// Bytes of memory that are available on this machine, or within the limit of this process's
/// cgroup.
pub fn available() -> u64 {
    let text = |path: &str| {
        flipwave_host::input::read_text(Path::new(path), flipwave_host::input::TEXT).ok()
    };
    let number = |path: &str| text(path)?.trim().parse::<u64>().ok();
    let machine = text("/proc/meminfo").and_then(|text| mem_available(&text)).unwrap_or(u64::MAX);
    let limit = number("/sys/fs/cgroup/memory.max").unwrap_or(u64::MAX);
    let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
    machine.min(limit.saturating_sub(used))
}

/// The kernel's estimate of available memory in bytes (proc_meminfo(5)).
fn mem_available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_of_the_kernel_is_parsed() {
        let text = "MemTotal: 100 kB\nMemAvailable:    12345 kB\n";
        assert_eq!(mem_available(text), Some(12345 * 1024));
        assert_eq!(mem_available("MemTotal: 100 kB\n"), None);
        assert!((1 << 20..1 << 60).contains(&available()), "{}", available());
    }
}
