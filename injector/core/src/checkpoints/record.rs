//! Recording of checkpoints.

use super::alone::Alone;
use super::store::{CheckpointStore, InnerCheckpoints};
use super::{Checkpoint, CheckpointedDispatch, Checkpoints, WorkgroupCheckpoint};
use crate::fault_space::StruckWorkgroups;
use crate::golden::profiling::WorkgroupFootprints;
use crate::inject::run::run_from;
use crate::{Golden, Workload};
use flipwave_device::{Address, Change, DeviceError, Dispatch, Statistics};
use flipwave_machine::{Execution, Footprints, Progress, Simulator, Unobserved};
use std::collections::{BTreeMap, HashSet};

/// Workgroups that execute more than this fraction (one in `LARGE`) of a dispatch are not executed
/// alone: recording their footprint costs as much as it saves.
const LARGE: u64 = 6;

/// Maximum bytes of memory that all dispatches with faults change together; beyond it, no checkpoints
/// are recorded. Checkpoints share unchanged memory.
const MOST_BYTES: u64 = 4 << 30;

impl Checkpoints {
    /// Maximum bytes of a campaign's checkpoints inside dispatches; when it is exceeded, every other
    /// checkpoint is dropped. A checkpoint holds registers, LDS, and changed memory: the changed bytes
    /// of a workgroup, or as many bytes as a whole dispatch writes.
    pub const MOST_BYTES: u64 = 1 << 30;

    /// Number of checkpoints inside dispatches.
    pub fn count(&self) -> usize {
        self.dispatches.values().map(|dispatch| dispatch.checkpoints.count()).sum()
    }

    /// Runs a workload whose golden run is `golden` twice and records checkpoints for faults in
    /// `struck`. Returns `None` if they would need too much memory.
    ///
    /// # Errors
    /// None for a workload that ran before.
    pub(crate) fn record(
        workload: &Workload,
        golden: &Golden,
        struck: StruckWorkgroups,
    ) -> Result<Option<Checkpoints>, DeviceError> {
        let (limits, mut touched) = (golden.instruction_limits(), WorkgroupFootprints::default());
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
            Checkpoints::MOST_BYTES,
        );
        let (statistics, start) = (Vec::new(), workload.start()?);
        _ = run_from(workload, &limits, 0, start, statistics, |index, device, dispatch| {
            let mut execution = recorder.begin(index, dispatch, device)?;
            let (kernel, cancellation) = (&dispatch.kernel, &workload.cancellation);
            let completion =
                cancellation.run_to_end(kernel, &mut execution, |execution, until| {
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

/// For each dispatch, bytes of device memory allocated when it starts.
fn memory_bytes(workload: &Workload) -> Vec<u64> {
    let mut sizes: BTreeMap<Address, u64> = workload.device.allocations().into_iter().collect();
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

/// Records checkpoints during a fault-free run of the workload. The caller reports the beginning, each
/// advance, and the end of every dispatch.
pub(crate) struct Recorder {
    /// Instruction counts of each dispatch.
    statistics: Vec<Statistics>,
    struck: StruckWorkgroups,
    /// Footprints of workgroups; `None` if no checkpoints are recorded.
    touched: Option<WorkgroupFootprints>,
    saved: BTreeMap<u32, CheckpointedDispatch>,
    /// The running dispatch, if checkpoints of it are recorded.
    under_way: Option<UnderWay>,
    store: CheckpointStore,
}

/// A running dispatch.
pub(super) struct UnderWay {
    pub index: u32,
    pub saved: CheckpointedDispatch,
    /// Workgroups with checkpoints of their own.
    workgroups: HashSet<[u32; 3]>,
    /// `true` to record checkpoints of the whole dispatch.
    is_saved_whole: bool,
    /// Bytes of memory that the dispatch writes.
    written: u64,
}

impl Recorder {
    /// Creates a recorder of checkpoints for faults in `struck`. `statistics` lists what each dispatch
    /// executes without a fault, `touched` the footprints of workgroups. The checkpoints take at most
    /// `most_bytes`. Nothing is recorded without footprints, or if the memory changed by dispatches is
    /// too large.
    pub fn new(
        workload: &Workload,
        statistics: &[Statistics],
        struck: StruckWorkgroups,
        touched: Option<WorkgroupFootprints>,
        most_bytes: u64,
    ) -> Recorder {
        let memory = memory_bytes(workload);
        let is_little = |touched: &WorkgroupFootprints| {
            let copied = struck.dispatches().filter_map(|index| {
                let all = *memory.get(index as usize)?;
                // Without footprints of workgroups, all memory may be written.
                let known =
                    touched.0.get(&index).filter(|footprints| footprints.iter().next().is_some());
                Some(known.map_or(all, |footprints| footprints.bytes_copied().min(all)))
            });
            copied.fold(0u64, u64::saturating_add) <= MOST_BYTES
        };
        let touched = touched.filter(is_little);
        let statistics = statistics.to_vec();
        let total: u64 = statistics.iter().map(|executed| executed.wave_instructions).sum();
        Recorder {
            statistics,
            struck,
            touched,
            saved: BTreeMap::new(),
            under_way: None,
            store: CheckpointStore::new(total, most_bytes),
        }
    }

    /// Dispatches with checkpoints; none without footprints of workgroups.
    pub fn dispatches(&self) -> Vec<u32> {
        let struck = self.struck.dispatches();
        struck.filter(|_| self.touched.is_some()).collect()
    }

    /// Begins a dispatch.
    pub fn begin(
        &mut self,
        index: u32,
        dispatch: &Dispatch,
        device: &mut Simulator,
    ) -> Result<Execution, DeviceError> {
        let footprints = self.touched.as_mut().and_then(|touched| touched.0.remove(&index));
        let Some((struck, footprints)) = self.struck.take(index).zip(footprints) else {
            return device.begin(dispatch);
        };
        device.share_memory();
        let execution = device.begin(dispatch)?;
        device.share_memory();
        let begun = Checkpoint { device: device.clone(), execution: execution.clone(), written: 0 };
        let statistics = self.statistics[index as usize];
        let saved = CheckpointedDispatch::new(begun, statistics, footprints);
        let is_alone = |position: &[u32; 3]| {
            saved.footprints.get(*position).is_some() && !saved.dependent.contains(position)
        };
        let (workgroups, dependent): (HashSet<_>, HashSet<_>) =
            struck.into_iter().partition(is_alone);
        // Without footprints, all memory may be written.
        let written = match saved.footprints.iter().next() {
            Some(_) => {
                saved.footprints.iter().map(|(_, footprint)| footprint.bytes_written()).sum()
            }
            None => device.allocations().iter().map(|(_, bytes)| bytes).sum(),
        };
        let is_saved_whole = !dependent.is_empty();
        self.under_way = Some(UnderWay { index, saved, workgroups, is_saved_whole, written });
        self.store.workgroups.begin();
        self.store.whole.begin();
        Ok(execution)
    }

    /// The workgroups with faults of the running dispatch, if each of them can be executed alone; then
    /// no other workgroup has to be executed to record checkpoints.
    pub fn alone(&mut self) -> Option<Alone<'_>> {
        let under_way = self.under_way.as_ref().filter(|under_way| !under_way.is_saved_whole)?;
        let mut workgroups: Vec<[u32; 3]> = under_way.workgroups.iter().copied().collect();
        workgroups.sort_unstable();
        Some(Alone::new(under_way, workgroups, &mut self.store))
    }

    /// Advances the running dispatch with `advance` until it ends or has executed `until` wave
    /// instructions in total.
    pub fn advance(
        &mut self,
        device: &mut Simulator,
        execution: &mut Execution,
        until: u64,
        mut advance: impl FnMut(&mut Simulator, &mut Execution, u64) -> Result<Progress, DeviceError>,
    ) -> Result<Progress, DeviceError> {
        loop {
            let pause = match &self.under_way {
                Some(_) => until.min(self.store.workgroups.next()).min(self.store.whole.next()),
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

    /// Records the checkpoints that are due.
    fn save(&mut self, device: &mut Simulator, execution: &Execution) -> Result<(), DeviceError> {
        let Some(under_way) = &mut self.under_way else { return Ok(()) };
        let executed = execution.statistics().wave_instructions;
        if self.store.workgroups.has_come(executed)
            && let Some(position) = execution.workgroup()
            && under_way.workgroups.contains(&position)
            && let Some(state) = under_way.saved.workgroup(position, device, execution)?
        {
            self.store.keep_workgroup(under_way.index, position, state);
        }
        if self.store.whole.has_come(executed) && under_way.is_saved_whole {
            device.share_memory();
            let (device, execution) = (device.clone(), execution.compacted());
            let state = Checkpoint { device, execution, written: under_way.written };
            self.store.keep_whole(under_way.index, state);
        }
        Ok(())
    }

    /// Ends the running dispatch. `device` is its final state, which shares memory.
    pub fn end(&mut self, device: &Simulator) {
        if let Some(UnderWay { index, mut saved, .. }) = self.under_way.take() {
            saved.ended = device.clone();
            self.saved.insert(index, saved);
        }
    }

    /// Ends the workload and returns the checkpoints, if any were to be recorded.
    pub fn finish(mut self) -> Option<Checkpoints> {
        for (index, saved) in &mut self.saved {
            saved.checkpoints = self.store.take(*index);
        }
        self.touched.map(|_| Checkpoints { dispatches: self.saved })
    }
}

impl CheckpointedDispatch {
    /// Creates the record of a dispatch that has just begun.
    fn new(
        begun: Checkpoint,
        statistics: Statistics,
        footprints: Footprints,
    ) -> CheckpointedDispatch {
        let union = footprints.union();
        let mut dependent: HashSet<[u32; 3]> =
            footprints.dependent_in(&union).into_iter().collect();
        let most = statistics.wave_instructions / LARGE;
        let large = footprints
            .iter()
            .filter(|(_, footprint)| footprint.statistics.wave_instructions > most);
        dependent.extend(large.map(|(position, _)| position));
        CheckpointedDispatch {
            ended: begun.device.clone(),
            begun,
            statistics,
            union,
            footprints,
            dependent,
            checkpoints: InnerCheckpoints::default(),
        }
    }

    /// The current checkpoint of a workgroup, unless the workgroup has ended.
    pub(super) fn workgroup(
        &self,
        position: [u32; 3],
        device: &Simulator,
        execution: &Execution,
    ) -> Result<Option<WorkgroupCheckpoint>, DeviceError> {
        let Some(footprint) = self.footprints.get(position) else { return Ok(None) };
        let Some(alone) = execution.alone(position, footprint.slot) else { return Ok(None) };
        let runs = footprint.written.runs().into_iter().chain(footprint.private.runs());
        let memory = changed(&self.begun.device, device, runs)?;
        Ok(Some(WorkgroupCheckpoint { execution: alone, memory }))
    }
}

/// Byte ranges of `runs` whose contents differ between `begun` and `device`, with the contents on
/// `device`.
pub(super) fn changed(
    begun: &Simulator,
    device: &Simulator,
    runs: impl IntoIterator<Item = (Address, u64)>,
) -> Result<Vec<(Address, Vec<u8>)>, DeviceError> {
    let mut changed = Vec::new();
    let [mut before, mut now] = [const { Vec::new() }; 2];
    for (start, bytes) in runs {
        for buffer in [&mut before, &mut now] {
            buffer.resize(bytes as usize, 0);
        }
        begun.read_pages(start, &mut before)?;
        device.read_pages(start, &mut now)?;
        if now != before {
            changed.push((start, now.clone()));
        }
    }
    Ok(changed)
}
