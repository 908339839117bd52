//! How a fault propagates: the faulty run beside the golden one, compared after each instruction.
//!
//! A difference is state that is not the same in both runs when the same wave has executed the
//! same number of instructions: a register, in a lane where each has its own; a byte of LDS or of
//! device memory; the place in the code where the wave goes on. The two runs are whole executions
//! of their own. The faulty one is watched, and carries the golden one on as far as it needs it;
//! what the golden one has done ahead is kept, wave by wave, in a log of bounded size.
//!
//! From where a wave goes another way its registers have nothing that they could be compared
//! with, and only the bytes that it writes are. When a dispatch has completed, all memory is
//! compared: what differs goes on into the dispatches that follow.

mod bytes;
mod compare;
mod event;
mod found;
mod golden;
mod left;
mod log;
mod reach;
mod registers;
mod run;
mod spread;
mod story;
mod waves;
mod workgroups;

pub use event::{Event, Gone, Step, What, Wrong};
pub use spread::{Sample, Spread};

use crate::inject::fault_observer::FaultObserver;
use crate::inject::injection::{InjectionError, Struck};
use crate::inject::run::check;
use crate::{Site, Workload};
use flipwave_device::{DeviceError, DeviceFault, Dispatch};
use reach::reach;
use run::Run;
use story::Story;

/// How a fault propagated.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What was struck.
    pub struck: Struck,
    /// What happened, in order. Each kind is recorded the first time, or the first time in each
    /// wave, and of [`What::Gone`] the last time.
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

/// Runs `workload` with a fault at `site` beside itself without one, and records how they differ.
/// `limits` are the watchdogs of the dispatches in wave instructions, as
/// [`Golden::instruction_limits`](crate::Golden::instruction_limits) gives them.
///
/// # Errors
/// [`TraceError`] whenever the fault does not take place as the site says, and for programs with
/// emulated instructions.
pub fn trace(workload: &Workload, site: &Site, limits: &[u64]) -> Result<Trace, TraceError> {
    check(workload, site, limits)?;
    let guests = &workload.guests;
    let emulated =
        workload.program.dispatches.iter().find(|own| guests.contains_key(&own.module.0));
    if let Some(Dispatch { kernel, .. }) = emulated {
        return Err(TraceError::Emulated { kernel: kernel.clone() });
    }
    let reached = reach(workload, site)?;
    let mut observer = FaultObserver::new(site, workload.cells(), workload.simds());
    let mut story = Story::new();
    let ending = Run { workload, site, limits, observer: &mut observer, story: &mut story }
        .follow(reached)?;
    let not_activated = InjectionError::NotActivated { site: Box::new(*site), fault: None };
    let struck = observer.outcome().unwrap_or(Err(not_activated))?;
    Ok(story.into_trace(struck, ending))
}
