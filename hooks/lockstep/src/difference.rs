//! How two sides differ, and why they could not be run.

use flipwave_device::{Address, Completion, DeviceError, WaveId};
use flipwave_isa::{Lane, Pc, Register};
use std::fmt;

/// The first difference between original and instrumented code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A register holds another value before an original instruction.
    Register {
        /// The wave.
        wave: WaveId,
        /// How many original instructions the wave had executed.
        number: u64,
        /// The instruction's original address.
        pc: Pc,
        /// The register.
        register: Register,
        /// The lane, of registers that have lanes.
        lane: Option<Lane>,
        /// Its value in the original.
        original: u32,
        /// Its value in the instrumented code, addresses of code and data being those of the
        /// original.
        instrumented: u32,
    },
    /// A wave goes another way.
    Path {
        /// The wave.
        wave: WaveId,
        /// How many original instructions the wave had executed.
        number: u64,
        /// The instruction that the original executes next; none where it has ended.
        original: Option<Pc>,
        /// The one that the instrumented code executes next.
        instrumented: Option<Pc>,
    },
    /// A byte of memory is another at the end.
    Memory {
        /// Where, on the original's side.
        address: Address,
        /// What the original left there.
        original: u8,
        /// What the instrumented code left there.
        instrumented: u8,
    },
    /// The dispatches end in different ways.
    End {
        /// How the original ended.
        original: Option<Completion>,
        /// How the instrumented code ended.
        instrumented: Option<Completion>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Register { wave, number, pc, register, lane, original, instrumented } => {
                write!(f, "{wave}, {number} instructions in, before {pc}: {register}")?;
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
                    "{wave}, {number} instructions in: the original comes to {original}, \
                     instrumented to {instrumented}"
                )
            }
            Difference::Memory { address, original, instrumented } => {
                write!(f, "the byte at {address} is {original:#x}, instrumented {instrumented:#x}")
            }
            Difference::End { original, instrumented } => {
                write!(f, "the original ends as {original:?}, instrumented {instrumented:?}")
            }
        }
    }
}

/// Two sides that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LockstepError {
    /// The device refuses.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A dispatch is of a code object that the device does not have.
    #[error("both code objects must be loaded on the device before they run side by side")]
    NotLoaded,
    /// A target that cannot be decoded.
    #[error("{0}")]
    Target(String),
}
