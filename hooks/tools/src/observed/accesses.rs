//! An observer that records memory accesses.

use crate::{Cell, Row, ToolScope, WavePosition};
use flipwave_device::WaveId;
use flipwave_isa::{Inst, MemoryOperand, MemorySpace, Pc};
use flipwave_sim::{Executed, Observer, Watch, WaveState};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A memory access.
#[derive(Clone, Copy, Debug)]
struct TracedAccess {
    /// The lane; `None` for scalar accesses, which a wave makes as a whole.
    lane: Option<u8>,
    /// The virtual address, for buffers before the range check. For LDS the offset in the workgroup's LDS,
    /// for scratch that in the lane's scratch.
    address: u64,
    /// The number of bytes accessed.
    bytes: u8,
}

/// Records every memory access of a dispatch.
#[derive(Clone, Debug)]
pub struct ObservedAccesses {
    /// The memory operands of executed instructions, by PC.
    operands: HashMap<Pc, Option<MemoryOperand>>,
    records: Vec<(Pc, WavePosition, TracedAccess)>,
    /// The maximum number of records.
    capacity: usize,
    lost: u64,
}

impl ObservedAccesses {
    /// Creates an observer that keeps at most `capacity` records; all without a capacity.
    pub(crate) fn new(capacity: Option<u32>) -> ObservedAccesses {
        let (operands, records) = (HashMap::new(), Vec::new());
        let capacity = capacity.map_or(usize::MAX, |capacity| capacity as usize);
        ObservedAccesses { operands, records, capacity, lost: 0 }
    }

    /// The number of accesses beyond the capacity.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The records of the instructions in `scope`.
    pub(crate) fn rows(&self, scope: &ToolScope<'_>) -> Vec<Row> {
        // Cached, since most instructions have many records.
        let mut locations: HashMap<Pc, Option<[Cell; 3]>> = HashMap::new();
        let mut location = |pc| {
            let find = || Some(scope.location(scope.program().at(pc)?)?.cells());
            locations.entry(pc).or_insert_with(find).clone()
        };
        let row = |(pc, wave, access): &(Pc, WavePosition, TracedAccess)| {
            let mut row = Vec::from(location(*pc)?);
            let WavePosition { workgroup_x, workgroup_y, workgroup_z, wave } = *wave;
            let position = [workgroup_x, workgroup_y, workgroup_z, wave];
            row.extend(position.map(|number| Cell::Unsigned(number.into())));
            row.push(access.lane.map_or(Cell::Empty, |lane| Cell::Unsigned(lane.into())));
            row.extend([Cell::Unsigned(access.address), Cell::Unsigned(access.bytes.into())]);
            Some(row)
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
            Entry::Vacant(entry) => entry.insert(inst.memory_operand()),
        };
        let Some(operand) = operand else { return };
        let elements = operand.offsets.len() as u8;
        let Some(bytes) = operand.access.bytes.checked_div(elements) else { return };
        let is_scalar = operand.access.space == MemorySpace::Scalar;
        for (lane, address) in state.accessed().into_iter().flatten() {
            if self.records.len() == self.capacity {
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
