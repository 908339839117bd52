//! What is known of a workgroup's LDS: bits that nothing has written, and accesses that were
//! under way when their waves passed a barrier.

use super::facts::Facts;
use super::footprint::Footprint;
use super::violation::Finding;
use crate::execute::lds;
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Element, Op};
use crate::shadow::{LdsMarks, Shadow};
use flipwave_device::WaveId;
use flipwave_isa::{Lane, LaneMask};
use std::ops::Range;
use std::sync::Arc;

/// What is known of a workgroup's LDS.
pub struct LdsState {
    /// The bits that nothing has written.
    pub undefined: LdsMarks,
    unfinished: Vec<Unfinished>,
}

/// An access that was under way when its wave passed a barrier.
pub struct Unfinished {
    /// Its wave.
    pub wave: WaveId,
    /// Its number among the operations of that wave.
    pub number: u64,
    /// The instruction.
    pub facts: Arc<Facts>,
    /// The bytes it touches.
    pub bytes: Vec<Range<u32>>,
}

impl LdsState {
    /// LDS that nothing has written.
    pub fn new(bytes: u32) -> LdsState {
        LdsState { undefined: LdsMarks::marked(bytes), unfinished: Vec::new() }
    }

    /// Notes the accesses that are under way after a barrier.
    pub fn pass_barrier(&mut self, unfinished: Vec<Unfinished>) {
        self.unfinished = unfinished;
    }

    /// An access of another wave that may still be under way and touches these bytes, one of the
    /// two being a write.
    pub fn conflict(
        &self,
        wave: WaveId,
        facts: &Facts,
        footprints: &[Footprint<u32>],
        is_under_way: impl Fn(&Unfinished) -> bool,
    ) -> Option<(Finding, LaneMask)> {
        let others = self.unfinished.iter().filter(|other| other.wave != wave);
        others
            .filter(|other| facts.inst.flags.stores || other.facts.inst.flags.stores)
            .filter(|other| is_under_way(other))
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

    /// Follows the LDS side of a flat access.
    pub fn follow_flat(
        &mut self,
        shadow: &mut Shadow,
        op: &Op,
        transfer: Transfer,
        footprints: &[Footprint<u32>],
    ) {
        for Footprint { lane: Lane(lane), address, bytes } in footprints {
            let lane = usize::from(*lane);
            let load = |undefined: &[u8], element: Element, shadow: &mut Shadow| {
                let loaded = lds::read(undefined, *address, element.bytes());
                for word in 0..u16::from(element.words()) {
                    let at = usize::from(word) * 4;
                    let loaded = [0, 1, 2, 3].map(|byte| loaded[at + byte]);
                    let row = usize::from(op.destination.plus(word).0);
                    let old = shadow.rows[row].0[lane];
                    shadow.rows[row].0[lane] = element.extend(u32::from_le_bytes(loaded), old);
                }
            };
            let store = |undefined: &mut [u8], element: Element, shadow: &Shadow| {
                let Some(data) = op.sources[1].row() else { return };
                let mut stored = [0; 16];
                for word in 0..u16::from(element.words()) {
                    let bits = element.part(shadow.row(data, word).0[lane]);
                    stored[usize::from(word) * 4..][..4].copy_from_slice(&bits.to_le_bytes());
                }
                lds::write(undefined, *address, &stored[..element.bytes()]);
            };
            match transfer {
                Transfer::Load(element) => load(&self.undefined.bits, element, shadow),
                Transfer::Store(element) => store(&mut self.undefined.bits, element, shadow),
                // Flat accesses are not formatted, and take no way around registers.
                Transfer::LoadBlock
                | Transfer::StoreBlock
                | Transfer::LoadFormat(_)
                | Transfer::StoreFormat(_)
                | Transfer::LoadToLds(_)
                | Transfer::LoadFormatToLds(_)
                | Transfer::StoreFromLds(_) => {}
                Transfer::Atomic { returns, .. } => {
                    let element = Element::Words((bytes / 4) as u8);
                    if returns {
                        load(&self.undefined.bits, element, shadow);
                    }
                }
            }
        }
    }
}
