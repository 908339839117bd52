//! What is known of the values in scalar registers: addresses computed from the PC.

use flipwave_isa::{Inst, Register, RegisterRange, Sgpr, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a 32-bit register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Anything.
    Unknown,
    /// A number.
    Constant(u32),
    /// The low half of an address.
    Low(AddressPart),
    /// The high half of an address.
    High(AddressPart),
    /// The low half of the address that the function returns to.
    ReturnLow,
    /// The high half of the address that the function returns to.
    ReturnHigh,
    /// What an `s_getpc_b64` gave, or something else, depending on the way here.
    Mixed(u32),
}

/// An address: where it comes from and what was added since. Both halves of an address have the
/// same origin, each its own part of the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPart {
    /// Where it comes from.
    pub origin: AddressOrigin,
    /// What was added.
    pub offset: u64,
}

/// Where an address comes from. Instructions are counted from the function's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressOrigin {
    /// An `s_getpc_b64`, nothing added yet: it changes when the code moves.
    Pc(u32),
    /// An `s_getpc_b64` and the first addition to its low half.
    Sum {
        /// The `s_getpc_b64`.
        getpc: u32,
        /// The addition.
        low: u32,
    },
    /// The ELF virtual address that a relocation puts where it was loaded from.
    Loaded(u64),
}

impl Half {
    /// What is known where two ways meet.
    fn meet(self, other: Half) -> Half {
        let raw = |half| match half {
            Half::Low(AddressPart { origin: AddressOrigin::Pc(getpc), .. })
            | Half::High(AddressPart { origin: AddressOrigin::Pc(getpc), .. })
            | Half::Mixed(getpc) => Some(getpc),
            _ => None,
        };
        if self == other {
            return self;
        }
        raw(self).or(raw(other)).map_or(Half::Unknown, Half::Mixed)
    }

    /// The origin of an address.
    pub fn origin(self) -> Option<AddressOrigin> {
        match self {
            Half::Low(part) | Half::High(part) => Some(part.origin),
            _ => None,
        }
    }
}

/// Scalar registers that are followed: SGPRs and VCC.
const SCALARS: usize = 108;

/// Where values wait in the lanes of a vector, one value in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vector {
    /// A vector register.
    Register(Register),
    /// Private memory at a constant offset from a scalar register. Only accesses of this form are
    /// followed: compilers keep registers in places that no pointer leads to.
    Slot(Register, i64),
}

/// What is known at a point of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarState {
    scalars: [Half; SCALARS],
    /// Values in lanes, where `v_writelane_b32` put them first; no vector without any.
    lanes: BTreeMap<Vector, BTreeMap<u8, Half>>,
    /// The sum whose carry SCC is.
    pub carry: Option<AddressOrigin>,
    /// Whether EXEC selects all lanes.
    pub all_lanes: bool,
}

impl ScalarState {
    /// Nothing is known.
    pub fn unknown() -> ScalarState {
        ScalarState {
            scalars: [Half::Unknown; SCALARS],
            lanes: BTreeMap::new(),
            carry: None,
            all_lanes: false,
        }
    }

    /// The return address is in the pair that begins at `pair`.
    pub fn entry(pair: Sgpr) -> ScalarState {
        let mut state = ScalarState::unknown();
        let low = Register::Sgpr(pair);
        state.set(low, Half::ReturnLow);
        if let Some(high) = low.offset(1) {
            state.set(high, Half::ReturnHigh);
        }
        state
    }

    /// What a register holds.
    pub fn get(&self, register: Register) -> Half {
        place(register).map_or(Half::Unknown, |at| self.scalars[at])
    }

    /// Changes what a register holds.
    pub fn set(&mut self, register: Register, half: Half) {
        if let Some(at) = place(register) {
            self.scalars[at] = half;
        }
        if register.is_per_lane() {
            self.lanes.remove(&Vector::Register(register));
        } else if !self.lanes.is_empty() {
            self.lanes
                .retain(|vector, _| !matches!(vector, Vector::Slot(base, _) if *base == register));
        }
    }

    /// What a lane holds.
    pub fn lane(&self, vector: Vector, lane: u8) -> Half {
        let lanes = self.lanes.get(&vector);
        lanes.and_then(|lanes| lanes.get(&lane)).copied().unwrap_or(Half::Unknown)
    }

    /// Whether lanes of any vector hold something.
    pub fn has_lanes(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// What the lanes of a vector hold.
    pub fn lanes(&self, vector: Vector) -> impl Iterator<Item = Half> {
        self.lanes.get(&vector).into_iter().flat_map(|lanes| lanes.values().copied())
    }

    /// Changes what a lane holds.
    pub fn set_lane(&mut self, vector: Vector, lane: u8, half: Half) {
        let lanes = self.lanes.entry(vector).or_default();
        match half {
            Half::Unknown => lanes.remove(&lane),
            half => lanes.insert(lane, half),
        };
        if lanes.is_empty() {
            self.lanes.remove(&vector);
        }
    }

    /// Copies all lanes of a vector to another.
    pub fn copy_lanes(&mut self, from: Vector, to: Vector) {
        match self.lanes.get(&from).cloned() {
            Some(lanes) => self.lanes.insert(to, lanes),
            None => self.lanes.remove(&to),
        };
    }

    /// What an instruction's source is.
    pub fn source(&self, inst: &Inst, index: usize) -> Half {
        match inst.source(index) {
            Some(Value::Register(range)) => self.get(range.first),
            Some(value) => constant(value).map_or(Half::Unknown, Half::Constant),
            None => Half::Unknown,
        }
    }

    /// The address in a pair of registers, where `base` gives that of an origin.
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

    /// Keeps what `keeps` says of each register, and forgets the carry.
    pub fn retain(&mut self, keeps: impl Fn(Register) -> bool) {
        for (at, half) in self.scalars.iter_mut().enumerate() {
            if !keeps(register(at)) {
                *half = Half::Unknown;
            }
        }
        self.lanes.retain(|vector, _| match vector {
            Vector::Register(own) => keeps(*own),
            // What stands on the stack stays, and its pointer comes back as it was.
            Vector::Slot(..) => true,
        });
        self.carry = None;
    }

    /// All addresses that are known of.
    pub fn origins(&self) -> impl Iterator<Item = AddressOrigin> {
        let lanes = self.lanes.values().flat_map(BTreeMap::values);
        self.scalars.iter().chain(lanes).filter_map(|half| half.origin())
    }

    /// Takes in what is known on another way here; gives whether that changed anything. Origins
    /// that are no longer known of are added to `lost`.
    pub fn meet(&mut self, other: &ScalarState, lost: &mut BTreeSet<AddressOrigin>) -> bool {
        let mut changed = false;
        let mut meet = |own: &mut Half, other: Half| {
            let met = own.meet(other);
            if met != *own || met != other {
                lost.extend(own.origin());
                lost.extend(other.origin());
            }
            changed |= met != *own;
            *own = met;
        };
        for (own, other) in self.scalars.iter_mut().zip(&other.scalars) {
            meet(own, *other);
        }
        for (vector, lanes) in &mut self.lanes {
            for (lane, own) in lanes {
                meet(own, other.lane(*vector, *lane));
            }
        }
        self.lanes.retain(|_, lanes| {
            lanes.retain(|_, half| *half != Half::Unknown);
            !lanes.is_empty()
        });
        for (vector, lanes) in &other.lanes {
            let own = self.lanes.get(vector);
            let is_gone = |lane| own.is_none_or(|own| !own.contains_key(lane));
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

/// The bits that an integer or a literal puts into a 32-bit operand.
pub fn constant(value: &Value) -> Option<u32> {
    match value {
        Value::Integer(integer) => Some(*integer as u32),
        Value::Literal(literal) => Some(*literal),
        _ => None,
    }
}

/// Whether what a register holds is followed.
pub fn is_followed(register: Register) -> bool {
    place(register).is_some()
}

fn place(register: Register) -> Option<usize> {
    match register {
        Register::Sgpr(Sgpr(n)) => Some(n.into()).filter(|at| *at < 106),
        Register::VccLo => Some(106),
        Register::VccHi => Some(107),
        _ => None,
    }
}

fn register(place: usize) -> Register {
    match place {
        106 => Register::VccLo,
        107 => Register::VccHi,
        n => Register::Sgpr(Sgpr(n as u8)),
    }
}
