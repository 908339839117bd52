//! Follows addresses through the scalar registers of a function.

use super::block::{Blocks, JumpTarget, LocalBlock};
use super::draft::Draft;
use super::findings::{Findings, LocalCall, LocalChain, Surroundings};
use super::step::{Followed, Step, destination, register};
use super::value::{AddressOrigin, AddressPart, Half, ScalarState, Vector, constant};
use flipwave_isa::{Inst, Opcode, Pc, Register, RegisterRange, Sgpr, Value, Vgpr};
use std::collections::{BTreeMap, BTreeSet};

/// Follows the addresses of a function that has been divided into blocks. `steps` are those of its
/// instructions.
pub fn track(
    draft: &Draft,
    steps: &[Step],
    blocks: &Blocks,
    around: &Surroundings<'_>,
) -> Findings {
    let mut tracker =
        Tracker { draft, steps, around, lost: BTreeSet::new(), found: Found::default() };
    let count = blocks.blocks.len();
    // What was found in a block counts when what is known at its entry is final.
    let mut found = vec![Found::default(); count];
    let mut entries: Vec<Option<ScalarState>> = vec![None; count];
    if let Some(first) = entries.first_mut() {
        *first = Some(around.return_pair.map_or_else(ScalarState::unknown, ScalarState::entry));
    }
    let mut open = BTreeSet::from([0]);
    let mut visited = 0;
    loop {
        while let Some(at) = open.pop_first() {
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
                    open.insert(*next);
                }
            }
        }
        // Code that nothing leads to, such as what stands after a trap: as if control ran on.
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
        open.insert(at);
    }
    found.into_iter().for_each(|own| tracker.found.add(own));
    tracker.finish()
}

struct Tracker<'a> {
    draft: &'a Draft,
    /// By instruction.
    steps: &'a [Step],
    around: &'a Surroundings<'a>,
    /// Addresses that two ways differ in.
    lost: BTreeSet<AddressOrigin>,
    found: Found,
}

/// What was found in some blocks.
#[derive(Clone, Default)]
struct Found {
    findings: Findings,
    /// First additions to low halves, with their `s_getpc_b64`.
    sums: BTreeSet<(u32, u32)>,
    /// Addresses that are used for something else than a call or a load.
    escaped: BTreeSet<AddressOrigin>,
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
    fn finish(mut self) -> Findings {
        for (getpc, low) in std::mem::take(&mut self.found.sums) {
            let chains = &self.found.findings.chains;
            if !chains.iter().any(|own| own.getpc == getpc && own.low == low) {
                self.refuse(getpc, "something is added to the low half alone of its result");
            }
        }
        let Found { mut findings, escaped, .. } = self.found;
        let chains = findings.chains.iter();
        let targets: BTreeMap<AddressOrigin, u64> = chains
            .map(|own| (AddressOrigin::Sum { getpc: own.getpc, low: own.low }, own.target.0))
            .collect();
        for origin in self.lost.iter().chain(&escaped) {
            match origin {
                AddressOrigin::Loaded(address) => _ = findings.escaped.insert(*address),
                origin => findings.escaped.extend(targets.get(origin)),
            }
        }
        findings
    }

    /// Carries what is known over a block.
    fn run(&mut self, block: &LocalBlock, mut state: ScalarState) -> ScalarState {
        for index in block.instructions.clone() {
            self.step(&mut state, index);
        }
        state
    }

    /// Carries what is known over an instruction.
    fn step(&mut self, state: &mut ScalarState, index: usize) {
        let (inst, own) = (&self.draft.insts[index], self.steps[index]);
        let carry = state.carry.filter(|_| !own.writes_scc);
        if own.is_aside && !state.has_lanes() {
            state.carry = carry;
            return;
        }
        match own.followed {
            Followed::GetPc(pair) => {
                let part = AddressPart { origin: AddressOrigin::Pc(index as u32), offset: 0 };
                self.write(state, inst);
                state.set(pair.first, Half::Low(part));
                if let Some(high) = pair.first.offset(1) {
                    state.set(high, Half::High(part));
                }
            }
            Followed::Copy(to) => self.copy(state, inst, to),
            Followed::AddLow(to) => {
                self.add_low(state, inst, index as u32, to.first);
                return;
            }
            Followed::AddHigh(to) => self.add_high(state, inst, index as u32, to.first),
            // gfx12's `s_getpc_b64` gives 48 bits, which are extended before anything is added.
            Followed::Extend(to)
                if inst.source(0).and_then(register) == Some(to.first)
                    && matches!(state.get(to.first), Half::High(_)) => {}
            Followed::Load(to) => self.load(state, inst, to),
            Followed::WriteLane(to) => self.write_lane(state, inst, to),
            Followed::ReadLane(to) => {
                let half = lane(inst).map_or(Half::Unknown, |(from, lane)| state.lane(from, lane));
                state.set(to.first, half);
            }
            Followed::Lanes { from, to } if state.all_lanes => state.copy_lanes(from, to),
            Followed::Call(to) => self.call(state, inst, index, to),
            Followed::Jump => self.jump(state, inst, index),
            Followed::Lanes { .. } | Followed::Extend(_) | Followed::Nothing => {
                inst.reads.iter().for_each(|range| self.consume(state, *range));
                self.write(state, inst);
                if let Followed::Lanes { to: to @ Vector::Slot(..), .. } = own.followed {
                    state.copy_lanes(Vector::Register(Register::Null), to);
                }
                state.all_lanes = own.all_lanes.unwrap_or(state.all_lanes);
            }
        }
        state.carry = carry;
    }

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
            // A 64-bit move extends its constant by the sign.
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

    /// The register and the number of an addition or subtraction, and whether the number is part
    /// of the instruction.
    fn sum(state: &ScalarState, inst: &Inst) -> Option<(Half, u32, bool)> {
        let subtracts = matches!(inst.operation.opcode(), Opcode::SSub | Opcode::SSubb);
        let is_literal = |index| inst.source(index).and_then(constant).is_some();
        match (state.source(inst, 0), state.source(inst, 1)) {
            (half, Half::Constant(number)) => Some((half, number, is_literal(1))),
            (Half::Constant(number), half) if !subtracts => Some((half, number, is_literal(0))),
            _ => None,
        }
    }

    fn add_low(&mut self, state: &mut ScalarState, inst: &Inst, index: u32, to: Register) {
        let (mut result, mut carry) = (Half::Unknown, None);
        match Self::sum(state, inst) {
            Some((Half::Low(part), number, in_inst)) => {
                let origin = match part.origin {
                    AddressOrigin::Pc(getpc) if in_inst => {
                        self.found.sums.insert((getpc, index));
                        Some(AddressOrigin::Sum { getpc, low: index })
                    }
                    AddressOrigin::Pc(_) => {
                        self.consume_half(Half::Low(part));
                        None
                    }
                    known => Some(known),
                };
                if let Some(origin) = origin {
                    let offset = add(inst, part.offset, u64::from(number));
                    result = Half::Low(AddressPart { origin, offset });
                    carry = Some(origin);
                }
            }
            Some((Half::Constant(a), b, _)) => {
                result = Half::Constant(add(inst, a.into(), b.into()) as u32)
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
            (Some((Half::High(part), number, in_inst)), Some(carry)) => {
                let offset = add(inst, part.offset, u64::from(number) << 32);
                match (part.origin, carry) {
                    (AddressOrigin::Pc(getpc), AddressOrigin::Sum { getpc: of, low })
                        if getpc == of && in_inst =>
                    {
                        result = Half::High(AddressPart { origin: carry, offset });
                        self.chain(getpc, low, index, offset);
                    }
                    (own, carry) if own == carry => {
                        result = Half::High(AddressPart { origin: own, offset });
                    }
                    _ => self.consume_half(Half::High(part)),
                }
            }
            _ => inst.reads.iter().for_each(|range| self.consume(state, *range)),
        }
        self.write(state, inst);
        state.set(to, result);
    }

    fn chain(&mut self, getpc: u32, low: u32, high: u32, offset: u64) {
        let add_low = &self.draft.insts[low as usize];
        let Some((to, number)) = destination(add_low)
            .zip([0, 1].into_iter().find_map(|at| add_low.source(at).and_then(constant)))
        else {
            return;
        };
        let Some(pc) = self.base(AddressOrigin::Pc(getpc)) else { return };
        let target = Pc(add(add_low, pc, u64::from(number)).wrapping_add(offset));
        let register = to.first;
        self.found.findings.chains.insert(LocalChain { getpc, low, high, register, target });
    }

    /// The address that an origin begins with.
    fn base(&self, origin: AddressOrigin) -> Option<u64> {
        match origin {
            AddressOrigin::Loaded(address) => Some(address),
            AddressOrigin::Pc(getpc) | AddressOrigin::Sum { getpc, .. } => {
                let inst = &self.draft.insts[getpc as usize];
                Some(inst.pc.0 + u64::from(inst.size))
            }
        }
    }

    fn load(&mut self, state: &mut ScalarState, inst: &Inst, to: RegisterRange) {
        let place = inst.memory_operand().filter(|own| own.soffset.is_none()).and_then(|own| {
            let base = state.address(own.saddr?, |origin| self.base(origin))?;
            Some(base.wrapping_add_signed(*own.offsets.first()?))
        });
        if place.is_none() {
            inst.reads.iter().for_each(|range| self.consume(state, *range));
        } else {
            // The address itself must be a whole one.
            for half in inst.reads.iter().flat_map(|range| range.iter()).map(|own| state.get(own)) {
                if matches!(half.origin(), Some(AddressOrigin::Pc(_))) {
                    self.consume_half(half);
                }
            }
        }
        self.write(state, inst);
        let Some(place) = place else { return };
        for pair in 0..to.words / 2 {
            let value = self.around.relocated.get(&(place + 8 * u64::from(pair)));
            let first = to.first.offset(2 * pair);
            let Some((address, low)) = value.zip(first) else { continue };
            let part = AddressPart { origin: AddressOrigin::Loaded(*address), offset: 0 };
            state.set(low, Half::Low(part));
            if let Some(high) = low.offset(1) {
                state.set(high, Half::High(part));
            }
        }
    }

    fn write_lane(&mut self, state: &mut ScalarState, inst: &Inst, to: RegisterRange) {
        let to = Vector::Register(to.first);
        let number = inst.source(1).and_then(constant).and_then(|lane| u8::try_from(lane).ok());
        match number {
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
        // The callee finds what registers hold, and may call it.
        self.found.escaped.extend(state.origins());
        let written = target.and_then(|target| self.around.written.get(&target.0));
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

    /// Registers are read for a purpose that is not followed.
    fn consume(&mut self, state: &ScalarState, range: RegisterRange) {
        for register in range.iter() {
            if !register.is_per_lane() {
                self.consume_half(state.get(register));
            }
            for half in state.lanes(Vector::Register(register)) {
                self.consume_half(half);
            }
        }
    }

    fn consume_half(&mut self, half: Half) {
        match half {
            Half::Mixed(getpc)
            | Half::Low(AddressPart { origin: AddressOrigin::Pc(getpc), .. })
            | Half::High(AddressPart { origin: AddressOrigin::Pc(getpc), .. }) => {
                self.refuse(getpc, "its result is used other than in a sum with a constant");
            }
            Half::Low(part) | Half::High(part) => _ = self.found.escaped.insert(part.origin),
            _ => {}
        }
    }

    fn refuse(&mut self, getpc: u32, reason: &str) {
        self.found.findings.unresolved.insert(getpc as usize, reason.to_owned());
    }
}

/// What an addition makes of its operands, or a subtraction.
fn add(inst: &Inst, sum: u64, number: u64) -> u64 {
    if matches!(inst.operation.opcode(), Opcode::SSub | Opcode::SSubb) {
        sum.wrapping_sub(number)
    } else {
        sum.wrapping_add(number)
    }
}

/// The lane that `v_readlane_b32` reads.
fn lane(inst: &Inst) -> Option<(Vector, u8)> {
    let from = inst.source(0).and_then(register)?;
    let lane = inst.source(1).and_then(constant)?;
    Some((Vector::Register(from), u8::try_from(lane).ok()?))
}

/// Registers that a function leaves as it found them (AMDGPUUsage, "Non-Kernel Functions"; LLVM's
/// `CSR_AMDGPU`).
fn is_preserved(register: Register) -> bool {
    match register {
        Register::Sgpr(Sgpr(n)) => n >= 30,
        Register::Vgpr(Vgpr(n)) => n >= 40 && (n - 40) % 16 < 8,
        _ => false,
    }
}
