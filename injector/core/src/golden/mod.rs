//! The fault-free run.

pub mod boundaries;
mod run;
pub mod stored;
pub mod survey;

use crate::{Ending, Output};
use flipwave_device::{DeviceError, DeviceFault, Dim3, KernelPacket, Statistics, WaveLocation};

/// The fault-free run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// Content of each output afterwards, in the order of [`Program::outputs`](crate::Program).
    pub outputs: Vec<Output>,
    /// What each dispatch executed.
    pub statistics: Vec<Statistics>,
}

/// A golden run that did not complete: the workload itself is at fault, or the embedded GPU has
/// a gap.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// The device ended a dispatch.
    #[error("the fault-free run failed in dispatch {dispatch} (kernel `{kernel}`): {fault}")]
    Faulted {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// What happened.
        fault: DeviceFault,
    },
    /// A dispatch executed more than it may.
    #[error(
        "the fault-free run does not end: dispatch {dispatch} (kernel `{kernel}`) had executed \
         {executed} wave instructions, all that its `instruction_limit` allows, at pc {}, {}; set a \
         higher limit if it needs more", place.pc, place.wave
    )]
    TooLong {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// Wave instructions executed.
        executed: u64,
        /// Where a wave was.
        place: WaveLocation,
    },
    /// Runs were to stop.
    #[error(
        "the fault-free run was stopped in dispatch {dispatch} (kernel `{kernel}`) after {executed} \
         wave instructions, at pc {}, {}", place.pc, place.wave
    )]
    Stopped {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// Wave instructions executed.
        executed: u64,
        /// Where a wave was.
        place: WaveLocation,
    },
    /// A packet in memory that is not what is known of it.
    #[error(
        "dispatch {dispatch} (kernel `{kernel}`) is recorded with grid {}, workgroup {} and \
         {lds_bytes} bytes of LDS, and its packet has grid {}, workgroup {} and {} bytes",
        extent(grid), extent(workgroup), extent(&packet.grid), extent(&packet.workgroup),
        packet.lds_bytes
    )]
    OtherPacket {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// Work-items per dimension, as recorded.
        grid: Dim3,
        /// Work-items of a workgroup per dimension, as recorded.
        workgroup: Dim3,
        /// LDS bytes, as recorded.
        lds_bytes: u32,
        /// What memory holds where the packet is.
        packet: KernelPacket,
    },
    /// The device refused a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn extent(extent: &Dim3) -> String {
    extent.map(|size| size.to_string()).join(",")
}

impl Golden {
    /// The same as the end of a run.
    pub fn ending(&self) -> Ending {
        let Golden { outputs, statistics } = self.clone();
        Ending::Completed { outputs, statistics }
    }

    /// The watchdog of each dispatch in faulty runs, in wave instructions.
    pub fn instruction_limits(&self) -> Vec<u64> {
        self.statistics
            .iter()
            .map(|executed| instruction_limit(executed.wave_instructions))
            .collect()
    }
}

/// After how many wave instructions a faulty run of a dispatch counts as hung: ten times what
/// the fault-free run of it executed, and 10,000 for dispatches so short that ten times them is
/// nothing. A faulty run that is slower than that is taken for endless.
pub fn instruction_limit(golden_wave_instructions: u64) -> u64 {
    golden_wave_instructions.saturating_mul(10).saturating_add(10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_leaves_room_and_does_not_overflow() {
        assert_eq!(instruction_limit(0), 10_000);
        assert_eq!(instruction_limit(1_000_000), 10_010_000);
        assert_eq!(instruction_limit(u64::MAX), u64::MAX);
    }
}
