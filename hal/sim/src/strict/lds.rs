//! What is known of a workgroup's LDS: bits that nothing has written, and accesses that were
//! under way when their waves passed a barrier.

use super::facts::Facts;
use super::footprint::Footprint;
use super::shadow::Shadow;
use super::violation::Finding;
use super::waits::Operation;
use crate::execute::lds;
use crate::instruction::lds::LdsAccess;
use crate::instruction::vector_memory::Transfer;
use crate::instruction::{Element, Op, Word};
use crate::wave::{Row, RowIndex, ScalarIndex, Wave};
use flipwave_device::WaveId;
use flipwave_isa::{Lane, LaneMask, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What is known of a workgroup's LDS.
pub struct LdsState {
    /// Undefined bits are set.
    undefined: Vec<u8>,
    unfinished: Vec<Unfinished>,
    /// The first wave that came to the last waits for split barriers, by how often it has waited.
    waits: BTreeMap<u32, (WaveId, Arc<Facts>)>,
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
    /// Other waves are ordered behind it once they have waited for a split barrier so often.
    pub phase: u32,
}

impl Unfinished {
    /// An operation of a wave.
    pub fn of(wave: WaveId, operation: &Operation, phase: u32) -> Unfinished {
        Unfinished {
            wave,
            number: operation.number,
            facts: Arc::clone(&operation.facts),
            bytes: operation.lds.clone(),
            phase,
        }
    }
}

/// Rows of the ghost that hold the operands of an LDS access: far enough from each other for the
/// widest, and from those that the access names.
const DATA: u16 = 0;
const SECOND_DATA: u16 = 8;
const DESTINATION: u16 = 16;
const ADDRESS: u16 = 24;
/// Most registers of an operand.
const WORDS: u16 = 4;

impl LdsState {
    /// LDS that nothing has written.
    pub fn new(bytes: u32) -> LdsState {
        LdsState {
            undefined: vec![!0; bytes as usize],
            unfinished: Vec::new(),
            waits: BTreeMap::new(),
        }
    }

    /// Everything is written.
    pub fn define(&mut self) {
        self.undefined.fill(0);
    }

    /// Notes the accesses that are under way after a barrier.
    pub fn pass_barrier(&mut self, unfinished: Vec<Unfinished>) {
        self.unfinished = unfinished;
    }

    /// Notes the accesses that are under way when a wave signals a split barrier.
    pub fn signal(&mut self, wave: WaveId, unfinished: Vec<Unfinished>) {
        self.unfinished.retain(|other| other.wave != wave);
        self.unfinished.extend(unfinished);
    }

    /// The wave that was the first to wait for a split barrier so often, and where.
    pub fn wait(&mut self, waits: u32, wave: WaveId, facts: &Arc<Facts>) -> (WaveId, Arc<Facts>) {
        // Waves are no further apart than from one barrier to the next.
        self.waits.retain(|other, _| *other + 1 >= waits);
        let (first, place) = self.waits.entry(waits).or_insert_with(|| (wave, Arc::clone(facts)));
        (*first, Arc::clone(place))
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

    /// Follows an LDS instruction: it is executed with undefined bits for data, at the addresses
    /// that it has.
    pub fn follow(
        &mut self,
        shadow: &mut Shadow,
        ghost: &mut Wave,
        wave: &Wave,
        op: &Op,
        access: LdsAccess,
    ) {
        let mut own = op.clone();
        let first = |source: usize| op.sources[source].row();
        let mut remap = |source: usize, row: u16| {
            if op.sources[source].row().is_some() {
                own.sources[source].words = [Word::Row(RowIndex(row)); 2];
            }
        };
        remap(0, ADDRESS);
        remap(1, DATA);
        remap(2, SECOND_DATA);
        own.destination = RowIndex(DESTINATION);
        ghost.machine = wave.machine;
        ghost.set_exec(wave.exec());
        ghost.mode = wave.mode;
        ghost.scalars[usize::from(ScalarIndex::M0.0)] = wave.scalar(ScalarIndex::M0);
        if let Some(row) = first(0) {
            let is_data = access == LdsAccess::Swizzle;
            *ghost.row_mut(RowIndex(ADDRESS)) =
                if is_data { shadow.rows[usize::from(row.0)] } else { *wave.row(row) };
        }
        for (source, place) in [(first(1), DATA), (first(2), SECOND_DATA)] {
            for word in 0..WORDS {
                let Some(row) = source else { continue };
                *ghost.row_mut(RowIndex(place + word)) = row_of(shadow, row, word);
            }
        }
        for word in 0..WORDS {
            *ghost.row_mut(RowIndex(DESTINATION + word)) = row_of(shadow, op.destination, word);
        }
        match access {
            LdsAccess::Atomic { returns, atomic } => {
                self.modify(ghost, &own, returns, atomic.bytes);
            }
            LdsAccess::ExchangeIf => self.modify(ghost, &own, true, 8),
            LdsAccess::Count { .. } => {
                let at = (wave.scalar(ScalarIndex::M0) & 0xffff).wrapping_add(op.immediate as u32);
                let bytes = lds::read(&self.undefined, at, 4);
                let old = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                ghost.write_row(own.destination, &Row::splat(old));
            }
            // Only atomics fault.
            _ => _ = lds::execute(ghost, &own, access, &mut self.undefined),
        }
        if matches!(access, LdsAccess::Permute | LdsAccess::BackwardPermute) {
            // An undefined lane number makes what arrives undefined.
            let undefined = shadow.undefined_lanes(op.sources[0].words[0]).0 & wave.exec().0;
            let lanes = match access {
                LdsAccess::Permute if undefined != 0 => wave.exec().0,
                _ => undefined,
            };
            for lane in LaneMask(lanes).lanes() {
                ghost.row_mut(own.destination).0[usize::from(lane.0)] = !0;
            }
        }
        for word in 0..destination_words(op) {
            let row = usize::from(op.destination.plus(word).0) % RowIndex::COUNT;
            shadow.rows[row] = *ghost.row(RowIndex(DESTINATION + word));
        }
    }

    /// An atomic: what it leaves is undefined where the old value or the data was.
    fn modify(&mut self, ghost: &mut Wave, op: &Op, returns: bool, bytes: u8) {
        let offset = op.immediate as u32;
        let addresses = lds::addresses(ghost, op, offset);
        for lane in ghost.exec().lanes() {
            let index = usize::from(lane.0);
            let words = u16::from(bytes / 4);
            let old = lds::read(&self.undefined, addresses.0[index], bytes.into());
            let data = (0..words).any(|word| {
                [DATA, SECOND_DATA].iter().zip(&op.sources[1..]).any(|(place, source)| {
                    source.row().is_some() && ghost.row(RowIndex(place + word)).0[index] != 0
                })
            });
            if data {
                lds::write(&mut self.undefined, addresses.0[index], &[!0; 8][..usize::from(bytes)]);
            }
            for word in (0..words).filter(|_| returns) {
                let at = usize::from(word) * 4;
                let old = u32::from_le_bytes([old[at], old[at + 1], old[at + 2], old[at + 3]]);
                ghost.row_mut(op.destination.plus(word)).0[index] = old;
            }
        }
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
                    let bits = element.part(row_of(shadow, data, word).0[lane]);
                    stored[usize::from(word) * 4..][..4].copy_from_slice(&bits.to_le_bytes());
                }
                lds::write(undefined, *address, &stored[..element.bytes()]);
            };
            match transfer {
                Transfer::Load(element) => load(&self.undefined, element, shadow),
                Transfer::Store(element) => store(&mut self.undefined, element, shadow),
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
                        load(&self.undefined, element, shadow);
                    }
                }
            }
        }
    }
}

/// Undefined bits of a register of an operand.
fn row_of(shadow: &Shadow, first: RowIndex, word: u16) -> Row {
    let index = usize::from(first.0 + word);
    shadow.rows.get(index).copied().unwrap_or(Row::ZERO)
}

/// Registers that an instruction fills.
pub fn destination_words(op: &Op) -> u16 {
    op.inst.destinations().next().map_or(0, |operand| match operand.value {
        Value::Register(range) => range.words.into(),
        _ => 0,
    })
}
