//! Instructions that hooks replace. Executing them in the original code would give meaningless results, so
//! the original code gets the results of the instrumented code, which runs to its end first.

use super::comparison::Lockstep;
use flipwave_device::WaveId;
use flipwave_hooks::checker::Claims;
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::{Lane, Pc, Register};
use flipwave_sim::WaveState;
use std::collections::{BTreeMap, VecDeque};

/// The replaced instructions of a code object.
pub struct ReplacedInsts<'a> {
    claims: &'a Claims,
    /// The instructions and the registers that they write, by original address.
    originals: BTreeMap<u64, (InstIndex, Vec<Register>)>,
    /// The original addresses of the instructions.
    addresses: BTreeMap<InstIndex, u64>,
}

impl<'a> ReplacedInsts<'a> {
    pub fn new(lockstep: &Lockstep<'a>) -> ReplacedInsts<'a> {
        let insts = lockstep.replaced.iter().filter_map(|at| {
            let inst = lockstep.program.inst(*at)?;
            let writes = inst.writes.iter().flat_map(|range| range.iter()).collect();
            Some((inst.pc.0, (*at, writes)))
        });
        let originals: BTreeMap<u64, (InstIndex, Vec<Register>)> = insts.collect();
        let addresses = originals.iter().map(|(pc, (at, _))| (*at, *pc)).collect();
        ReplacedInsts { claims: lockstep.claims, originals, addresses }
    }

    pub fn is_empty(&self) -> bool {
        self.originals.is_empty()
    }

    /// The replaced instruction to which the inserted code at an address belongs.
    fn at(&self, pc: u64) -> Option<InstIndex> {
        let at = self.claims.inserted_for(Pc(pc))?;
        self.addresses.contains_key(&at).then_some(at)
    }

    fn writes(&self, at: InstIndex) -> &[Register] {
        let original = self.addresses.get(&at).and_then(|pc| self.originals.get(pc));
        original.map_or(&[], |(_, writes)| writes)
    }
}

/// The values of each register that an instruction writes: one per lane, or one for all lanes.
type ResultValues = Vec<Vec<u32>>;

/// The results of replaced instructions, recorded in the instrumented code and replayed in the original.
#[derive(Default)]
pub struct Results {
    /// The replaced instruction whose hooks each wave is executing.
    in_hooks: BTreeMap<WaveId, InstIndex>,
    /// The recorded results that have not been replayed, in execution order.
    recorded: BTreeMap<WaveId, VecDeque<(InstIndex, ResultValues)>>,
}

impl Results {
    /// Records the results of a replaced instruction when a wave of the instrumented code leaves its hooks
    /// and reaches `pc`.
    pub fn record(
        &mut self,
        replaced: &ReplacedInsts<'_>,
        wave: WaveId,
        pc: u64,
        state: &WaveState<'_>,
    ) {
        let at = replaced.at(pc);
        let before = match at {
            Some(at) => self.in_hooks.insert(wave, at),
            None => self.in_hooks.remove(&wave),
        };
        let Some(done) = before.filter(|before| Some(*before) != at) else { return };
        let values = replaced.writes(done).iter().map(|register| match state.lanes(*register) {
            Some(lanes) => lanes.to_vec(),
            None => state.read(*register, Lane(0)).into_iter().collect(),
        });
        self.recorded.entry(wave).or_default().push_back((done, values.collect()));
    }

    /// Writes the recorded results of a replaced instruction when a wave of the original code has executed
    /// the instruction at `pc`.
    pub fn replay(
        &mut self,
        replaced: &ReplacedInsts<'_>,
        wave: WaveId,
        pc: u64,
        state: &mut WaveState<'_>,
    ) {
        let Some((at, writes)) = replaced.originals.get(&pc) else { return };
        let Some(recorded) = self.recorded.get_mut(&wave) else { return };
        // On different paths the next result may be of another instruction; the comparison reports that.
        let is_next = recorded.front().is_some_and(|(next, _)| next == at);
        let Some((_, values)) = is_next.then(|| recorded.pop_front()).flatten() else { return };
        for (register, values) in writes.iter().zip(values) {
            for (lane, value) in (0..).zip(values) {
                state.write(*register, Lane(lane), value);
            }
        }
    }
}
