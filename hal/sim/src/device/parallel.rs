//! A dispatch on several threads: faster, and in an order that is not the same each time.

use super::EmbeddedGpu;
use crate::dispatch::execution::{Execution, Progress};
use crate::dispatch::observer::Unobserved;
use crate::dispatch::policy::Stalls;
use flipwave_device::{Completion, DeviceError, DeviceFault, Statistics};
use std::num::NonZeroUsize;

impl EmbeddedGpu {
    /// Advances a dispatch that has not started to its end, its workgroups divided among threads.
    /// They share memory of the host, in which atomic operations are atomic; of the device's own
    /// memory each thread has a copy, so that workgroups find there what was there before, and
    /// nobody what they write.
    ///
    /// The resources of global wave sync are a thread's own: dispatches that use them are not for this.
    ///
    /// A fault is that of the first workgroup that has one, in the order of the grid; others may
    /// have gone on for a while.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn finish_parallel(
        &mut self,
        execution: &Execution,
        threads: NonZeroUsize,
    ) -> Result<Completion, DeviceError> {
        let parts = execution.split(threads.get());
        let ends: Vec<Result<Completion, DeviceError>> = std::thread::scope(|scope| {
            let start = |mut part: Execution| {
                // What other threads write is not seen here.
                part.policy.stalls = Stalls::Ignore;
                let mut device = self.clone();
                scope.spawn(move || {
                    loop {
                        match device.advance(&mut part, &mut Unobserved, u64::MAX)? {
                            Progress::Ended(completion) => return Ok(completion),
                            Progress::Paused => {}
                        }
                    }
                })
            };
            let threads: Vec<_> = parts.into_iter().map(start).collect();
            let failed = || Err(DeviceError::Internal("a thread of the GPU panicked".into()));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| failed())).collect()
        });
        execution.release(&mut self.space)?;
        let mut statistics = Statistics::default();
        let mut first: Option<DeviceFault> = None;
        for end in ends {
            match end? {
                Completion::Completed(own) => {
                    statistics.wave_instructions += own.wave_instructions;
                    statistics.lane_operations += own.lane_operations;
                    statistics.waves += own.waves;
                }
                // Parts are in the order of the grid.
                Completion::Faulted(fault) => first = first.or(Some(fault)),
            }
        }
        Ok(first.map_or(Completion::Completed(statistics), Completion::Faulted))
    }
}
