//! Clocks of the host and of the GPUs.

/// Time of the host's clock: nanoseconds since the host was started.
pub fn host_clock() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Rate of the GPUs' clock in kHz: 100 MHz, as on AMD's boards from gfx9 on
/// (`amdgpu_info.gpu_counter_freq`).
pub const GPU_CLOCK_KHZ: u32 = 100_000;

/// Time of the GPUs' clock, in ticks of [`GPU_CLOCK_KHZ`] since the host was started.
pub fn gpu_clock() -> u64 {
    const NANOSECONDS_PER_TICK: u64 = 1_000_000 / GPU_CLOCK_KHZ as u64;
    host_clock() / NANOSECONDS_PER_TICK
}
