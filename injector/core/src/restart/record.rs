//! Saving the states.

use super::alone::Alone;
use super::states::{Keeper, StatesUnderWay};
use super::{SavedDispatch, SavedState, SavedStates, SavedWorkgroup};
use crate::golden::survey::Touched;
use crate::inject::run::run_from;
use crate::population::StruckWorkgroups;
use crate::{Golden, Workload};
use flipwave_device::{Address, Change, DeviceError, Dispatch, Statistics};
use flipwave_sim::{EmbeddedGpu, Execution, Footprints, Progress, Unobserved};
use std::collections::{BTreeMap, HashSet};

/// A workgroup that executes more than one part in this many of a dispatch is not worth being
/// executed alone: to watch what it touches costs as much.
const LARGE: u64 = 6;

/// Bytes of memory that dispatches which are struck leave otherwise than they have found it, all
/// together, at most: beyond them no states are kept. What they leave alone, states share.
const MOST_BYTES: u64 = 4 << 30;

impl SavedStates {
    /// Bytes that states under way take in a campaign, all together, at most: where they take more,
    /// every other one is kept. A state has registers and LDS, and what was written in memory: of a
    /// workgroup its own bytes, of a dispatch as many as it writes in all.
    pub const MOST_BYTES: u64 = 1 << 30;

    /// How many there are.
    pub fn count(&self) -> usize {
        self.dispatches.values().map(|own| own.states.count()).sum()
    }

    /// Runs a workload whose fault-free run is `golden` two times, and saves the states that faults in
    /// `struck` need; nothing if they would need too much memory.
    ///
    /// # Errors
    /// None for a workload that ran before.
    pub(crate) fn record(
        workload: &Workload,
        golden: &Golden,
        struck: StruckWorkgroups,
    ) -> Result<Option<SavedStates>, DeviceError> {
        let (limits, mut touched) = (golden.instruction_limits(), Touched::default());
        let (statistics, start) = (Vec::new(), workload.start()?);
        _ = run_from(workload, &limits, 0, start, statistics, |index, device, dispatch| {
            let footprints = struck.has(index).then(|| touched.0.entry(index).or_default());
            workload.run(device, dispatch, &mut Unobserved, footprints)
        })?;
        let mut recorder = Recorder::new(
            workload,
            &golden.statistics,
            struck,
            Some(touched),
            SavedStates::MOST_BYTES,
        );
        let (statistics, start) = (Vec::new(), workload.start()?);
        _ = run_from(workload, &limits, 0, start, statistics, |index, device, dispatch| {
            let mut execution = recorder.begin((index, dispatch), device)?;
            let (kernel, attendance) = (&dispatch.kernel, &workload.attendance);
            let completion = attendance.carry_on(kernel, &mut execution, |execution, until| {
                recorder.advance(device, execution, until, |device, execution, until| {
                    device.advance(execution, &mut Unobserved, until)
                })
            })?;
            device.share_memory();
            recorder.end(device);
            Ok::<_, DeviceError>(completion)
        })?;
        Ok(recorder.finish())
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

/// Saves states while the workload runs without a fault: of each dispatch it is told the beginning,
/// each advance, and the end.
pub(crate) struct Recorder {
    /// What each dispatch executes.
    statistics: Vec<Statistics>,
    struck: StruckWorkgroups,
    /// Nothing where no states are saved.
    touched: Option<Touched>,
    saved: BTreeMap<u32, SavedDispatch>,
    /// The dispatch under way, if states of it are saved.
    under_way: Option<UnderWay>,
    keeper: Keeper,
}

/// A dispatch under way.
pub(super) struct UnderWay {
    pub index: u32,
    pub saved: SavedDispatch,
    /// The workgroups that are saved.
    workgroups: HashSet<[u32; 3]>,
    /// Whether the whole dispatch is saved.
    is_saved_whole: bool,
    /// Bytes of memory that it writes.
    written: u64,
}

impl Recorder {
    /// Saves states for faults in `struck` of a workload whose dispatches execute `statistics` without a
    /// fault, and whose workgroups touch what `touched` says; the states take at most so many bytes. It saves nothing
    /// where that is not known, or memory would need too many besides.
    pub fn new(
        workload: &Workload,
        statistics: &[Statistics],
        struck: StruckWorkgroups,
        touched: Option<Touched>,
        most_bytes: u64,
    ) -> Recorder {
        let memory = memory_bytes(workload);
        let is_little = |touched: &Touched| {
            let copied = struck.dispatches().filter_map(|index| {
                let all = *memory.get(index as usize)?;
                // Where nothing is known of workgroups, all may be written.
                let known = touched.0.get(&index).filter(|own| own.iter().next().is_some());
                Some(known.map_or(all, |own| own.bytes_copied().min(all)))
            });
            copied.fold(0u64, u64::saturating_add) <= MOST_BYTES
        };
        let touched = touched.filter(is_little);
        let statistics = statistics.to_vec();
        let total: u64 = statistics.iter().map(|own| own.wave_instructions).sum();
        Recorder {
            statistics,
            struck,
            touched,
            saved: BTreeMap::new(),
            under_way: None,
            keeper: Keeper::new(total, most_bytes),
        }
    }

    /// The dispatches of which states are saved; none where it is not known what workgroups touch.
    pub fn dispatches(&self) -> Vec<u32> {
        let struck = self.struck.dispatches();
        struck.filter(|_| self.touched.is_some()).collect()
    }

    /// Begins a dispatch.
    pub fn begin(
        &mut self,
        (index, dispatch): (u32, &Dispatch),
        device: &mut EmbeddedGpu,
    ) -> Result<Execution, DeviceError> {
        let footprints = self.touched.as_mut().and_then(|own| own.0.remove(&index));
        let Some((struck, footprints)) = self.struck.take(index).zip(footprints) else {
            return device.begin(dispatch);
        };
        device.share_memory();
        let execution = device.begin(dispatch)?;
        device.share_memory();
        let begun = SavedState { device: device.clone(), execution: execution.clone(), written: 0 };
        let statistics = self.statistics[index as usize];
        let saved = SavedDispatch::new(begun, statistics, footprints);
        let is_alone =
            |own: &[u32; 3]| saved.footprints.get(*own).is_some() && !saved.dependent.contains(own);
        let (workgroups, others): (HashSet<_>, HashSet<_>) = struck.into_iter().partition(is_alone);
        // Memory of which nothing is known may all be written.
        let written = match saved.footprints.iter().next() {
            Some(_) => saved.footprints.iter().map(|(_, own)| own.bytes_written()).sum(),
            None => device.allocations().map(|(_, bytes)| bytes).sum(),
        };
        let is_saved_whole = !others.is_empty();
        self.under_way = Some(UnderWay { index, saved, workgroups, is_saved_whole, written });
        self.keeper.workgroups.begin();
        self.keeper.whole.begin();
        Ok(execution)
    }

    /// The struck workgroups of the dispatch that has begun, if each of them can be executed alone: then the
    /// others need not be executed for what is to be saved.
    pub fn alone(&mut self) -> Option<Alone<'_>> {
        let own = self.under_way.as_ref().filter(|own| !own.is_saved_whole)?;
        let mut workgroups: Vec<[u32; 3]> = own.workgroups.iter().copied().collect();
        workgroups.sort_unstable();
        Some(Alone::new(own, workgroups, &mut self.keeper))
    }

    /// Advances the dispatch under way by `advance` until it ends or has executed `until` wave
    /// instructions in all.
    pub fn advance(
        &mut self,
        device: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
        mut advance: impl FnMut(&mut EmbeddedGpu, &mut Execution, u64) -> Result<Progress, DeviceError>,
    ) -> Result<Progress, DeviceError> {
        loop {
            let pause = match &self.under_way {
                Some(_) => until.min(self.keeper.workgroups.next()).min(self.keeper.whole.next()),
                None => until,
            };
            let progress = advance(device, execution, pause)?;
            if matches!(progress, Progress::Ended(_)) {
                return Ok(progress);
            }
            self.save(device, execution)?;
            if execution.statistics().wave_instructions >= until {
                return Ok(progress);
            }
        }
    }

    /// Saves what is to be saved now.
    fn save(&mut self, device: &mut EmbeddedGpu, execution: &Execution) -> Result<(), DeviceError> {
        let Some(own) = &mut self.under_way else { return Ok(()) };
        let executed = execution.statistics().wave_instructions;
        if self.keeper.workgroups.has_come(executed)
            && let Some(position) = execution.workgroup()
            && own.workgroups.contains(&position)
            && let Some(state) = own.saved.workgroup(position, device, execution)?
        {
            self.keeper.keep_workgroup(own.index, position, state);
        }
        if self.keeper.whole.has_come(executed) && own.is_saved_whole {
            device.share_memory();
            let (device, execution) = (device.clone(), execution.put_away());
            let state = SavedState { device, execution, written: own.written };
            self.keeper.keep_whole(own.index, state);
        }
        Ok(())
    }

    /// The dispatch under way has ended, and left the device so, which shares its memory.
    pub fn end(&mut self, device: &EmbeddedGpu) {
        if let Some(UnderWay { index, mut saved, .. }) = self.under_way.take() {
            saved.ended = device.clone();
            self.saved.insert(index, saved);
        }
    }

    /// The workload has ended: the states, if any were to be saved.
    pub fn finish(mut self) -> Option<SavedStates> {
        for (index, saved) in &mut self.saved {
            saved.states = self.keeper.take(*index);
        }
        self.touched.map(|_| SavedStates { dispatches: self.saved })
    }
}

impl SavedDispatch {
    /// A dispatch that has begun.
    fn new(begun: SavedState, statistics: Statistics, footprints: Footprints) -> SavedDispatch {
        let union = footprints.union();
        let mut dependent: HashSet<[u32; 3]> =
            footprints.dependent_in(&union).into_iter().collect();
        let most = statistics.wave_instructions / LARGE;
        let large = footprints.iter().filter(|(_, own)| own.statistics.wave_instructions > most);
        dependent.extend(large.map(|(position, _)| position));
        SavedDispatch {
            ended: begun.device.clone(),
            begun,
            statistics,
            union,
            footprints,
            dependent,
            states: StatesUnderWay::default(),
        }
    }

    /// The state of a workgroup, unless it has ended.
    pub(super) fn workgroup(
        &self,
        position: [u32; 3],
        device: &EmbeddedGpu,
        execution: &Execution,
    ) -> Result<Option<SavedWorkgroup>, DeviceError> {
        let Some(footprint) = self.footprints.get(position) else { return Ok(None) };
        let Some(alone) = execution.alone(position, footprint.slot) else { return Ok(None) };
        let runs = footprint.written.runs().into_iter().chain(footprint.private.runs());
        let memory = changed(&self.begun.device, device, runs)?;
        Ok(Some(SavedWorkgroup { execution: alone, memory }))
    }
}

/// What of these bytes is not as `begun` has it any more.
pub(super) fn changed(
    begun: &EmbeddedGpu,
    device: &EmbeddedGpu,
    runs: impl IntoIterator<Item = (Address, u64)>,
) -> Result<Vec<(Address, Vec<u8>)>, DeviceError> {
    let mut changed = Vec::new();
    let [mut before, mut now] = [const { Vec::new() }; 2];
    for (start, bytes) in runs {
        for own in [&mut before, &mut now] {
            own.resize(bytes as usize, 0);
        }
        begun.read_pages(start, &mut before)?;
        device.read_pages(start, &mut now)?;
        if now != before {
            changed.push((start, now.clone()));
        }
    }
    Ok(changed)
}
