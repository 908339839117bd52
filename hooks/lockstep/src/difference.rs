//! Differences between original and instrumented code, and errors of lockstep execution.

use flipwave_device::{Address, Completion, DeviceError, WaveId};
use flipwave_isa::{Lane, Pc, Register};
use std::fmt;

/// The first difference between original and instrumented code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A register has different values before an original instruction.
    Register {
        /// The wave.
        wave: WaveId,
        /// The number of original instructions that the wave had executed.
        number: u64,
        /// The original address of the instruction.
        pc: Pc,
        /// The register.
        register: Register,
        /// The lane, for registers with a value per lane.
        lane: Option<Lane>,
        /// The value in the original code.
        original: u32,
        /// The value in the instrumented code, with addresses translated to those of the original.
        instrumented: u32,
    },
    /// A wave takes different paths.
    Path {
        /// The wave.
        wave: WaveId,
        /// The number of original instructions that the wave had executed.
        number: u64,
        /// The next instruction of the original code; `None` if the wave has ended.
        original: Option<Pc>,
        /// The next original instruction of the instrumented code; `None` if the wave has ended.
        instrumented: Option<Pc>,
    },
    /// A byte of memory differs at the end.
    Memory {
        /// The address on the original's device.
        address: Address,
        /// The value after the original code.
        original: u8,
        /// The value after the instrumented code.
        instrumented: u8,
    },
    /// The dispatches end differently.
    End {
        /// The completion of the original code.
        original: Option<Completion>,
        /// The completion of the instrumented code.
        instrumented: Option<Completion>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Register { wave, number, pc, register, lane, original, instrumented } => {
                write!(f, "{wave}, after {number} instructions, before {pc}: {register}")?;
                if let Some(lane) = lane {
                    write!(f, " lane {lane}")?;
                }
                write!(f, " is {original:#x}, instrumented {instrumented:#x}")
            }
            Difference::Path { wave, number, original, instrumented } => {
                let pc = |pc: &Option<Pc>| pc.map_or("its end".to_owned(), |pc| pc.to_string());
                let (original, instrumented) = (pc(original), pc(instrumented));
                write!(
                    f,
                    "{wave}, after {number} instructions: the original continues at {original}, \
                     instrumented at {instrumented}"
                )
            }
            Difference::Memory { address, original, instrumented } => {
                write!(f, "the byte at {address} is {original:#x}, instrumented {instrumented:#x}")
            }
            Difference::End { original, instrumented } => {
                write!(f, "the original ends with {original:?}, instrumented with {instrumented:?}")
            }
        }
    }
}

/// Errors returned when running code in lockstep.
#[derive(Debug, thiserror::Error)]
pub enum LockstepError {
    /// The device rejected a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A code object is not loaded on the device.
    #[error("both code objects must be loaded on the device before they run in lockstep")]
    NotLoaded,
    /// The target has no decoder.
    #[error("{0}")]
    Target(String),
}
