//! The golden run: the fault-free reference run.

pub mod checkpoints;
pub mod profiling;
mod run;
pub mod stored;

use crate::{Ending, Output};
use flipwave_arch::SourceLine;
use flipwave_device::{
    DeviceError, DeviceFault, Dim3, FaultContext, KernelPacket, Statistics, WaveLocation,
    demangled_kernel,
};

/// Result of a golden run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Golden {
    /// Final content of each output, in the order of [`Program::outputs`](crate::Program).
    pub outputs: Vec<Output>,
    /// Instruction counts of each dispatch.
    pub statistics: Vec<Statistics>,
}

/// Formats the state of the wave for the end of a message.
fn context_lines(context: &Option<Box<FaultContext>>) -> String {
    context.as_ref().map(|context| context.to_string()).unwrap_or_default()
}

/// Errors returned when a golden run does not complete, because of a bug in the workload or a gap in
/// the embedded GPU.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// The device stopped a dispatch.
    #[error(
        "the golden run failed in dispatch {dispatch} (kernel `{}`): {}",
        demangled_kernel(kernel),
        fault.report(line.as_deref())
    )]
    Faulted {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// The device fault.
        fault: Box<DeviceFault>,
        /// Source line of the instruction, if known.
        line: Option<Box<SourceLine>>,
    },
    /// A dispatch exceeded its instruction limit.
    #[error(
        "the golden run does not end: dispatch {dispatch} (kernel `{}`) executed {executed} wave \
         instructions, the maximum of its `instruction_limit`, at pc {}, {}; set a higher limit if it \
         needs more{}",
        demangled_kernel(kernel), place.pc, place.wave, context_lines(context)
    )]
    TooLong {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// Wave instructions executed.
        executed: u64,
        /// Location of a wave.
        place: WaveLocation,
        /// State of this wave, if the device knows it.
        context: Option<Box<FaultContext>>,
    },
    /// The run was cancelled.
    #[error(
        "the golden run was stopped in dispatch {dispatch} (kernel `{}`) after {executed} wave \
         instructions, at pc {}, {}{}",
        demangled_kernel(kernel), place.pc, place.wave, context_lines(context)
    )]
    Stopped {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// Wave instructions executed.
        executed: u64,
        /// Location of a wave.
        place: WaveLocation,
        /// State of this wave, if the device knows it.
        context: Option<Box<FaultContext>>,
    },
    /// A packet in memory does not match the recorded dispatch.
    #[error(
        "dispatch {dispatch} (kernel `{}`) is recorded with grid {}, workgroup {} and \
         {lds_bytes} bytes of LDS, and its packet has grid {}, workgroup {} and {} bytes",
        demangled_kernel(kernel), extent(grid), extent(workgroup), extent(&packet.grid), extent(&packet.workgroup),
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
        /// The packet in memory.
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
    /// The golden run as the end of a faulty run.
    pub fn ending(&self) -> Ending {
        let Golden { outputs, statistics } = self.clone();
        Ending::Completed { outputs, statistics }
    }

    /// Watchdog limit of each dispatch in faulty runs, in wave instructions.
    pub fn instruction_limits(&self) -> Vec<u64> {
        self.statistics
            .iter()
            .map(|executed| instruction_limit(executed.wave_instructions))
            .collect()
    }
}

/// Number of wave instructions after which a faulty run of a dispatch counts as hung: ten times the
/// number of the golden run, plus 10,000 for very short dispatches. Slower faulty runs are treated as
/// endless.
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
