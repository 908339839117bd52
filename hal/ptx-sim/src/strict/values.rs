//! Values that nothing has written.

use super::shadow::Shadow;
use super::shared::SharedFacts;
use super::{Checked, PtxRule};
use crate::compute::LANES;
use crate::execute::Reach;
use crate::program::{CallTarget, Destination, MemorySpace, Op, Place, Source};
use flipwave_arch::RegisterId;
use flipwave_ptx::{Argument, PREDICATES, WORDS};

impl Checked<'_, '_> {
    /// Checks that the guard was written.
    pub(super) fn guard(&mut self, shadow: &Shadow) {
        let Some(guard) = self.inst.guard else { return };
        let undefined = self.reach.wave.active() & !shadow.register(guard.register);
        if undefined != 0 {
            let name = self.name(guard.register);
            self.report(PtxRule::UndefinedValue, undefined, || {
                format!("{name} decides which lanes execute the instruction, but was not written")
            });
        }
    }

    /// Checks operands that decide addresses, targets, masks and the like.
    pub(super) fn uses(&mut self, shadow: &Shadow) {
        let address = "is used as an address";
        let used: Vec<(Source, &str)> = match self.op {
            Op::Load { access, .. } | Op::Store { access, .. } | Op::Atomic { access, .. } => {
                vec![(access.base, address)]
            }
            Op::Matrix(matrix) => vec![(matrix.access.base, address)],
            Op::PhaseBarrier(barrier) => vec![(barrier.access.base, address)],
            Op::Copy(copy) => vec![(copy.to.base, address), (copy.from.base, address)],
            Op::IndexedBranch { index, .. } => vec![(*index, "decides where the branch goes")],
            Op::Call(call) => match call.target {
                CallTarget::Address(source) => vec![(source, "decides which function is called")],
                CallTarget::Function(_) => Vec::new(),
            },
            Op::Barrier(op) => vec![(op.number, "selects the barrier")],
            Op::Compute { sources, .. } if self.inst.form.has("sync") => {
                let mask = match self.inst.form.opcode() {
                    "shfl" => sources.get(3),
                    "elect" => sources.first(),
                    _ => sources.get(1),
                };
                mask.map(|mask| (*mask, "decides which lanes take part")).into_iter().collect()
            }
            _ => Vec::new(),
        };
        for (source, purpose) in used {
            let undefined = self.lanes & !shadow.source(source);
            if undefined != 0 {
                let name = self.source_name(source);
                self.report(PtxRule::UndefinedValue, undefined, || {
                    format!("{name} {purpose}, but was not written or depends on such a value")
                });
            }
        }
    }

    fn source_name(&self, source: Source) -> String {
        match source {
            Source::Word { word, .. } | Source::Pair(word) => self.word_name(word),
            Source::Predicate { number, .. } => {
                self.name(RegisterId { class: &PREDICATES, number })
            }
            _ => "the carry".to_owned(),
        }
    }

    /// Reports integer divisions by zero.
    pub(super) fn division(&mut self) {
        let Op::Compute { sources, .. } = self.op else { return };
        let form = &self.inst.form;
        let is_integer = form.types.iter().all(|kind| !kind.is_float());
        let (true, true, Some(divisor)) =
            (matches!(form.opcode(), "div" | "rem"), is_integer, sources.get(1))
        else {
            return;
        };
        let divisors = self.reach.row(*divisor);
        let zero = Reach::lanes(self.lanes).filter(|lane| divisors[*lane] == 0);
        let zero = zero.fold(0, |all, lane| all | 1u32 << lane);
        if zero != 0 {
            self.report(PtxRule::DivisionByZero, zero, || "the divisor is 0".to_owned());
        }
    }

    /// Records which results are defined.
    pub(super) fn define(&self, shadow: &mut Shadow, shared: &mut SharedFacts) {
        let lanes = self.lanes;
        match self.op {
            Op::Compute { sources, destinations, .. } => {
                self.define_computed(shadow, sources, destinations);
            }
            Op::Load { access, values } => {
                let addresses = self.reach.addresses(access);
                for (part, destination) in values {
                    let is_defined =
                        |lane: &usize| match self.shared_address(access, &addresses, *lane) {
                            Some(address) => shared.is_defined(address + part.offset, part.bytes),
                            None => true,
                        };
                    let defined = Reach::lanes(lanes).filter(is_defined);
                    let defined = defined.fold(0, |all, lane| all | 1u32 << lane);
                    shadow.write(*destination, lanes, defined);
                }
            }
            Op::Store { access, values } => {
                let addresses = self.reach.addresses(access);
                for (part, source) in values {
                    let defined = shadow.source(*source);
                    for lane in Reach::lanes(lanes) {
                        if let Some(address) = self.shared_address(access, &addresses, lane) {
                            let is_defined = defined >> lane & 1 != 0;
                            shared.define(address + part.offset, part.bytes, is_defined);
                        }
                    }
                }
            }
            Op::Matrix(matrix) if matrix.is_store => {
                let addresses = self.reach.addresses(&matrix.access);
                for lane in 0..8 * matrix.registers.len() {
                    if let Some(address) =
                        self.shared_address(&matrix.access, &addresses, lane % LANES)
                    {
                        shared.define(address, 16, true);
                    }
                }
            }
            Op::Copy(copy) => {
                let addresses = self.reach.addresses(&copy.to);
                for lane in Reach::lanes(lanes) {
                    if let Some(address) = self.shared_address(&copy.to, &addresses, lane) {
                        shared.define(address, copy.to.bytes, true);
                    }
                }
            }
            Op::PhaseBarrier(barrier) => {
                let addresses = self.reach.addresses(&barrier.access);
                for lane in Reach::lanes(lanes) {
                    if let Some(address) = self.shared_address(&barrier.access, &addresses, lane) {
                        shared.define(address, super::shared::OBJECT_BYTES, true);
                    }
                }
                shadow.write(barrier.destination, lanes, lanes);
            }
            Op::Atomic { values, .. } => {
                for value in values {
                    shadow.write(value.destination, lanes, lanes);
                }
            }
            Op::Call(call) => self.define_call(shadow, call),
            // Memory and matrices count as defined.
            _ => {
                for register in &self.inst.accesses().destinations {
                    if Self::is_tracked(*register) {
                        shadow.set(*register, lanes, lanes);
                    }
                }
            }
        }
    }

    /// Results of an operation are defined if all its operands are, with exceptions.
    fn define_computed(
        &self,
        shadow: &mut Shadow,
        sources: &[Source],
        destinations: &[Destination],
    ) {
        let (lanes, form) = (self.lanes, &self.inst.form);
        let of = |source: &Source| shadow.source(*source);
        let all = sources.iter().fold(u32::MAX, |defined, source| defined & of(source));
        let is_vector = |operand: Option<&Argument>| matches!(operand, Some(Argument::Vector(_)));
        let operands = &self.inst.operands;
        let defined = match (form.opcode(), sources) {
            ("selp", [a, b, condition]) => {
                let chosen = self.reach.row(*condition);
                let takes_first =
                    (0..LANES).fold(0, |mask, lane| mask | ((chosen[lane] & 1) as u32) << lane);
                of(condition) & (of(a) & takes_first | of(b) & !takes_first)
            }
            // The result does not depend on the operand.
            ("xor" | "sub", [a, b])
                if a == b && form.result().is_some_and(|kind| !kind.is_float()) =>
            {
                u32::MAX
            }
            // Halves keep their definedness.
            ("mov", [low, high]) if is_vector(operands.get(1)) => {
                if let [Destination::Pair(word)] = destinations
                    && matches!(
                        [low, high],
                        [Source::Word { bits: 32, .. }, Source::Word { bits: 32, .. }]
                    )
                {
                    let halves = [of(low), of(high)];
                    for (number, defined) in (*word..).zip(halves) {
                        shadow.set(RegisterId { class: &WORDS, number }, lanes, defined);
                    }
                    return;
                }
                of(low) | of(high)
            }
            // Compilers fill parts of vectors with anything.
            ("mov", parts) if is_vector(operands.get(1)) => {
                parts.iter().fold(0, |defined, source| defined | of(source))
            }
            ("mov", [Source::Pair(word)])
                if is_vector(operands.first()) && destinations.len() == 2 =>
            {
                let halves = [shadow.word(*word), shadow.word(word.saturating_add(1))];
                for (destination, defined) in destinations.iter().zip(halves) {
                    shadow.write(*destination, lanes, defined);
                }
                return;
            }
            // The low word alone.
            ("cvt", [Source::Pair(word)])
                if form.types.iter().all(|kind| !kind.is_float())
                    && form.result().is_some_and(|kind| kind.bits() <= 32) =>
            {
                shadow.word(*word)
            }
            ("shfl", [value, rest @ ..]) => {
                let rest = rest.iter().fold(u32::MAX, |defined, source| defined & of(source));
                let (value, from) = (of(value), self.shuffle_sources());
                from.map_or(all, |from| {
                    let lane = |lane: usize| (value >> from[lane] & 1) << lane;
                    rest & (0..LANES).fold(0, |mask, number| mask | lane(number))
                })
            }
            ("vote" | "redux" | "match", _) => {
                if all & lanes == lanes {
                    u32::MAX
                } else {
                    0
                }
            }
            _ => all,
        };
        for destination in destinations {
            shadow.write(*destination, lanes, defined);
        }
    }

    /// Parameters in registers receive their arguments; results count as defined.
    fn define_call(&self, shadow: &mut Shadow, call: &crate::program::CallOp) {
        let lanes = self.lanes;
        if let CallTarget::Function(number) = call.target {
            let callee = &self.reach.program.code.functions[number];
            for (slot, place) in callee.parameters.iter().zip(&call.arguments) {
                let (flipwave_ptx::Slot::Register(register), Place::Value(source)) = (slot, place)
                else {
                    continue;
                };
                let defined = shadow.source(*source);
                for word in register.iter() {
                    shadow.set(word, lanes, defined);
                }
            }
        }
        for place in &call.results {
            if let Place::Register(destination) = place {
                shadow.write(*destination, lanes, lanes);
            }
        }
    }

    /// The address in shared memory that a lane accesses; `None` for other memory.
    pub(super) fn shared_address(
        &self,
        access: &crate::program::MemoryAccess,
        addresses: &crate::compute::Row,
        lane: usize,
    ) -> Option<u64> {
        let location = self.reach.locate(access, addresses[lane], lane).ok()?;
        (location.space == MemorySpace::Shared).then_some(location.address)
    }
}
