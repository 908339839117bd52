//! Instructions that hooks stand in for. What the original makes of them is not what the program
//! means, so it takes their results from the instrumented code, which runs to its end first.

use super::Lockstep;
use crate::flow::InstIndex;
use flipwave_device::WaveId;
use flipwave_isa::{Lane, Register};
use flipwave_sim::Registers;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Where such instructions are.
pub struct Substituted {
    /// By their addresses in the original: what they write.
    originals: BTreeMap<u64, (InstIndex, Vec<Register>)>,
    /// The code in their places, by ascending address.
    ranges: Vec<(Range<u64>, InstIndex)>,
    /// Their addresses in the original.
    addresses: BTreeMap<InstIndex, u64>,
}

impl Substituted {
    pub fn new(lockstep: &Lockstep<'_>) -> Substituted {
        let insts = lockstep.substituted.iter().filter_map(|at| {
            let inst = lockstep.program.inst(*at)?;
            let writes = inst.writes.iter().flat_map(|range| range.iter()).collect();
            Some((inst.pc.0, (*at, writes)))
        });
        let originals: BTreeMap<u64, (InstIndex, Vec<Register>)> = insts.collect();
        let inserted = lockstep.claims.inserted.iter().filter_map(|own| {
            let at = own.at.filter(|at| lockstep.substituted.contains(at))?;
            Some((own.range.clone(), at))
        });
        let mut ranges: Vec<(Range<u64>, InstIndex)> = inserted.collect();
        ranges.sort_by_key(|(range, _)| range.start);
        let addresses = originals.iter().map(|(pc, (at, _))| (*at, *pc)).collect();
        Substituted { originals, ranges, addresses }
    }

    pub fn is_empty(&self) -> bool {
        self.originals.is_empty()
    }

    /// The instruction in whose place, or around which, code at an address was put.
    fn at(&self, pc: u64) -> Option<InstIndex> {
        let above = self.ranges.partition_point(|(range, _)| range.start <= pc);
        let (range, at) = self.ranges.get(above.checked_sub(1)?)?;
        range.contains(&pc).then_some(*at)
    }

    fn writes(&self, at: InstIndex) -> &[Register] {
        let own = self.addresses.get(&at).and_then(|pc| self.originals.get(pc));
        own.map_or(&[], |(_, writes)| writes)
    }
}

/// What an instruction left in each register that it writes: in all lanes, or once.
type Left = Vec<Vec<u32>>;

/// Results on their way from the instrumented code to the original.
#[derive(Default)]
pub struct Results {
    /// The instruction in whose place each wave is.
    under_way: BTreeMap<WaveId, InstIndex>,
    left: BTreeMap<WaveId, VecDeque<(InstIndex, Left)>>,
}

impl Results {
    /// A wave of the instrumented code comes to an address.
    pub fn see(
        &mut self,
        substituted: &Substituted,
        wave: WaveId,
        pc: u64,
        registers: &Registers<'_>,
    ) {
        let at = substituted.at(pc);
        let before = match at {
            Some(at) => self.under_way.insert(wave, at),
            None => self.under_way.remove(&wave),
        };
        let Some(done) = before.filter(|before| Some(*before) != at) else { return };
        let left =
            substituted.writes(done).iter().map(|register| match registers.lanes(*register) {
                Some(lanes) => lanes.to_vec(),
                None => registers.read(*register, Lane(0)).into_iter().collect(),
            });
        self.left.entry(wave).or_default().push_back((done, left.collect()));
    }

    /// A wave of the original has executed what is at an address.
    pub fn give(
        &mut self,
        substituted: &Substituted,
        wave: WaveId,
        pc: u64,
        registers: &mut Registers<'_>,
    ) {
        let Some((at, writes)) = substituted.originals.get(&pc) else { return };
        let Some(waiting) = self.left.get_mut(&wave) else { return };
        // Where the two went different ways the comparison says so.
        let is_next = waiting.front().is_some_and(|(own, _)| own == at);
        let Some((_, left)) = is_next.then(|| waiting.pop_front()).flatten() else { return };
        for (register, values) in writes.iter().zip(left) {
            for (lane, value) in (0..).zip(values) {
                registers.write(*register, Lane(lane), value);
            }
        }
    }
}
