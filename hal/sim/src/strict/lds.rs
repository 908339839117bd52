//! What is known of a workgroup's LDS: bits that nothing has written, and accesses that were
//! under way when their waves passed a barrier.

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

/// What is known of a workgroup's LDS.
pub struct LdsState {
    /// The bits that nothing has written.
    pub undefined: LdsMarks,
    unfinished: Vec<Unfinished>,
    /// The first wave that came to the last waits for split barriers, by how often it has waited.
    waits: BTreeMap<u32, (WaveId, Arc<Facts>)>,
}

/// An access that was under way when its wave passed a barrier. A later wait of its own wave does not order
/// the accesses of other waves after it; only the next barrier does.
pub struct Unfinished {
    /// Its wave.
    pub wave: WaveId,
    /// The instruction.
    pub facts: Arc<Facts>,
    /// The bytes it touches.
    pub bytes: Vec<Range<u32>>,
    /// Number of split-barrier waits after which other waves may conflict with it.
    pub phase: u32,
}

impl Unfinished {
    /// An operation of a wave.
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
    /// LDS that nothing has written.
    pub fn new(bytes: u32) -> LdsState {
        LdsState {
            undefined: LdsMarks::marked(bytes),
            unfinished: Vec::new(),
            waits: BTreeMap::new(),
        }
    }

    /// Notes the accesses that are under way after a barrier.
    pub fn pass_barrier(&mut self, unfinished: Vec<Unfinished>) {
        self.unfinished = unfinished;
    }

    /// Records the accesses under way when a wave signals a split barrier for the `signals`-th time. Keeps those
    /// of the previous signal, because slower waves may still conflict with them.
    pub fn signal(&mut self, wave: WaveId, signals: u32, unfinished: Vec<Unfinished>) {
        self.unfinished.retain(|other| other.wave != wave || other.phase + 1 >= signals);
        self.unfinished.extend(unfinished);
    }

    /// The wave that was the first to wait for a split barrier so often, and where.
    pub fn wait(&mut self, waits: u32, wave: WaveId, facts: &Arc<Facts>) -> (WaveId, Arc<Facts>) {
        // Waves are no further apart than from one barrier to the next.
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
                let Footprint { lane, address, .. } = footprints.iter().find(|own| {
                    let end = own.address.saturating_add(own.bytes);
                    other.bytes.iter().any(|range| range.start < end && own.address < range.end)
                })?;
                let operation = other.facts.instruction();
                let finding =
                    Finding::UnderWayAtBarrier { address: *address, operation, wave: other.wave };
                Some((finding, LaneMask(1 << lane.0)))
            })
    }
}
