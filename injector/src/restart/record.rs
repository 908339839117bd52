//! Saving the states.

use super::{Restart, SavedDispatch, SavedState, SavedWorkgroup, SavedWorkgroups};
use crate::attendance::Attendance;
use crate::population::StruckWorkgroups;
use crate::run::run_from;
use crate::{Golden, Workload};
use flipwave_device::{Address, Change, Completion, DeviceError, Dispatch, Statistics};
use flipwave_sim::{EmbeddedGpu, Execution, Footprint, Footprints, Progress, Unobserved};
use std::collections::{BTreeMap, HashSet};

/// Workgroups saved under way, in all dispatches together: a state has some tens of kilobytes for
/// each wave.
const WORKGROUP_STATES: u64 = 256;

/// Dispatches saved under way, in all together: a state has the memory that was written, and all
/// waves under way.
const WHOLE_STATES: u64 = 32;

/// Bytes of registers and LDS in states of whole dispatches, all together, at most: where there are
/// more, every other state is kept.
const MOST_STATE_BYTES: u64 = 1 << 30;

/// A workgroup that executes more than one part in this many of a dispatch is not worth being
/// executed alone: to watch what it touches costs as much.
const LARGE: u64 = 6;

/// Bytes of device memory, over all dispatches that are struck, at most: beyond them no states are
/// kept.
const MOST_BYTES: u64 = 4 << 30;

impl Restart {
    /// Runs a workload whose fault-free run is `golden`, and saves the states that faults in `struck`
    /// need; nothing if they would need too much memory.
    ///
    /// # Errors
    /// None for a workload that ran before.
    pub fn record(
        workload: &Workload,
        golden: &Golden,
        mut struck: StruckWorkgroups,
    ) -> Result<Option<Restart>, DeviceError> {
        let memory = memory_bytes(workload);
        let memory = struck.dispatches().filter_map(|index| memory.get(index as usize));
        if memory.fold(0u64, |sum, bytes| sum.saturating_add(*bytes)) > MOST_BYTES {
            return Ok(None);
        }
        let total: u64 = golden.statistics.iter().map(|own| own.wave_instructions).sum();
        let mut dispatches = BTreeMap::new();
        let (limits, start) = (golden.instruction_limits(), workload.start()?);
        run_from(workload, &limits, 0, start, Vec::new(), |index, device, dispatch| {
            let Some(workgroups) = struck.take(index) else {
                return workload.dispatch(device, dispatch);
            };
            let statistics = golden.statistics[index as usize];
            let attendance = &workload.attendance;
            let recorder = Recorder { dispatch, statistics, total, workgroups, attendance };
            dispatches.insert(index, recorder.record(device)?);
            Ok(Completion::Completed(statistics))
        })?;
        Ok(Some(Restart { dispatches }))
    }
}

/// Bytes of device memory that each dispatch finds.
fn memory_bytes(workload: &Workload) -> Vec<u64> {
    let mut sizes: BTreeMap<Address, u64> = workload.device.allocations().collect();
    let dispatches = 0..workload.program.dispatches.len();
    let found_by = |index| {
        for change in workload.program.changes.before(index) {
            match change {
                Change::Map { address, bytes } => drop(sizes.insert(*address, *bytes)),
                Change::Unmap { address } => drop(sizes.remove(address)),
                Change::Write(_) | Change::Copy { .. } => {}
            }
        }
        sizes.values().sum()
    };
    dispatches.map(found_by).collect()
}

/// Records one dispatch.
struct Recorder<'a> {
    dispatch: &'a Dispatch,
    statistics: Statistics,
    /// Wave instructions of all dispatches.
    total: u64,
    /// The workgroups that are struck.
    workgroups: HashSet<[u32; 3]>,
    attendance: &'a Attendance,
}

impl Recorder<'_> {
    fn record(self, device: &mut EmbeddedGpu) -> Result<SavedDispatch, DeviceError> {
        device.share_memory();
        let execution = device.begin(self.dispatch)?;
        device.share_memory();
        let begun = SavedState { device: device.clone(), execution };
        let (footprints, workgroups) = self.workgroups(device, begun.execution.clone())?;
        device.share_memory();
        let ended = device.clone();
        let mut dependent: HashSet<[u32; 3]> = footprints.dependent().into_iter().collect();
        let executed = self.statistics.wave_instructions;
        let is_large = |own: &Footprint| own.statistics.wave_instructions > executed / LARGE;
        let large = footprints.iter().filter(|(_, own)| is_large(own));
        dependent.extend(large.map(|(position, _)| position));
        let whole = if self.workgroups.is_disjoint(&dependent) {
            Vec::new()
        } else {
            self.whole(begun.device.clone(), begun.execution.clone())?
        };
        Ok(SavedDispatch {
            begun,
            ended,
            statistics: self.statistics,
            union: footprints.union(),
            footprints,
            dependent,
            workgroups,
            whole,
        })
    }

    /// Wave instructions from one of `states` states, of all dispatches, to the next.
    fn interval(&self, states: u64) -> u64 {
        (self.total / states).max(1)
    }

    /// Executes the dispatch to its end, and saves the workgroups that are struck.
    fn workgroups(
        &self,
        device: &mut EmbeddedGpu,
        mut execution: Execution,
    ) -> Result<(Footprints, SavedWorkgroups), DeviceError> {
        let mut footprints = Footprints::default();
        let mut saved = SavedWorkgroups::new();
        let mut until = 0;
        loop {
            until += self.interval(WORKGROUP_STATES);
            let progress =
                device.advance_recorded(&mut execution, &mut Unobserved, &mut footprints, until)?;
            if matches!(progress, Progress::Ended(_)) {
                return Ok((footprints, saved));
            }
            self.attendance.attend(&mut execution);
            let Some(position) = execution.workgroup() else { continue };
            let footprint =
                footprints.get(position).filter(|_| self.workgroups.contains(&position));
            let Some(footprint) = footprint else { continue };
            if let Some(alone) = execution.alone(position, footprint.slot) {
                let memory = written(device, footprint)?;
                saved
                    .entry(position)
                    .or_default()
                    .push(SavedWorkgroup { execution: alone, memory });
            }
        }
    }

    /// Executes the dispatch to its end, and saves it under way.
    fn whole(
        &self,
        mut device: EmbeddedGpu,
        mut execution: Execution,
    ) -> Result<Vec<SavedState>, DeviceError> {
        let mut saved: Vec<SavedState> = Vec::new();
        let (mut until, mut interval) = (0, self.interval(WHOLE_STATES));
        loop {
            until += interval;
            let progress = device.advance(&mut execution, &mut Unobserved, until)?;
            if matches!(progress, Progress::Ended(_)) {
                return Ok(saved);
            }
            self.attendance.attend(&mut execution);
            device.share_memory();
            saved.push(SavedState { device: device.clone(), execution: execution.put_away() });
            let bytes: u64 = saved.iter().map(|state| state.execution.state_bytes()).sum();
            if bytes > MOST_STATE_BYTES {
                let mut number = 0;
                saved.retain(|_| {
                    number += 1;
                    number % 2 == 0
                });
                interval *= 2;
            }
        }
    }
}

/// What a workgroup has written, as it is in memory now.
fn written(
    device: &EmbeddedGpu,
    footprint: &Footprint,
) -> Result<Vec<(Address, Vec<u8>)>, DeviceError> {
    let runs = footprint.written.runs().into_iter().chain(footprint.private.runs());
    let read = |(start, bytes): (Address, u64)| {
        let mut content = vec![0; bytes as usize];
        device.read_pages(start, &mut content)?;
        Ok((start, content))
    };
    runs.map(read).collect()
}
