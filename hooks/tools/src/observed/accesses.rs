//! Which addresses are accessed.

use crate::{InstPlace, ToolScope, TracedAccess, WavePosition};
use flipwave_device::WaveId;
use flipwave_isa::{Inst, MemoryOperand, MemorySpace, Pc};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Writes down every access to memory.
#[derive(Clone, Debug)]
pub struct ObservedAccesses {
    /// Instructions that were met, decoded once.
    operands: HashMap<Pc, Option<MemoryOperand>>,
    records: Vec<(Pc, WavePosition, TracedAccess)>,
    /// How many records are kept.
    room: usize,
    lost: u64,
}

impl ObservedAccesses {
    /// An observer that keeps at most `room` records.
    pub(crate) fn new(room: u32) -> ObservedAccesses {
        let (operands, records) = (HashMap::new(), Vec::new());
        ObservedAccesses { operands, records, room: room as usize, lost: 0 }
    }

    /// Records that found no place.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The records of instructions of a scope.
    pub(crate) fn rows(
        &self,
        scope: &ToolScope<'_>,
    ) -> Vec<(InstPlace, WavePosition, TracedAccess)> {
        // Most instructions that access memory do so many times.
        let mut places: HashMap<Pc, Option<InstPlace>> = HashMap::new();
        let mut place = |pc| {
            let find = || scope.place(scope.program().at(pc)?);
            places.entry(pc).or_insert_with(find).clone()
        };
        let row = |(pc, wave, access): &(Pc, WavePosition, TracedAccess)| {
            Some((place(*pc)?, *wave, *access))
        };
        self.records.iter().filter_map(row).collect()
    }
}

impl Observer for ObservedAccesses {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &Inst, id: WaveId, state: &mut WaveState<'_>) {
        let operand = match self.operands.entry(inst.pc) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(inst.memory_operand()),
        };
        let Some(operand) = operand else { return };
        let elements = operand.offsets.len() as u8;
        let Some(bytes) = operand.access.bytes.checked_div(elements) else { return };
        let is_scalar = operand.access.space == MemorySpace::Scalar;
        for (lane, address) in state.accessed().into_iter().flatten() {
            if self.records.len() == self.room {
                self.lost += 1;
                continue;
            }
            let lane = (!is_scalar).then_some(lane.0);
            self.records.push((inst.pc, id.into(), TracedAccess { lane, address, bytes }));
        }
    }

    fn after(&mut self, _: &Executed<'_>, _: &mut WaveState<'_>) -> Watch {
        Watch::On
    }
}
