//! Checked state of a workgroup's LDS: unwritten bits, and accesses that were under way when their
//! waves passed a barrier.

use super::facts::Facts;
use super::footprint::Footprint;
use super::violation::Finding;
use super::waits::Operation;
use crate::shadow::LdsMarks;
use flipwave_device::WaveId;
use flipwave_isa::LaneMask;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Checked state of a workgroup's LDS.
pub struct LdsState {
    /// Bits that nothing has written.
    pub undefined: LdsMarks,
    unfinished: Vec<Unfinished>,
    /// First wave that reached each of the last split-barrier waits, by the number of its waits.
    waits: BTreeMap<u32, (WaveId, Arc<Facts>)>,
}

/// An access that was under way when its wave passed a barrier. A later wait of that wave does not
/// order the accesses of other waves after it; only the next barrier does.
pub struct Unfinished {
    /// Wave that made the access.
    pub wave: WaveId,
    /// The instruction.
    pub facts: Arc<Facts>,
    /// Accessed bytes.
    pub bytes: Vec<Range<u32>>,
    /// Number of split-barrier waits after which other waves may conflict with it.
    pub phase: u32,
}

impl Unfinished {
    /// Creates it from an operation of a wave.
    pub fn of(wave: WaveId, operation: &Operation, phase: u32) -> Unfinished {
        Unfinished {
            wave,
            facts: Arc::clone(&operation.facts),
            bytes: operation.lds.clone(),
            phase,
        }
    }
}

impl LdsState {
    /// LDS without any writes.
    pub fn new(bytes: u32) -> LdsState {
        LdsState {
            undefined: LdsMarks::marked(bytes),
            unfinished: Vec::new(),
            waits: BTreeMap::new(),
        }
    }

    /// Records the accesses that are under way after a barrier.
    pub fn pass_barrier(&mut self, unfinished: Vec<Unfinished>) {
        self.unfinished = unfinished;
    }

    /// Records the accesses under way when a wave signals a split barrier for the `signals`-th time. Keeps those
    /// of the previous signal, because slower waves may still conflict with them.
    pub fn signal(&mut self, wave: WaveId, signals: u32, unfinished: Vec<Unfinished>) {
        self.unfinished.retain(|other| other.wave != wave || other.phase + 1 >= signals);
        self.unfinished.extend(unfinished);
    }

    /// Records a split-barrier wait; returns the wave that reached this wait first, and its
    /// instruction.
    pub fn wait(&mut self, waits: u32, wave: WaveId, facts: &Arc<Facts>) -> (WaveId, Arc<Facts>) {
        // Waves are at most one barrier apart.
        self.waits.retain(|other, _| *other + 1 >= waits);
        let (first, place) = self.waits.entry(waits).or_insert_with(|| (wave, Arc::clone(facts)));
        (*first, Arc::clone(place))
    }

    /// Finds an access of another wave that may still be under way and overlaps these bytes, if one of the two
    /// is a write. `waits` is the number of split-barrier waits of the accessing wave.
    pub fn conflict(
        &self,
        wave: WaveId,
        facts: &Facts,
        footprints: &[Footprint<u32>],
        waits: u32,
    ) -> Option<(Finding, LaneMask)> {
        let others = self.unfinished.iter().filter(|other| other.wave != wave);
        others
            .filter(|other| facts.inst.flags.stores || other.facts.inst.flags.stores)
            .filter(|other| other.phase == waits)
            .find_map(|other| {
                let Footprint { lane, address, .. } = footprints.iter().find(|access| {
                    let end = access.address.saturating_add(access.bytes);
                    other.bytes.iter().any(|range| range.start < end && access.address < range.end)
                })?;
                let operation = other.facts.instruction();
                let finding =
                    Finding::PendingAtBarrier { address: *address, operation, wave: other.wave };
                Some((finding, LaneMask(1 << lane.0)))
            })
    }
}
