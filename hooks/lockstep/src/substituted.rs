//! Instructions that hooks stand in for. What the original makes of them is not what the program
//! means, so it takes their results from the instrumented code, which runs to its end first.

use super::Lockstep;
use flipwave_device::WaveId;
use flipwave_hooks::checker::Claims;
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::{Lane, Pc, Register};
use flipwave_sim::WaveState;
use std::collections::{BTreeMap, VecDeque};

/// Where such instructions are.
pub struct Substituted<'a> {
    claims: &'a Claims,
    /// By their addresses in the original: what they write.
    originals: BTreeMap<u64, (InstIndex, Vec<Register>)>,
    /// Their addresses in the original.
    addresses: BTreeMap<InstIndex, u64>,
}

impl<'a> Substituted<'a> {
    pub fn new(lockstep: &Lockstep<'a>) -> Substituted<'a> {
        let insts = lockstep.substituted.iter().filter_map(|at| {
            let inst = lockstep.program.inst(*at)?;
            let writes = inst.writes.iter().flat_map(|range| range.iter()).collect();
            Some((inst.pc.0, (*at, writes)))
        });
        let originals: BTreeMap<u64, (InstIndex, Vec<Register>)> = insts.collect();
        let addresses = originals.iter().map(|(pc, (at, _))| (*at, *pc)).collect();
        Substituted { claims: lockstep.claims, originals, addresses }
    }

    pub fn is_empty(&self) -> bool {
        self.originals.is_empty()
    }

    /// The instruction in whose place, or around which, code at an address was put.
    fn at(&self, pc: u64) -> Option<InstIndex> {
        let at = self.claims.inserted_for(Pc(pc))?;
        self.addresses.contains_key(&at).then_some(at)
    }

    fn writes(&self, at: InstIndex) -> &[Register] {
        let own = self.addresses.get(&at).and_then(|pc| self.originals.get(pc));
        own.map_or(&[], |(_, writes)| writes)
    }
}

/// What an instruction left in each register that it writes: in all lanes, or once.
type LeftValues = Vec<Vec<u32>>;

/// Results on their way from the instrumented code to the original.
#[derive(Default)]
pub struct Results {
    /// The instruction in whose place each wave is.
    in_hooks: BTreeMap<WaveId, InstIndex>,
    left: BTreeMap<WaveId, VecDeque<(InstIndex, LeftValues)>>,
}

impl Results {
    /// A wave of the instrumented code comes to an address.
    pub fn record(
        &mut self,
        substituted: &Substituted<'_>,
        wave: WaveId,
        pc: u64,
        state: &WaveState<'_>,
    ) {
        let at = substituted.at(pc);
        let before = match at {
            Some(at) => self.in_hooks.insert(wave, at),
            None => self.in_hooks.remove(&wave),
        };
        let Some(done) = before.filter(|before| Some(*before) != at) else { return };
        let left = substituted.writes(done).iter().map(|register| match state.lanes(*register) {
            Some(lanes) => lanes.to_vec(),
            None => state.read(*register, Lane(0)).into_iter().collect(),
        });
        self.left.entry(wave).or_default().push_back((done, left.collect()));
    }

    /// A wave of the original has executed what is at an address.
    pub fn replay(
        &mut self,
        substituted: &Substituted<'_>,
        wave: WaveId,
        pc: u64,
        state: &mut WaveState<'_>,
    ) {
        let Some((at, writes)) = substituted.originals.get(&pc) else { return };
        let Some(waiting) = self.left.get_mut(&wave) else { return };
        // Where the two went different ways the comparison says so.
        let is_next = waiting.front().is_some_and(|(own, _)| own == at);
        let Some((_, left)) = is_next.then(|| waiting.pop_front()).flatten() else { return };
        for (register, values) in writes.iter().zip(left) {
            for (lane, value) in (0..).zip(values) {
                state.write(*register, Lane(lane), value);
            }
        }
    }
}
