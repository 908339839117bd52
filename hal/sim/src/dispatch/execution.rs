//! State of a dispatch between two instructions.

use crate::dispatch::global_sync::GlobalSync;
use crate::dispatch::launch::Launch;
use crate::dispatch::policy::Policy;
use crate::dispatch::slots::Slots;
use crate::dispatch::stall::Search;
use crate::dispatch::turns::TurnEnd;
use crate::dispatch::workgroup::{Workgroup, WorkgroupCopy};
use crate::fault::StoppedWave;
use crate::memory::AddressSpace;
use flipwave_device::{DeviceError, DeviceFault, Dim3, Statistics, WaveId};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// A running dispatch: the state of all its waves, their LDS, and whose turn it is. The device owns
/// the device memory, so that a clone of both, taken together, is the whole state.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Index of the kernel's module.
    pub(crate) home: usize,
    pub(crate) launch: Arc<Launch>,
    /// Number of wave instructions after which the watchdog ends the dispatch.
    pub(crate) limit: u64,
    pub(crate) policy: Policy,
    pub(crate) statistics: Statistics,
    /// Workgroups that have not started, by their order in the grid.
    pub(crate) waiting: Range<u64>,
    /// Resident workgroups, the one whose turn it is first.
    pub(crate) resident: VecDeque<Workgroup>,
    /// The resident workgroups as compact copies, in the same order, until the execution is
    /// advanced.
    pub(crate) compacted: Vec<Arc<WorkgroupCopy>>,
    /// Free slots for workgroups.
    pub(crate) free: Slots,
    pub(crate) position: Position,
    pub(crate) sync: GlobalSync,
    /// Number of workgroups that have ended since the last round.
    pub(crate) ended: usize,
    pub(crate) search: Search,
    /// A stall found while others may still change memory, see
    /// [`Stalls::Report`](crate::Stalls::Report).
    pub(crate) stall: Option<StallReport>,
    /// The wave that has faulted or waits, until the fault or the stall is explained.
    pub(crate) stopped: Option<Box<StoppedWave>>,
}

/// Position in the order of turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Number of workgroups that have their turn before the next one is started.
    pub workgroups: usize,
    /// Number of rounds that the first workgroup has had in its turn.
    pub round: u32,
    /// `true` if a turn of this round has ended early, so that other waves could catch up.
    pub is_short: bool,
    /// Index of the wave in the first workgroup.
    pub wave: usize,
    /// End of the wave's turn, if it has begun.
    pub end: Option<TurnEnd>,
}

impl Execution {
    /// Creates a dispatch none of whose waves has started.
    pub(crate) fn new(home: usize, launch: Launch, policy: Policy, limit: u64) -> Execution {
        Execution {
            home,
            waiting: 0..launch.workgroup_count(),
            free: Slots::all(launch.slots()),
            launch: Arc::new(launch),
            limit,
            policy,
            statistics: Statistics::default(),
            resident: VecDeque::new(),
            compacted: Vec::new(),
            position: Position::default(),
            sync: GlobalSync::default(),
            ended: 0,
            search: Search::default(),
            stall: None,
            stopped: None,
        }
    }

    /// Approximate number of instructions executed per ended workgroup; `None` if none has ended.
    /// For executions of a whole grid.
    pub(crate) fn instructions_of_workgroup(&self) -> Option<u64> {
        let under_way = self.resident.len() + self.compacted.len();
        let ended = self.waiting.start.checked_sub(under_way as u64)?;
        self.statistics.wave_instructions.checked_div(ended)
    }

    /// Creates an execution of the same dispatch with these workgroups to start in these slots, and
    /// no resident ones.
    pub(crate) fn part(&self, waiting: Range<u64>, free: Slots) -> Execution {
        Execution {
            home: self.home,
            waiting,
            launch: Arc::clone(&self.launch),
            limit: self.limit,
            policy: self.policy,
            statistics: Statistics::default(),
            resident: VecDeque::new(),
            compacted: Vec::new(),
            free,
            position: Position::default(),
            sync: self.sync.clone(),
            ended: 0,
            search: Search::default(),
            stall: None,
            stopped: None,
        }
    }

    /// Copies the execution into no more memory than its state needs; a clone has memory for all
    /// registers that waves can have.
    pub fn compacted(&self) -> Execution {
        let compacted =
            self.resident.iter().map(|workgroup| Arc::new(WorkgroupCopy::of(workgroup)));
        Execution {
            compacted: compacted.chain(self.compacted.iter().cloned()).collect(),
            waiting: self.waiting.clone(),
            position: self.position,
            statistics: self.statistics,
            ended: self.ended,
            search: self.search.clone(),
            stall: self.stall.clone(),
            ..self.part(0..0, self.free.clone())
        }
    }

    /// Returns `true` if all resident workgroups are in the same state as those of another
    /// execution: registers, LDS, positions of waves, and statistics.
    pub fn is_in_state_of(&self, other: &Execution) -> bool {
        let [copy, other_copy] = [self, other].map(Execution::compacted);
        self.statistics == other.statistics && copy.compacted == other_copy.compacted
    }

    /// Returns `true` if the execution continues like another execution of the same dispatch on a
    /// device in the same state: waves are in the same state, and it is the turn of the same one.
    pub fn continues_like(&self, other: &Execution) -> bool {
        self.waiting == other.waiting
            && self.free == other.free
            && self.position == other.position
            && self.sync == other.sync
            && self.ended == other.ended
            && self.is_in_state_of(other)
    }

    /// Size in bytes of the registers and LDS in [compact copies](Execution::compacted).
    pub fn state_bytes(&self) -> u64 {
        self.compacted.iter().map(|copy| copy.state_bytes()).sum()
    }

    /// Takes the stall found since the last call, see [`Stalls::Report`](crate::Stalls::Report).
    pub fn take_stall(&mut self) -> Option<StallReport> {
        self.stall.take()
    }

    /// Statistics of the execution so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The workgroup whose turn it is.
    pub fn workgroup(&self) -> Option<Dim3> {
        let next = self.resident.front().map(|workgroup| workgroup.position);
        next.or(self.compacted.first().map(|copy| copy.position))
    }

    /// Number of instructions that a wave of a resident workgroup has executed; `None` for waves
    /// that have not started, and for waves of workgroups that have ended.
    pub fn executed(&self, wave: WaveId) -> Option<u64> {
        let resident = self.resident.iter().find(|workgroup| workgroup.position == wave.workgroup);
        if let Some(workgroup) = resident {
            return workgroup.waves.get(wave.wave as usize).map(|wave| wave.executed);
        }
        let compacted = self.compacted.iter().find(|copy| copy.position == wave.workgroup)?;
        compacted.executed(wave.wave)
    }

    /// Sets the number of wave instructions after which the watchdog ends the execution.
    pub fn set_limit(&mut self, wave_instructions: u64) {
        self.limit = wave_instructions;
    }

    /// Creates the execution of a single workgroup: it continues as in this execution, provided
    /// that the workgroup is independent of the others (see
    /// [`Footprints::dependent`](crate::Footprints::dependent)). Its statistics, which the limit
    /// applies to, begin with what the workgroup has executed already; the limit is this
    /// execution's until it is set. `slot` is the workgroup's slot among the resident ones, and
    /// matters only if the workgroup has not started (see
    /// [`Footprint::slot`](crate::Footprint::slot)).
    ///
    /// The new execution needs its own clone of the device, taken at the same time: the launch's
    /// memory is freed there when it ends.
    ///
    /// Returns `None` if the workgroup has ended, or if the dispatch has no such workgroup or slot.
    pub fn alone(&self, workgroup: Dim3, slot: usize) -> Option<Execution> {
        let index = self.launch.index(workgroup)?;
        let mut alone = self.part(index..index + 1, Slots::one(slot));
        if self.waiting.contains(&index) {
            return (slot < self.launch.slots()).then_some(alone);
        }
        let resident = self.resident.iter().position(|resident| resident.position == workgroup);
        let compacted = || self.compacted.iter().position(|copy| copy.position == workgroup);
        let (index_in_turns, state) = match resident {
            Some(index) => (index, Arc::new(WorkgroupCopy::of(&self.resident[index]))),
            None => compacted().map(|index| (index, Arc::clone(&self.compacted[index])))?,
        };
        let turn = if index_in_turns == 0 { self.position } else { Position::default() };
        alone.waiting = index..index;
        alone.position = Position { workgroups: 1, ..turn };
        alone.statistics = state.statistics;
        alone.compacted = vec![state];
        Some(alone)
    }

    /// Splits the workgroups that have not started into at most `parts` parts that can execute
    /// concurrently: each has its own workgroups, in order, and its own slots.
    pub(crate) fn split(&self, parts: usize) -> Vec<Execution> {
        let (count, slots) = (self.waiting.end - self.waiting.start, self.launch.slots());
        let parts = (parts as u64).min(slots as u64).min(count).max(1);
        let first = |part: u64| self.waiting.start + count * part / parts;
        let part = |part: u64| {
            let free = Slots::part(part as usize, parts as usize, slots);
            self.part(first(part)..first(part + 1), free)
        };
        (0..parts).map(part).collect()
    }

    /// Frees the memory of the launch.
    pub(crate) fn release(&self, space: &mut AddressSpace) -> Result<(), DeviceError> {
        self.launch.release(space)
    }
}

/// A stall: no wave can progress unless somebody else changes memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StallReport {
    /// The waiting waves and their positions.
    pub fault: DeviceFault,
    /// Pages of memory that the waves read, by the address of their first byte.
    pub pages: BTreeSet<u64>,
}
