//! Tracking of code addresses through the scalar registers of a function.

use super::block::{Blocks, JumpTarget, LocalBlock};
use super::decoded::DecodedFunction;
use super::effect::{Effect, TrackedOperation, destination, register};
use super::findings::{Findings, LocalCall, LocalChain, ProgramContext};
use super::value::{
    AddressOrigin, AddressPart, Half, LaneStorage, ScalarState, constant, wide_constant,
};
use flipwave_isa::{Inst, Opcode, Pc, Register, RegisterRange, Sgpr, Value, Vgpr};
use std::collections::{BTreeMap, BTreeSet};

/// Tracks the addresses in a function. `effects` has one element per instruction.
pub fn track(
    decoded: &DecodedFunction,
    effects: &[Effect],
    blocks: &Blocks,
    context: &ProgramContext<'_>,
) -> Findings {
    let mut tracker =
        Tracker { decoded, effects, context, lost: BTreeSet::new(), found: Found::default() };
    let count = blocks.blocks.len();
    // The findings in each block, for the latest state at its entry.
    let mut found = vec![Found::default(); count];
    let mut entries: Vec<Option<ScalarState>> = vec![None; count];
    if let Some(first) = entries.first_mut() {
        *first = Some(context.return_pair.map_or_else(ScalarState::unknown, ScalarState::entry));
    }
    let mut waiting = BTreeSet::from([0]);
    let mut visited = 0;
    loop {
        while let Some(at) = waiting.pop_first() {
            let block = &blocks.blocks[at];
            let entry = entries[at].clone().unwrap_or_else(ScalarState::unknown);
            let state = tracker.run(block, entry);
            found[at] = std::mem::take(&mut tracker.found);
            for (next, _) in &block.successors {
                let known = &mut entries[*next];
                let changed = match known {
                    Some(known) => known.meet(&state, &mut tracker.lost),
                    None => {
                        *known = Some(state.clone());
                        true
                    }
                };
                if changed {
                    waiting.insert(*next);
                }
            }
        }
        // Unreachable code, such as code after a trap, is treated as if the preceding block fell through.
        let Some(at) = (visited..count).find(|at| entries[*at].is_none()) else {
            break;
        };
        visited = at;
        let before = at
            .checked_sub(1)
            .and_then(|before| Some((&blocks.blocks[before], entries[before].clone()?)));
        let state =
            before.map_or_else(ScalarState::unknown, |(block, entry)| tracker.run(block, entry));
        tracker.found = Found::default();
        entries[at] = Some(state);
        waiting.insert(at);
    }
    found.into_iter().for_each(|found| tracker.found.add(found));
    tracker.finish()
}

struct Tracker<'a> {
    decoded: &'a DecodedFunction,
    /// Effects by instruction.
    effects: &'a [Effect],
    context: &'a ProgramContext<'a>,
    /// Origins of addresses that are unknown where paths meet.
    lost: BTreeSet<AddressOrigin>,
    found: Found,
}

/// Results of tracking in some blocks.
#[derive(Clone, Default)]
struct Found {
    findings: Findings,
    /// First additions to low halves.
    sums: BTreeSet<LowSum>,
    /// Origins of addresses that are used other than for a call or a load.
    escaped: BTreeSet<AddressOrigin>,
}

/// The first addition to the low half of an `s_getpc_b64`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LowSum {
    getpc: u32,
    low: u32,
}

/// The operands of an addition or subtraction of a constant.
struct ConstantSum {
    value: Half,
    constant: u32,
    /// The constant is an operand of the instruction, not the value of a register.
    is_immediate: bool,
}

impl Found {
    fn add(&mut self, other: Found) {
        let Findings { chains, calls, jumps, unresolved, escaped } = other.findings;
        self.findings.chains.extend(chains);
        self.findings.calls.extend(calls);
        self.findings.jumps.extend(jumps);
        self.findings.unresolved.extend(unresolved);
        self.findings.escaped.extend(escaped);
        self.sums.extend(other.sums);
        self.escaped.extend(other.escaped);
    }
}

impl Tracker<'_> {
    /// Completes the findings when all states are final.
    fn finish(mut self) -> Findings {
        for LowSum { getpc, low } in std::mem::take(&mut self.found.sums) {
            let chains = &self.found.findings.chains;
            if !chains.iter().any(|chain| chain.getpc == getpc && chain.low == low) {
                self.mark_unresolved(getpc, "addition to only the low half of the result");
            }
        }
        let Found { mut findings, escaped, .. } = self.found;
        let chains = findings.chains.iter();
        let targets: BTreeMap<AddressOrigin, u64> = chains
            .map(|chain| {
                let origin = AddressOrigin::Sum { getpc: chain.getpc, low: chain.low };
                (origin, chain.target.0)
            })
            .collect();
        for origin in self.lost.iter().chain(&escaped) {
            match origin {
                AddressOrigin::Loaded(address) => _ = findings.escaped.insert(*address),
                origin => findings.escaped.extend(targets.get(origin)),
            }
        }
        findings
    }

    /// Applies the effects of a block to the state at its entry.
    fn run(&mut self, block: &LocalBlock, mut state: ScalarState) -> ScalarState {
        for index in block.instructions.clone() {
            self.apply(&mut state, index);
        }
        state
    }

    /// Applies the effect of an instruction.
    fn apply(&mut self, state: &mut ScalarState, index: usize) {
        let (inst, effect) = (&self.decoded.insts[index], self.effects[index]);
        let carry = state.carry.filter(|_| !effect.writes_scc);
        if effect.only_affects_lanes && !state.has_lanes() {
            state.carry = carry;
            return;
        }
        match effect.operation {
            TrackedOperation::GetPc(pair) => {
                let part = AddressPart { origin: AddressOrigin::Pc(index as u32), offset: 0 };
                self.write(state, inst);
                state.set(pair.first, Half::Low(part));
                if let Some(high) = pair.first.offset(1) {
                    state.set(high, Half::High(part));
                }
            }
            TrackedOperation::Copy(to) => self.copy(state, inst, to),
            TrackedOperation::AddLow(to) => {
                self.add_low(state, inst, index as u32, to.first);
                return;
            }
            TrackedOperation::AddHigh(to) => self.add_high(state, inst, index as u32, to.first),
            TrackedOperation::AddWide(to) => self.add_wide(state, inst, index as u32, to),
            // `s_getpc_b64` of gfx12 returns 48 bits, which the code then sign-extends.
            TrackedOperation::Extend(to)
                if inst.source(0).and_then(register) == Some(to.first)
                    && matches!(state.get(to.first), Half::High(_)) => {}
            TrackedOperation::Load(to) => self.load(state, inst, to),
            TrackedOperation::WriteLane(to) => self.write_lane(state, inst, to),
            TrackedOperation::ReadLane(to) => {
                let half = lane(inst).map_or(Half::Unknown, |(from, lane)| state.lane(from, lane));
                state.set(to.first, half);
            }
            TrackedOperation::Lanes { from, to } if state.all_lanes => state.copy_lanes(from, to),
            TrackedOperation::Call(to) => self.call(state, inst, index, to),
            TrackedOperation::Jump => self.jump(state, inst, index),
            TrackedOperation::Lanes { .. }
            | TrackedOperation::Extend(_)
            | TrackedOperation::Other => {
                inst.reads.iter().for_each(|range| self.consume(state, *range));
                self.write(state, inst);
                if let TrackedOperation::Lanes { to: to @ LaneStorage::Slot(..), .. } =
                    effect.operation
                {
                    state.copy_lanes(LaneStorage::Register(Register::Null), to);
                }
                state.all_lanes = effect.all_lanes.unwrap_or(state.all_lanes);
            }
        }
        state.carry = carry;
    }

    /// Sets all written registers to unknown values.
    fn write(&self, state: &mut ScalarState, inst: &Inst) {
        for register in inst.writes.iter().flat_map(|range| range.iter()) {
            state.set(register, Half::Unknown);
        }
    }

    fn copy(&mut self, state: &mut ScalarState, inst: &Inst, to: RegisterRange) {
        let halves: Vec<Half> = match inst.source(0) {
            Some(Value::Register(from)) => {
                from.iter().map(|register| state.get(register)).collect()
            }
            // A 64-bit move sign-extends its constant.
            Some(value) => match constant(value) {
                Some(low) => {
                    let high =
                        if matches!(value, Value::Integer(n) if *n < 0) { u32::MAX } else { 0 };
                    vec![Half::Constant(low), Half::Constant(high)]
                }
                None => Vec::new(),
            },
            None => Vec::new(),
        };
        self.write(state, inst);
        for (register, half) in to.iter().zip(halves) {
            state.set(register, half);
        }
    }

    /// The operands of an addition or subtraction of a constant.
    fn sum(state: &ScalarState, inst: &Inst) -> Option<ConstantSum> {
        let subtracts = matches!(inst.operation.opcode(), Opcode::SSub | Opcode::SSubb);
        let (value, constant, operand) = match (state.source(inst, 0), state.source(inst, 1)) {
            (value, Half::Constant(constant)) => (value, constant, 1),
            (Half::Constant(constant), value) if !subtracts => (value, constant, 0),
            _ => return None,
        };
        let is_immediate = inst.source(operand).and_then(super::value::constant).is_some();
        Some(ConstantSum { value, constant, is_immediate })
    }

    fn add_low(&mut self, state: &mut ScalarState, inst: &Inst, index: u32, to: Register) {
        let (mut result, mut carry) = (Half::Unknown, None);
        match Self::sum(state, inst) {
            Some(ConstantSum { value: Half::Low(part), constant, is_immediate }) => {
                let origin = match part.origin {
                    AddressOrigin::Pc(getpc) if is_immediate => {
                        self.found.sums.insert(LowSum { getpc, low: index });
                        Some(AddressOrigin::Sum { getpc, low: index })
                    }
                    AddressOrigin::Pc(_) => {
                        self.consume_half(Half::Low(part));
                        None
                    }
                    known => Some(known),
                };
                if let Some(origin) = origin {
                    let offset = add(inst, part.offset, u64::from(constant));
                    result = Half::Low(AddressPart { origin, offset });
                    carry = Some(origin);
                }
            }
            Some(ConstantSum { value: Half::Constant(value), constant, .. }) => {
                result = Half::Constant(add(inst, value.into(), constant.into()) as u32)
            }
            _ => inst.reads.iter().for_each(|range| self.consume(state, *range)),
        }
        self.write(state, inst);
        state.set(to, result);
        state.carry = carry;
    }

    fn add_high(&mut self, state: &mut ScalarState, inst: &Inst, index: u32, to: Register) {
        let mut result = Half::Unknown;
        match (Self::sum(state, inst), state.carry) {
            (
                Some(ConstantSum { value: Half::High(part), constant, is_immediate }),
                Some(carry),
            ) => {
                let offset = add(inst, part.offset, u64::from(constant) << 32);
                match (part.origin, carry) {
                    (AddressOrigin::Pc(getpc), AddressOrigin::Sum { getpc: low_getpc, low })
                        if getpc == low_getpc && is_immediate =>
                    {
                        result = Half::High(AddressPart { origin: carry, offset });
                        self.add_chain(getpc, low, index, offset);
                    }
                    (origin, carry) if origin == carry => {
                        result = Half::High(AddressPart { origin, offset });
                    }
                    _ => self.consume_half(Half::High(part)),
                }
            }
            _ => inst.reads.iter().for_each(|range| self.consume(state, *range)),
        }
        self.write(state, inst);
        state.set(to, result);
    }

    /// Tracks the addition of a constant of 64 bits to an address. The low word of the constant counts for the
    /// low half, the high word for the high half, as in additions of 32 bits.
    fn add_wide(&mut self, state: &mut ScalarState, inst: &Inst, index: u32, to: RegisterRange) {
        let constant = [0, 1].into_iter().find_map(|at| inst.source(at).and_then(wide_constant));
        let pair = [0, 1].into_iter().find_map(|at| inst.source(at).and_then(register_range));
        let halves = pair.and_then(|pair| Some((pair, pair.first.offset(1)?)));
        let halves = halves.map(|(pair, high)| (state.get(pair.first), state.get(high)));
        let (Some((Half::Low(low), Half::High(high))), Some(constant)) = (halves, constant) else {
            inst.reads.iter().for_each(|range| self.consume(state, *range));
            self.write(state, inst);
            return;
        };
        let is_literal = inst.sources().any(|source| matches!(source.value, Value::WideLiteral(_)));
        let origin = match (low.origin, high.origin) {
            (AddressOrigin::Pc(getpc), AddressOrigin::Pc(other))
                if getpc == other && is_literal =>
            {
                self.found.sums.insert(LowSum { getpc, low: index });
                Some(AddressOrigin::Sum { getpc, low: index })
            }
            (AddressOrigin::Pc(_), _) | (_, AddressOrigin::Pc(_)) => {
                self.consume_half(Half::Low(low));
                self.consume_half(Half::High(high));
                None
            }
            (known, other) => (known == other).then_some(known),
        };
        self.write(state, inst);
        let Some(origin) = origin else { return };
        const LOW: u64 = u32::MAX as u64;
        let low_offset = low.offset.wrapping_add(constant & LOW);
        let high_offset = high.offset.wrapping_add(constant & !LOW);
        state.set(to.first, Half::Low(AddressPart { origin, offset: low_offset }));
        if let Some(register) = to.first.offset(1) {
            state.set(register, Half::High(AddressPart { origin, offset: high_offset }));
        }
        if let (AddressOrigin::Sum { getpc, low: sum }, AddressOrigin::Pc(_)) = (origin, low.origin)
        {
            self.add_chain(getpc, sum, sum, high_offset);
        }
    }

    /// Records an address chain. `offset` is the sum of the constants added to its high half.
    fn add_chain(&mut self, getpc: u32, low: u32, high: u32, offset: u64) {
        let add_low = &self.decoded.insts[low as usize];
        let Some((to, constant)) = destination(add_low)
            .zip([0, 1].into_iter().find_map(|at| add_low.source(at).and_then(low_constant)))
        else {
            return;
        };
        let Some(pc) = self.base(AddressOrigin::Pc(getpc)) else { return };
        let target = Pc(add(add_low, pc, u64::from(constant)).wrapping_add(offset));
        let register = to.first;
        self.found.findings.chains.insert(LocalChain { getpc, low, high, register, target });
    }

    /// The address of an origin.
    fn base(&self, origin: AddressOrigin) -> Option<u64> {
        match origin {
            AddressOrigin::Loaded(address) => Some(address),
            AddressOrigin::Pc(getpc) | AddressOrigin::Sum { getpc, .. } => {
                let inst = &self.decoded.insts[getpc as usize];
                Some(inst.pc.0 + u64::from(inst.size))
            }
        }
    }

    fn load(&mut self, state: &mut ScalarState, inst: &Inst, to: RegisterRange) {
        let operand = inst.memory_operand().filter(|operand| operand.soffset.is_none());
        let address = operand.and_then(|operand| {
            let base = state.address(operand.saddr?, |origin| self.base(origin))?;
            Some(base.wrapping_add_signed(*operand.offsets.first()?))
        });
        if address.is_none() {
            inst.reads.iter().for_each(|range| self.consume(state, *range));
        } else {
            // Only sums are supported, not results of `s_getpc_b64` without an addition.
            for register in inst.reads.iter().flat_map(|range| range.iter()) {
                let half = state.get(register);
                if matches!(half.origin(), Some(AddressOrigin::Pc(_))) {
                    self.consume_half(half);
                }
            }
        }
        self.write(state, inst);
        let Some(address) = address else { return };
        for pair in 0..to.words / 2 {
            let value = self.context.relocated.get(&(address + 8 * u64::from(pair)));
            let first = to.first.offset(2 * pair);
            let Some((pointer, low)) = value.zip(first) else { continue };
            let part = AddressPart { origin: AddressOrigin::Loaded(*pointer), offset: 0 };
            state.set(low, Half::Low(part));
            if let Some(high) = low.offset(1) {
                state.set(high, Half::High(part));
            }
        }
    }

    fn write_lane(&mut self, state: &mut ScalarState, inst: &Inst, to: RegisterRange) {
        let to = LaneStorage::Register(to.first);
        let lane = inst.source(1).and_then(constant).and_then(|lane| u8::try_from(lane).ok());
        match lane {
            Some(lane) => {
                let half = state.source(inst, 0);
                state.set_lane(to, lane, half);
            }
            None => {
                inst.reads.iter().for_each(|range| self.consume(state, *range));
                self.write(state, inst);
            }
        }
    }

    fn call(
        &mut self,
        state: &mut ScalarState,
        inst: &Inst,
        index: usize,
        to: Option<RegisterRange>,
    ) {
        let target = match (inst.branch_target, inst.source(0)) {
            (Some(target), _) => Some(target),
            (_, Some(Value::Register(pair))) => {
                state.address(*pair, |origin| self.base(origin)).map(Pc)
            }
            _ => None,
        };
        if target.is_none() {
            inst.reads.iter().for_each(|range| self.consume(state, *range));
        }
        let pair = to.and_then(|pair| match pair.first {
            Register::Sgpr(sgpr) => Some(sgpr),
            _ => None,
        });
        self.found.findings.calls.insert(index, LocalCall { target, pair });
        // The callee may use addresses in registers.
        self.found.escaped.extend(state.origins());
        let written = target.and_then(|target| self.context.written.get(&target.0));
        state.retain(|register| {
            written.is_some_and(|written| !written.contains(register)) || is_preserved(register)
        });
        self.write(state, inst);
    }

    fn jump(&mut self, state: &mut ScalarState, inst: &Inst, index: usize) {
        let Some(Value::Register(pair)) = inst.source(0) else { return };
        let high = pair.first.offset(1).map(|register| state.get(register));
        let is_return = state.get(pair.first) == Half::ReturnLow && high == Some(Half::ReturnHigh);
        let jump = match state.address(*pair, |origin| self.base(origin)) {
            _ if is_return => JumpTarget::Return,
            Some(target) => JumpTarget::To(Pc(target)),
            None => {
                self.consume(state, *pair);
                JumpTarget::Unknown
            }
        };
        self.found.escaped.extend(state.origins());
        self.found.findings.jumps.insert(index, jump);
    }

    /// Records a use of registers that is not tracked.
    fn consume(&mut self, state: &ScalarState, range: RegisterRange) {
        for register in range.iter() {
            if !register.is_per_lane() {
                self.consume_half(state.get(register));
            }
            for half in state.lanes(LaneStorage::Register(register)) {
                self.consume_half(half);
            }
        }
    }

    /// Records a use of a value that is not tracked.
    fn consume_half(&mut self, half: Half) {
        match half {
            Half::Mixed(getpc)
            | Half::Low(AddressPart { origin: AddressOrigin::Pc(getpc), .. })
            | Half::High(AddressPart { origin: AddressOrigin::Pc(getpc), .. }) => {
                self.mark_unresolved(getpc, "result used other than in a sum with a constant");
            }
            Half::Low(part) | Half::High(part) => _ = self.found.escaped.insert(part.origin),
            _ => {}
        }
    }

    fn mark_unresolved(&mut self, getpc: u32, reason: &str) {
        self.found.findings.unresolved.insert(getpc as usize, reason.to_owned());
    }
}

/// The result of an addition or subtraction.
fn add(inst: &Inst, sum: u64, constant: u64) -> u64 {
    if matches!(inst.operation.opcode(), Opcode::SSub | Opcode::SSubb) {
        sum.wrapping_sub(constant)
    } else {
        sum.wrapping_add(constant)
    }
}

/// The register and lane that `v_readlane_b32` reads.
fn lane(inst: &Inst) -> Option<(LaneStorage, u8)> {
    let from = inst.source(0).and_then(register)?;
    let lane = inst.source(1).and_then(constant)?;
    Some((LaneStorage::Register(from), u8::try_from(lane).ok()?))
}

/// Returns `true` for callee-saved registers (AMDGPUUsage, "Non-Kernel Functions"; LLVM's
/// `CSR_AMDGPU`).
fn is_preserved(register: Register) -> bool {
    match register {
        Register::Sgpr(Sgpr(n)) => n >= 30,
        Register::Vgpr(Vgpr(n)) => n >= 40 && (n - 40) % 16 < 8,
        _ => false,
    }
}

/// The constant that is added to a low half; of a literal of 64 bits the low word.
fn low_constant(value: &Value) -> Option<u32> {
    match value {
        Value::WideLiteral(literal) => Some(*literal as u32),
        value => constant(value),
    }
}

fn register_range(value: &Value) -> Option<RegisterRange> {
    match value {
        Value::Register(range) => Some(*range),
        _ => None,
    }
}
