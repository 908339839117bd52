//! Execution up to the fault, which is common to both runs.

use super::TraceError;
use crate::fault_space::workgroups;
use crate::inject::fault_observer::FaultObserver;
use crate::inject::injection::InjectionError;
use crate::{Site, Workload};
use flipwave_device::Completion;
use flipwave_machine::{Progress, Simulator};

/// Wave instructions executed between checks for the first strike; up to this many may be executed in
/// parallel before it.
const CHUNK: u64 = 4096;

/// Position of the first strike.
pub struct Reached {
    /// The device in the state before the dispatch.
    pub device: Simulator,
    /// Index of the dispatch.
    pub dispatch: u32,
    /// Wave instructions of the dispatch that are executed before any strike.
    pub executed: u64,
}

/// Runs a workload until the fault strikes.
///
/// # Errors
/// [`TraceError`] if the fault never strikes.
pub fn reach(workload: &Workload, site: &Site) -> Result<Reached, TraceError> {
    let mut device = workload.start()?;
    for (index, dispatch) in (0..).zip(&workload.program.dispatches) {
        if site.event().is_none_or(|event| event.dispatch == index) {
            let mut observer = FaultObserver::new(site, workload.cells(), workload.simds());
            observer.begin(workgroups(dispatch));
            let mut probe = device.clone();
            let mut execution = probe.begin(dispatch)?;
            let mut executed = 0;
            loop {
                let until = executed + CHUNK;
                let progress = probe.advance(&mut execution, &mut observer, until)?;
                match observer.so_far() {
                    Some(Ok(_)) => return Ok(Reached { device, dispatch: index, executed }),
                    Some(Err(_)) => break,
                    None => {}
                }
                if matches!(progress, Progress::Ended(_)) {
                    break;
                }
                executed = execution.statistics().wave_instructions;
                workload.cancellation.stop_if_cancelled(&mut execution);
            }
            if let Some(Err(error)) = observer.outcome() {
                return Err(error.into());
            }
            if site.event().is_some() {
                break;
            }
        }
        if let Completion::Faulted(fault) = workload.dispatch(&mut device, dispatch)? {
            let (site, fault) = (Box::new(*site), Some(Box::new(fault)));
            return Err(InjectionError::NotActivated { site, fault }.into());
        }
        workload.change(&mut device, index as usize + 1)?;
    }
    Err(InjectionError::NotActivated { site: Box::new(*site), fault: None }.into())
}
