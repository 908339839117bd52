//! Fault propagation: the faulty run compared with the golden run after each instruction.
//!
//! A difference is state that is not equal in both runs when a wave has executed the same number of
//! instructions: a register (per lane, for per-lane registers), a byte of LDS or device memory, or the
//! wave's next PC. Both runs are complete executions. The faulty run is observed and advances the
//! golden run on demand; instructions that the golden run is ahead are kept in a log of bounded size,
//! by wave.
//!
//! Once a wave takes a different path, its registers cannot be compared any more; only the bytes that
//! it writes are. When a dispatch has completed, all memory is compared, and differences continue into
//! the following dispatches.

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

/// Runs `workload` with a fault at `site` in parallel to a golden run, and records their differences.
/// `limits` are the watchdog limits of the dispatches in wave instructions, as returned by
/// [`Golden::instruction_limits`](crate::Golden::instruction_limits).
///
/// # Errors
/// [`TraceError`] if the fault was not injected as the site describes, and for programs with emulated
/// instructions.
pub fn trace(workload: &Workload, site: &Site, limits: &[u64]) -> Result<Trace, TraceError> {
    check(workload, site, limits)?;
    let is_rewritten = |dispatch: &&Dispatch| workload.device.is_rewritten(dispatch.module);
    let emulated = workload.program.dispatches.iter().find(is_rewritten);
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
