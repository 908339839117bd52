//! Reserves registers for values that hooks need throughout a kernel.

use super::prologue;
use super::split::{MoveGroup, SplitRange, SplitScope};
use crate::dataflow::{Liveness, OutstandingLoads};
use crate::flow::{Disassembly, FunctionIndex, IndexVec, InstIndex};
use crate::hook::{Body, BodyInst, EntryValue, InputValue};
use crate::layout::Placement;
use crate::point::ProgramPoint;
use crate::registers::Component;
use crate::site::{ReservedRegisters, ReservedValue, ReservedWord};
use flipwave_codeobj::{CodeObject, Descriptor, Kernel};
use flipwave_isa::{Pc, Register, RegisterRange, RegisterSet, Sgpr, Target, Vgpr};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Storage of a value throughout a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueStorage {
    /// Allocated SGPRs that no instruction names.
    FreeSgprs,
    /// SGPRs that no instruction names, with a larger allocation if necessary.
    MoreSgprs,
    /// Lanes of an allocated VGPR that no instruction names.
    FreeLanes,
    /// Dead SGPRs, which vary along the program, with moves between them (live-range splitting).
    DeadSgprs,
    /// Lanes of a VGPR, with a larger allocation if necessary.
    MoreLanes,
}

impl ValueStorage {
    /// All kinds of storage, in the default order. Unused allocated registers cost nothing, and further
    /// SGPRs hardly reduce occupancy. Dead SGPRs cost a few scalar instructions; further VGPRs reduce
    /// occupancy.
    pub const ORDER: [ValueStorage; 5] = [
        ValueStorage::FreeSgprs,
        ValueStorage::MoreSgprs,
        ValueStorage::FreeLanes,
        ValueStorage::DeadSgprs,
        ValueStorage::MoreLanes,
    ];
}

/// Values that the hooks of a component need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationNeeds {
    /// Values that are known only when a kernel starts.
    pub entry: BTreeSet<EntryValue>,
    /// `true` if hooks need addresses of their data.
    pub data: bool,
}

impl ReservationNeeds {
    /// Adds the values that a call needs.
    pub fn add(&mut self, inputs: &[InputValue], body: &Body) {
        for input in inputs {
            match input {
                InputValue::Entry(value) => _ = self.entry.insert(*value),
                InputValue::Data { .. } => self.data = true,
                _ => {}
            }
        }
        let is_address = |inst: &BodyInst| matches!(inst, BodyInst::Address { .. });
        self.data |= body.instructions.iter().any(is_address);
    }
}

/// Finds registers to reserve in a component.
#[derive(Clone, Copy)]
pub struct ReservationSearch<'a> {
    /// The code object.
    pub object: &'a CodeObject,
    /// Its code.
    pub program: &'a Disassembly,
    /// The functions that share the registers.
    pub component: &'a Component,
    /// Liveness of the code.
    pub liveness: &'a Liveness<'a>,
    /// Outstanding loads of the code.
    pub loads: &'a OutstandingLoads,
    /// Placement of each function.
    pub placements: &'a IndexVec<FunctionIndex, Placement>,
    /// Computes the registers that hooks access although they are dead; they are not reserved.
    pub accessed_dead: &'a dyn Fn() -> RegisterSet,
    /// The permitted kinds of storage, in order of preference.
    pub order: &'a [ValueStorage],
    /// Address of the hooks' data.
    pub data: Pc,
}

/// Registers that a component reserves for its hooks.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    /// Registers that hold the same value throughout the component.
    fixed: ReservedRegisters,
    /// Values in dead SGPRs, whose words form a split live range in this order.
    split_values: Vec<EntryValue>,
    split: SplitRange,
    /// Storage of each value.
    pub storage: BTreeMap<EntryValue, ValueStorage>,
    /// Registers that hooks access although they are dead.
    pub accessed_dead: RegisterSet,
}

impl Reservations {
    /// Locations of all values at a program point.
    pub fn at(&self, program: &Disassembly, point: ProgramPoint) -> Cow<'_, ReservedRegisters> {
        if self.split_values.is_empty() {
            return Cow::Borrowed(&self.fixed);
        }
        let mut reserved = self.fixed.clone();
        let registers = self.split.registers_at(program, point).unwrap_or_default();
        let mut words = registers.into_iter().map(ReservedWord::Sgpr);
        for value in &self.split_values {
            let Some(low) = words.next() else { break };
            let high = if words_of(*value) > 1 { words.next() } else { None };
            reserved.entry.insert(*value, ReservedValue { low, high });
        }
        Cow::Owned(reserved)
    }

    /// Registers that hold the same value throughout the component.
    pub fn registers(&self) -> RegisterSet {
        self.fixed.registers()
    }

    /// Moves of the split live range, by the instruction that they precede.
    pub fn moves(&self) -> impl Iterator<Item = (InstIndex, &MoveGroup)> {
        self.split.moves()
    }
}

/// Number of words of a value.
fn words_of(value: EntryValue) -> u8 {
    if value == EntryValue::Kernarg { 2 } else { 1 }
}

impl ReservationSearch<'_> {
    /// Reserves registers for the needed values. Values without registers are missing in the result. The
    /// address of the data does not need registers, because it can be computed anywhere.
    pub fn reserve(&self, needs: &ReservationNeeds) -> Reservations {
        let target = &self.program.target;
        let kernels = || self.component.kernels.iter().map(|at| &self.object.kernels()[*at]);
        // Reserved registers must not overwrite the inputs that hardware sets.
        let inputs =
            kernels().map(|kernel| sgprs_with_inputs(&kernel.descriptor, target, needs)).max();
        let inputs: RegisterSet = (0..inputs.unwrap_or(0))
            .map(|number| Register::Sgpr(Sgpr(number)))
            .chain((0..3).map(|number| Register::Vgpr(Vgpr(number))))
            .collect();
        let accessed_dead = (self.accessed_dead)();
        let mut free = FreeRegisters {
            registers: self.component.free().difference(inputs).difference(accessed_dead),
            component: self.component,
            lanes: None,
        };
        let enables = |kernel: &Kernel| {
            prologue::enabled(&kernel.descriptor, target, &needs.entry, None).is_ok()
        };
        // If a kernel cannot have more inputs, calls that need them are refused.
        let mut missing: Vec<EntryValue> =
            if kernels().all(enables) { needs.entry.iter().copied().collect() } else { Vec::new() };
        let mut reservations = Reservations { accessed_dead, ..Reservations::default() };
        for keeping in self.order {
            if *keeping == ValueStorage::DeadSgprs {
                let words = missing.iter().map(|value| usize::from(words_of(*value))).sum();
                if let Some(split) = self.split(words, accessed_dead) {
                    reservations.storage.extend(missing.iter().map(|value| (*value, *keeping)));
                    reservations.split_values = std::mem::take(&mut missing);
                    reservations.split = split;
                }
            }
            missing.retain(|value| {
                let Some(reserved) = free.value(*keeping, words_of(*value)) else { return true };
                reservations.fixed.entry.insert(*value, reserved);
                reservations.storage.insert(*value, *keeping);
                false
            });
        }
        if needs.data {
            let pair = self.order.iter().find_map(|keeping| free.sgprs(*keeping, 2));
            reservations.fixed.data = pair.map(|pair| (pair, self.data));
        }
        reservations
    }

    /// A live range for `words`, split over the SGPRs that the component's code names.
    fn split(&self, words: usize, accessed_dead: RegisterSet) -> Option<SplitRange> {
        let kernels = || self.component.kernels.iter().copied();
        // The moves must be inserted in all functions.
        let is_inline = |index: &FunctionIndex| self.placements[*index] == Placement::Inline;
        if words == 0 || !self.component.functions.iter().all(is_inline) {
            return None;
        }
        let reachable = kernels().filter_map(|at| self.program.kernel(at));
        let reachable: BTreeSet<FunctionIndex> =
            reachable.flat_map(|kernel| self.program.reachable(kernel)).collect();
        let functions: Vec<FunctionIndex> = reachable.into_iter().collect();
        let named = self.component.named.intersection(self.component.allocated);
        let scope = SplitScope {
            program: self.program,
            functions: &functions,
            liveness: self.liveness,
            loads: self.loads,
            registers: named.intersection(RegisterSet::SGPRS).difference(accessed_dead),
        };
        SplitRange::find(&scope, words)
    }
}

/// Number of SGPRs set at the start of a kernel with the needed inputs enabled.
fn sgprs_with_inputs(descriptor: &Descriptor, target: &Target, needs: &ReservationNeeds) -> u8 {
    // It is not known yet whether hooks need scratch memory; assume so.
    match prologue::enabled(descriptor, target, &needs.entry, Some(0)) {
        Ok(enabled) => prologue::initial_sgprs(&enabled, target),
        Err(_) => prologue::initial_sgprs(descriptor, target),
    }
}

/// Registers that no function of a component uses.
struct FreeRegisters<'a> {
    registers: RegisterSet,
    component: &'a Component,
    /// A VGPR whose lanes hold words, and its next free lane.
    lanes: Option<(Vgpr, u8)>,
}

/// Finds an aligned SGPR pair in `registers`, preferably in the allocation of a component.
pub fn pair(registers: RegisterSet, component: &Component) -> Option<RegisterRange> {
    let mut free = FreeRegisters { registers, component, lanes: None };
    free.sgprs(ValueStorage::FreeSgprs, 2).or_else(|| free.sgprs(ValueStorage::MoreSgprs, 2))
}

/// Maximum number of SGPRs on any target.
const SGPRS: u8 = 106;

/// Lanes that every wave has.
const LANES: u8 = 32;

impl FreeRegisters<'_> {
    /// Takes registers for a value.
    fn value(&mut self, keeping: ValueStorage, words: u8) -> Option<ReservedValue> {
        match keeping {
            ValueStorage::FreeSgprs | ValueStorage::MoreSgprs => {
                let range = self.sgprs(keeping, words)?;
                let mut sgprs = range.iter().filter_map(|register| match register {
                    Register::Sgpr(sgpr) => Some(ReservedWord::Sgpr(sgpr)),
                    _ => None,
                });
                Some(ReservedValue { low: sgprs.next()?, high: sgprs.next() })
            }
            ValueStorage::FreeLanes | ValueStorage::MoreLanes => {
                if self.lanes.is_none_or(|(_, next)| next + words > LANES) {
                    let mut vgprs =
                        self.candidates(keeping).intersection(RegisterSet::VGPRS).iter();
                    let Register::Vgpr(vgpr) = vgprs.next()? else { return None };
                    self.registers.remove(Register::Vgpr(vgpr));
                    self.lanes = Some((vgpr, 0));
                }
                let (vgpr, next) = self.lanes.as_mut()?;
                let lane = *next;
                *next += words;
                let high = (words > 1).then_some(ReservedWord::Lane(*vgpr, lane + 1));
                Some(ReservedValue { low: ReservedWord::Lane(*vgpr, lane), high })
            }
            ValueStorage::DeadSgprs => None,
        }
    }

    /// Takes consecutive SGPRs, the first a multiple of their number.
    fn sgprs(&mut self, keeping: ValueStorage, words: u8) -> Option<RegisterRange> {
        let free = match keeping {
            ValueStorage::FreeSgprs | ValueStorage::MoreSgprs => self.candidates(keeping),
            _ => return None,
        };
        let ranges = (0..SGPRS).step_by(words.into());
        let range = ranges
            .map(|first| RegisterRange::new(Register::Sgpr(Sgpr(first)), words))
            .find(|range| range.iter().all(|register| free.contains(register)))?;
        range.iter().for_each(|register| self.registers.remove(register));
        Some(range)
    }

    /// The free registers that a kind of storage may use.
    fn candidates(&self, keeping: ValueStorage) -> RegisterSet {
        match keeping {
            ValueStorage::FreeSgprs | ValueStorage::FreeLanes => {
                self.registers.intersection(self.component.allocated)
            }
            _ => self.registers,
        }
    }
}
