//! How much memory there is for what a capture holds.

use std::path::Path;

/// Bytes that this machine, or the group of processes that this one is in, has left.
pub fn available() -> u64 {
    let text = |path: &str| {
        flipwave_host::input::read_text(Path::new(path), flipwave_host::input::TEXT).ok()
    };
    let number = |path: &str| text(path)?.trim().parse::<u64>().ok();
    let machine = text("/proc/meminfo").and_then(|text| of_machine(&text)).unwrap_or(u64::MAX);
    let group = number("/sys/fs/cgroup/memory.max").unwrap_or(u64::MAX);
    let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
    machine.min(group.saturating_sub(used))
}

/// What the kernel estimates that programs can take (proc_meminfo(5)).
fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_estimate_is_read() {
        let text = "MemTotal: 100 kB\nMemAvailable:    12345 kB\n";
        assert_eq!(of_machine(text), Some(12345 * 1024));
        assert_eq!(of_machine("MemTotal: 100 kB\n"), None);
        assert!((1 << 20..1 << 60).contains(&available()), "{}", available());
    }
}
