//! The result of a trace.

use super::event::Event;
use super::spread::{Sample, Spread};
use crate::inject::injection::{InjectedChange, InjectionError};
use flipwave_device::{DeviceError, DeviceFault};

/// Propagation of a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The values struck.
    pub struck: InjectedChange,
    /// Events in order. Each kind is recorded at its first occurrence, or the first in each wave; for
    /// [`What::Gone`](super::What::Gone), the last.
    pub events: Vec<Event>,
    /// Differences over time: at every instruction that changed them, or evenly spaced if there are
    /// many.
    pub samples: Vec<Sample>,
    /// Maximum of each quantity over time.
    pub peak: Spread,
    /// Instructions that read a wrong register but wrote nothing wrong. Instructions that read across
    /// lanes count as reading all of them.
    pub masked: u64,
    /// Wave instructions executed by the faulty run after the first struck instruction, as far as the
    /// run was traced.
    pub time: u64,
    /// The end of the run.
    pub ending: TraceEnding,
    /// Data omitted for lack of space.
    pub left_out: LeftOut,
}

/// End of a traced run.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEnding {
    /// No differences are left, or there never were any.
    Died,
    /// All dispatches completed with correct outputs; this many bytes of other memory are wrong.
    Contained {
        /// Wrong bytes of device memory.
        memory_bytes: u64,
    },
    /// All dispatches completed, but these outputs are wrong.
    Escaped(Vec<WrongOutput>),
    /// The device stopped a dispatch.
    Faulted {
        /// Index of the dispatch.
        dispatch: u32,
        /// Why and where it was stopped.
        fault: DeviceFault,
    },
}

/// An output with wrong bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongOutput {
    /// Index of the output in [`Program::outputs`](crate::Program::outputs).
    pub output: usize,
    /// Number of wrong bytes.
    pub bytes: u64,
    /// Offset of the first wrong byte.
    pub first: u64,
    /// Value of the first wrong byte in the golden run.
    pub golden: u8,
    /// Value of the first wrong byte in the faulty run.
    pub faulty: u8,
}

/// Data that a trace omits to stay small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Waves whose registers were not compared further because the golden run was too far ahead.
    pub waves: usize,
    /// Events of waves beyond the first 256.
    pub events: u64,
}

/// Errors returned by tracing.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The fault did not strike.
    #[error(transparent)]
    Injection(Box<InjectionError>),
    /// The code was rewritten; its hooks use additional registers.
    #[error(
        "kernel `{kernel}` contains hooks, of emulated instructions or a detector; only programs without hooks can be traced"
    )]
    Emulated {
        /// The kernel.
        kernel: String,
    },
    /// Tracing was cancelled.
    #[error("tracing was cancelled before both runs had ended")]
    Stopped,
}

impl From<InjectionError> for TraceError {
    fn from(error: InjectionError) -> TraceError {
        TraceError::Injection(Box::new(error))
    }
}

impl From<DeviceError> for TraceError {
    fn from(error: DeviceError) -> TraceError {
        InjectionError::from(error).into()
    }
}
