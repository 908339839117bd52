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
mod result;
mod run;
mod spread;
mod story;
mod waves;
mod workgroups;

pub use event::{Event, Gone, Step, What, Wrong};
pub use result::{LeftOut, Trace, TraceEnding, TraceError, WrongOutput};
pub use spread::{Sample, Spread};

use crate::inject::fault_observer::FaultObserver;
use crate::inject::injection::InjectionError;
use crate::inject::run::check;
use crate::{Site, Workload};
use flipwave_device::Dispatch;
use reach::reach;
use run::Run;
use story::Story;

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
