//! The first and last executed instruction of a workload.

use crate::site::Event;
use crate::{GoldenError, Workload};
use flipwave_arch::Pc;
use flipwave_device::WaveId;
use flipwave_machine::{Executed, Observer, Watch, WaveState};
use std::collections::HashMap;

/// The first and the last instruction that a workload executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landmarks {
    /// The first instruction of the first dispatch.
    pub first: Event,
    /// The last instruction of the last dispatch; nothing is executed after it.
    pub last: Event,
}

/// Runs `workload` without a fault and finds its first and last instruction. Returns `None` if the
/// workload executes nothing.
///
/// # Errors
/// [`GoldenError`] if the run does not complete.
pub fn landmarks(workload: &Workload) -> Result<Option<Landmarks>, GoldenError> {
    let mut walk = Walk { dispatch: 0, occurrences: HashMap::new(), first: None, last: None };
    workload.run_fault_free(|index, device, dispatch| {
        walk.dispatch = index;
        walk.occurrences.clear();
        workload.run(device, dispatch, &mut walk, None)
    })?;
    Ok(walk.first.zip(walk.last).map(|(first, last)| Landmarks { first, last }))
}

struct Walk {
    dispatch: u32,
    /// Executions of each instruction by each wave so far.
    occurrences: HashMap<(WaveId, Pc), u64>,
    first: Option<Event>,
    last: Option<Event>,
}

impl Observer for Walk {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn after(&mut self, executed: &Executed<'_>, _: &mut dyn WaveState) -> Watch {
        let (pc, WaveId { workgroup, wave }) = (executed.inst.pc(), executed.wave);
        let occurrence = self.occurrences.entry((executed.wave, pc)).or_default();
        let event = Event {
            dispatch: self.dispatch,
            workgroup,
            wave: Some(wave),
            pc,
            occurrence: *occurrence,
            intermittent: None,
        };
        *occurrence += 1;
        self.first.get_or_insert(event);
        self.last = Some(event);
        Watch::On
    }
}
