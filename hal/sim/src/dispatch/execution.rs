//! Where a dispatch stands between two instructions.

use crate::dispatch::global_sync::GlobalSync;
use crate::dispatch::launch::Launch;
use crate::dispatch::policy::Policy;
use crate::dispatch::slots::Slots;
use crate::dispatch::stall::Search;
use crate::dispatch::turns::TurnEnd;
use crate::dispatch::workgroup::{Workgroup, WorkgroupCopy};
use crate::memory::AddressSpace;
use flipwave_device::{Completion, DeviceError, DeviceFault, Dim3, Statistics, WaveId};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// A dispatch under way: the state of all its waves, their LDS, and whose turn it is. Device
/// memory is the device's, so that clones of both, taken together, are the whole state.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The module that the kernel belongs to.
    pub(crate) home: usize,
    pub(crate) launch: Arc<Launch>,
    /// Wave instructions after which the watchdog ends the dispatch.
    pub(crate) limit: u64,
    pub(crate) policy: Policy,
    pub(crate) statistics: Statistics,
    /// Workgroups that are left to start, by their order in the grid.
    pub(crate) waiting: Range<u64>,
    /// Workgroups under way, the one whose turn it is first.
    pub(crate) resident: VecDeque<Workgroup>,
    /// The workgroups under way in the same order, until the execution is advanced.
    pub(crate) put_away: Vec<Arc<WorkgroupCopy>>,
    /// Places of workgroups that are free.
    pub(crate) free: Slots,
    pub(crate) position: Position,
    pub(crate) sync: GlobalSync,
    /// Workgroups that have ended since all resident ones last had had their turns.
    pub(crate) ended: usize,
    pub(crate) search: Search,
    /// What was found where others may still change memory, see [`Stalls::Report`](crate::Stalls::Report).
    pub(crate) stall: Option<StallReport>,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Workgroups that have their turn before the next one is started beside them.
    pub workgroups: usize,
    /// Rounds that the first workgroup has had in its turn.
    pub round: u32,
    /// Whether a turn of this round has ended early, so that others could catch up.
    pub is_short: bool,
    /// Its wave.
    pub wave: usize,
    /// When the wave's turn ends, if that has begun.
    pub end: Option<TurnEnd>,
}

impl Execution {
    /// A dispatch none of whose waves has started.
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
            put_away: Vec::new(),
            position: Position::default(),
            sync: GlobalSync::default(),
            ended: 0,
            search: Search::default(),
            stall: None,
        }
    }

    /// What a workgroup has executed of those that have ended, about; nothing where none has. For
    /// executions of a whole grid.
    pub(crate) fn instructions_of_workgroup(&self) -> Option<u64> {
        let under_way = self.resident.len() + self.put_away.len();
        let ended = self.waiting.start.checked_sub(under_way as u64)?;
        self.statistics.wave_instructions.checked_div(ended)
    }

    /// The same dispatch with these workgroups to start, in these places, and none under way.
    pub(crate) fn part(&self, waiting: Range<u64>, free: Slots) -> Execution {
        Execution {
            home: self.home,
            waiting,
            launch: Arc::clone(&self.launch),
            limit: self.limit,
            policy: self.policy,
            statistics: Statistics::default(),
            resident: VecDeque::new(),
            put_away: Vec::new(),
            free,
            position: Position::default(),
            sync: self.sync.clone(),
            ended: 0,
            search: Search::default(),
            stall: None,
        }
    }

    /// The same execution in no more memory than its state takes: a clone has room for all registers
    /// that waves can have.
    pub fn put_away(&self) -> Execution {
        let put_away = self.resident.iter().map(|own| Arc::new(WorkgroupCopy::of(own)));
        Execution {
            put_away: put_away.chain(self.put_away.iter().cloned()).collect(),
            waiting: self.waiting.clone(),
            position: self.position,
            statistics: self.statistics,
            ended: self.ended,
            search: self.search.clone(),
            stall: self.stall.clone(),
            ..self.part(0..0, self.free.clone())
        }
    }

    /// Whether all workgroups under way are in the same state as those of another execution: registers,
    /// LDS, where waves stand, and what has been executed.
    pub fn is_in_state_of(&self, other: &Execution) -> bool {
        let [own, others] = [self, other].map(Execution::put_away);
        self.statistics == other.statistics && own.put_away == others.put_away
    }

    /// Whether it goes on as another execution of the same dispatch does, on devices in the same state:
    /// waves are in the same state, and it is the turn of the same one.
    pub fn goes_on_as(&self, other: &Execution) -> bool {
        self.waiting == other.waiting
            && self.free == other.free
            && self.position == other.position
            && self.sync == other.sync
            && self.ended == other.ended
            && self.is_in_state_of(other)
    }

    /// Bytes of registers and LDS that are [put away](Execution::put_away).
    pub fn state_bytes(&self) -> u64 {
        self.put_away.iter().map(|own| own.state_bytes()).sum()
    }

    /// What was found since this was last asked, see [`Stalls::Report`](crate::Stalls::Report).
    pub fn take_stall(&mut self) -> Option<StallReport> {
        self.stall.take()
    }

    /// What has been executed so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The workgroup whose turn it is.
    pub fn workgroup(&self) -> Option<Dim3> {
        let next = self.resident.front().map(|own| own.position);
        next.or(self.put_away.first().map(|own| own.position))
    }

    /// Instructions that a wave under way has executed; nothing for waves that have not started,
    /// and of workgroups that have ended.
    pub fn executed(&self, wave: WaveId) -> Option<u64> {
        let resident = self.resident.iter().find(|own| own.position == wave.workgroup);
        if let Some(workgroup) = resident {
            return workgroup.waves.get(wave.wave as usize).map(|own| own.executed);
        }
        let put_away = self.put_away.iter().find(|own| own.position == wave.workgroup)?;
        put_away.executed(wave.wave)
    }

    /// Changes after how many wave instructions in all the watchdog ends the execution.
    pub fn set_limit(&mut self, wave_instructions: u64) {
        self.limit = wave_instructions;
    }

    /// The execution of one workgroup alone: what this execution does of it from now on, as long as
    /// it is independent of the others (see [`Footprints::dependent`](crate::Footprints::dependent)).
    /// Its statistics begin with what the workgroup has executed already; so does what the limit
    /// counts, which is this execution's until it is set. `slot` is the workgroup's place among
    /// those under way, and matters only if it has not started (see
    /// [`Footprint::slot`](crate::Footprint::slot)).
    ///
    /// It goes on on a clone of the device, taken at the same time, of its own: where it ends, the
    /// memory of the launch is given back there.
    ///
    /// `None` if the workgroup has ended, or if the dispatch has no such workgroup or place.
    pub fn alone(&self, workgroup: Dim3, slot: usize) -> Option<Execution> {
        let index = self.launch.index(workgroup)?;
        let mut alone = self.part(index..index + 1, Slots::one(slot));
        if self.waiting.contains(&index) {
            return (slot < self.launch.slots()).then_some(alone);
        }
        let resident = self.resident.iter().position(|own| own.position == workgroup);
        let put_away = || self.put_away.iter().position(|own| own.position == workgroup);
        let (place, state) = match resident {
            Some(place) => (place, Arc::new(WorkgroupCopy::of(&self.resident[place]))),
            None => put_away().map(|place| (place, Arc::clone(&self.put_away[place])))?,
        };
        let turn = if place == 0 { self.position } else { Position::default() };
        alone.waiting = index..index;
        alone.position = Position { workgroups: 1, ..turn };
        alone.statistics = state.statistics;
        alone.put_away = vec![state];
        Some(alone)
    }

    /// What has not started of it, in at most so many parts that can be executed at the same time:
    /// each has workgroups of its own, in order, and places of its own for them.
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

    /// Gives the memory of the launch back.
    pub(crate) fn release(&self, space: &mut AddressSpace) -> Result<(), DeviceError> {
        self.launch.release(space)
    }
}

/// Nothing can happen any more unless somebody else changes memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StallReport {
    /// Which waves wait where.
    pub fault: DeviceFault,
    /// The pages of memory that they look at, by the address of their first byte.
    pub pages: BTreeSet<u64>,
}

/// How far a dispatch has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It can be advanced further.
    Paused,
    /// It has ended.
    Ended(Completion),
}
