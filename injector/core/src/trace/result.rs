//! The result of a trace.

use super::event::Event;
use super::spread::{Sample, Spread};
use crate::inject::injection::{InjectionError, Struck};
use flipwave_device::{DeviceError, DeviceFault};

/// How a fault propagated.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What was struck.
    pub struck: Struck,
    /// What happened, in order. Each kind is recorded the first time, or the first time in each
    /// wave, and of [`What::Gone`](super::What::Gone) the last time.
    pub events: Vec<Event>,
    /// What differed over time: at every instruction that changed it, or evenly spaced where those
    /// are many.
    pub samples: Vec<Sample>,
    /// The most of everything that differed at a time.
    pub peak: Spread,
    /// Instructions that read a wrong register, and wrote nothing wrong. One that reads across
    /// lanes counts as reading all of them.
    pub masked: u64,
    /// Wave instructions that the faulty run executed after the one that was struck first, as far
    /// as it was followed.
    pub time: u64,
    /// How it ended.
    pub ending: TraceEnding,
    /// What there was no room for.
    pub left_out: LeftOut,
}

/// How a traced run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEnding {
    /// Nothing differs any more, or ever did.
    Died,
    /// All dispatches completed, and the outputs are right; this many bytes of other memory are
    /// not.
    Contained {
        /// Wrong bytes of device memory.
        memory_bytes: u64,
    },
    /// All dispatches completed, and these outputs are wrong.
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
    /// How many bytes are wrong.
    pub bytes: u64,
    /// Offset of the first.
    pub first: u64,
    /// Its value in the golden run.
    pub golden: u8,
    /// Its value in the faulty run.
    pub faulty: u8,
}

/// What a trace leaves out, so that it stays small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Waves whose registers were not compared on, as the golden run was too far ahead.
    pub waves: usize,
    /// Events of waves, after the first 256.
    pub events: u64,
}

/// A trace that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The fault did not strike.
    #[error(transparent)]
    Injection(Box<InjectionError>),
    /// Code that was rewritten, whose registers hooks use besides.
    #[error(
        "kernel `{kernel}` has emulated instructions; only programs without them can be traced"
    )]
    Emulated {
        /// The kernel.
        kernel: String,
    },
    /// Runs were to stop.
    #[error("runs were to stop before both had ended")]
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
