//! Tracked values of scalar registers: code addresses and constants.

use flipwave_isa::{Inst, Register, RegisterRange, Sgpr, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The value of a 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Anything.
    Unknown,
    /// A constant.
    Constant(u32),
    /// The low half of an address.
    Low(AddressPart),
    /// The high half of an address.
    High(AddressPart),
    /// The low half of the return address.
    ReturnLow,
    /// The high half of the return address.
    ReturnHigh,
    /// The result of this `s_getpc_b64` on one path, and another value on another path.
    Mixed(u32),
}

/// An origin and an offset. Both halves of an address have the same origin; the address is the origin plus
/// both offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPart {
    /// The origin.
    pub origin: AddressOrigin,
    /// The sum of the constants added to this half.
    pub offset: u64,
}

/// The origin of an address. Indices of instructions are relative to the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressOrigin {
    /// The result of an `s_getpc_b64`, which changes if the code moves.
    Pc(u32),
    /// The sum of an `s_getpc_b64` and the constant of the first addition to its low half.
    Sum {
        /// The `s_getpc_b64`.
        getpc: u32,
        /// The addition.
        low: u32,
    },
    /// A relocated pointer loaded from memory: its ELF virtual address.
    Loaded(u64),
}

impl Half {
    /// The value where two paths meet.
    fn meet(self, other: Half) -> Half {
        let getpc_of = |half| match half {
            Half::Low(AddressPart { origin: AddressOrigin::Pc(getpc), .. })
            | Half::High(AddressPart { origin: AddressOrigin::Pc(getpc), .. })
            | Half::Mixed(getpc) => Some(getpc),
            _ => None,
        };
        if self == other {
            return self;
        }
        getpc_of(self).or(getpc_of(other)).map_or(Half::Unknown, Half::Mixed)
    }

    /// The origin of an address.
    pub fn origin(self) -> Option<AddressOrigin> {
        match self {
            Half::Low(part) | Half::High(part) => Some(part.origin),
            _ => None,
        }
    }
}

/// Number of tracked scalar registers: SGPRs and VCC.
const SCALARS: usize = 108;

/// A vector whose lanes may hold scalar values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneStorage {
    /// A storage register.
    Register(Register),
    /// Private memory at a constant offset from a scalar register. Other accesses are assumed not to modify
    /// it: compilers spill registers to memory that no pointer refers to.
    Slot(Register, i64),
}

/// Tracked values at a point of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarState {
    scalars: [Half; SCALARS],
    /// Scalar values in lanes, originally written by `v_writelane_b32`. No map is empty.
    lanes: BTreeMap<LaneStorage, BTreeMap<u8, Half>>,
    /// The sum whose carry is in SCC.
    pub carry: Option<AddressOrigin>,
    /// EXEC selects all lanes.
    pub all_lanes: bool,
}

impl ScalarState {
    /// A state without known values.
    pub fn unknown() -> ScalarState {
        ScalarState {
            scalars: [Half::Unknown; SCALARS],
            lanes: BTreeMap::new(),
            carry: None,
            all_lanes: false,
        }
    }

    /// The state at the entry of a function whose return address is in the register pair at `pair`.
    pub fn entry(pair: Sgpr) -> ScalarState {
        let mut state = ScalarState::unknown();
        let low = Register::Sgpr(pair);
        state.set(low, Half::ReturnLow);
        if let Some(high) = low.offset(1) {
            state.set(high, Half::ReturnHigh);
        }
        state
    }

    /// The value of a register.
    pub fn get(&self, register: Register) -> Half {
        position(register).map_or(Half::Unknown, |at| self.scalars[at])
    }

    /// Sets the value of a register.
    pub fn set(&mut self, register: Register, half: Half) {
        if let Some(at) = position(register) {
            self.scalars[at] = half;
        }
        if register.is_per_lane() {
            self.lanes.remove(&LaneStorage::Register(register));
        } else if !self.lanes.is_empty() {
            self.lanes.retain(
                |storage, _| !matches!(storage, LaneStorage::Slot(base, _) if *base == register),
            );
        }
    }

    /// The value of a lane.
    pub fn lane(&self, storage: LaneStorage, lane: u8) -> Half {
        let lanes = self.lanes.get(&storage);
        lanes.and_then(|lanes| lanes.get(&lane)).copied().unwrap_or(Half::Unknown)
    }

    /// Returns `true` if any lane has a known value.
    pub fn has_lanes(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// The known values of all lanes.
    pub fn lanes(&self, storage: LaneStorage) -> impl Iterator<Item = Half> {
        self.lanes.get(&storage).into_iter().flat_map(|lanes| lanes.values().copied())
    }

    /// Sets the value of a lane.
    pub fn set_lane(&mut self, storage: LaneStorage, lane: u8, half: Half) {
        let lanes = self.lanes.entry(storage).or_default();
        match half {
            Half::Unknown => lanes.remove(&lane),
            half => lanes.insert(lane, half),
        };
        if lanes.is_empty() {
            self.lanes.remove(&storage);
        }
    }

    /// Copies all lanes.
    pub fn copy_lanes(&mut self, from: LaneStorage, to: LaneStorage) {
        match self.lanes.get(&from).cloned() {
            Some(lanes) => self.lanes.insert(to, lanes),
            None => self.lanes.remove(&to),
        };
    }

    /// The value of an instruction's source operand.
    pub fn source(&self, inst: &Inst, index: usize) -> Half {
        match inst.source(index) {
            Some(Value::Register(range)) => self.get(range.first),
            Some(value) => constant(value).map_or(Half::Unknown, Half::Constant),
            None => Half::Unknown,
        }
    }

    /// The address in a register pair. `base` returns the address of an origin.
    pub fn address(
        &self,
        pair: RegisterRange,
        base: impl Fn(AddressOrigin) -> Option<u64>,
    ) -> Option<u64> {
        let high = self.get(pair.first.offset(1)?);
        match (self.get(pair.first), high) {
            (Half::Low(low), Half::High(high)) if low.origin == high.origin => {
                Some(base(low.origin)?.wrapping_add(low.offset).wrapping_add(high.offset))
            }
            _ => None,
        }
    }

    /// Forgets the carry and the values of all registers for which `keeps` returns `false`.
    pub fn retain(&mut self, keeps: impl Fn(Register) -> bool) {
        for (at, half) in self.scalars.iter_mut().enumerate() {
            if !keeps(register(at)) {
                *half = Half::Unknown;
            }
        }
        self.lanes.retain(|storage, _| match storage {
            LaneStorage::Register(register) => keeps(*register),
            // Callees preserve the caller's stack frame and the stack pointer.
            LaneStorage::Slot(..) => true,
        });
        self.carry = None;
    }

    /// The origins of all known addresses.
    pub fn origins(&self) -> impl Iterator<Item = AddressOrigin> {
        let lanes = self.lanes.values().flat_map(BTreeMap::values);
        self.scalars.iter().chain(lanes).filter_map(|half| half.origin())
    }

    /// Joins the state of another path. Returns `true` if this state has changed. Adds the origins of addresses
    /// that are no longer known to `lost`.
    pub fn meet(&mut self, other: &ScalarState, lost: &mut BTreeSet<AddressOrigin>) -> bool {
        let mut changed = false;
        let mut meet = |half: &mut Half, other: Half| {
            let met = half.meet(other);
            if met != *half || met != other {
                lost.extend(half.origin());
                lost.extend(other.origin());
            }
            changed |= met != *half;
            *half = met;
        };
        for (half, other) in self.scalars.iter_mut().zip(&other.scalars) {
            meet(half, *other);
        }
        for (storage, lanes) in &mut self.lanes {
            for (lane, half) in lanes {
                meet(half, other.lane(*storage, *lane));
            }
        }
        self.lanes.retain(|_, lanes| {
            lanes.retain(|_, half| *half != Half::Unknown);
            !lanes.is_empty()
        });
        for (storage, lanes) in &other.lanes {
            let kept = self.lanes.get(storage);
            let is_gone = |lane| kept.is_none_or(|kept| !kept.contains_key(lane));
            lost.extend(
                lanes
                    .iter()
                    .filter(|(lane, _)| is_gone(lane))
                    .filter_map(|(_, half)| half.origin()),
            );
        }
        if self.carry != other.carry && self.carry.is_some() {
            self.carry = None;
            changed = true;
        }
        if self.all_lanes && !other.all_lanes {
            self.all_lanes = false;
            changed = true;
        }
        changed
    }
}

/// The value of a 32-bit operand that is an integer or a literal.
pub fn constant(value: &Value) -> Option<u32> {
    match value {
        Value::Integer(integer) => Some(*integer as u32),
        Value::Literal(literal) => Some(*literal),
        _ => None,
    }
}

/// A constant of 64 bits.
pub fn wide_constant(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(integer) => Some(*integer as u64),
        Value::WideLiteral(literal) => Some(*literal),
        _ => None,
    }
}

/// Returns `true` for registers whose values are tracked.
pub fn is_tracked(register: Register) -> bool {
    position(register).is_some()
}

/// The position of a tracked register.
fn position(register: Register) -> Option<usize> {
    match register {
        Register::Sgpr(Sgpr(n)) => Some(n.into()).filter(|at| *at < 106),
        Register::VccLo => Some(106),
        Register::VccHi => Some(107),
        _ => None,
    }
}

/// The tracked register at a position.
fn register(position: usize) -> Register {
    match position {
        106 => Register::VccLo,
        107 => Register::VccHi,
        n => Register::Sgpr(Sgpr(n as u8)),
    }
}
