//! Instructions with resolved operands.

use crate::{
    Argument, Class, EmulatedInst, InstParts, PREDICATES, Register, RegisterCounts, WORDS, carry,
};
use flipwave_arch::{OperationName, RegisterId};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// An instruction with an address. Copies share their content.
#[derive(Clone)]
pub struct Inst(Arc<Content>);

#[derive(Clone)]
struct Content {
    parts: InstParts,
    text: Arc<str>,
    operation: OperationName,
    accesses: Accesses,
}

/// Registers that an instruction accesses, by role and in the order of its operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Results.
    pub destinations: Vec<RegisterId>,
    /// Everything that the instruction reads.
    pub sources: Vec<RegisterId>,
    /// Parts of addresses.
    pub addresses: Vec<RegisterId>,
    /// Data of stores and atomic operations.
    pub values: Vec<RegisterId>,
}

impl Inst {
    pub(crate) fn new(parts: InstParts, text: Arc<str>) -> Inst {
        let operation = OperationName::interned(parts.form.name());
        let accesses = accesses(&parts);
        Inst(Arc::new(Content { parts, text, operation, accesses }))
    }

    /// Text of the instruction, without its semicolon.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Opcode and modifiers.
    pub fn operation(&self) -> OperationName {
        self.0.operation
    }

    /// Returns `true` for emulated instructions, whose operation differs from their form.
    pub fn is_emulated(&self) -> bool {
        self.0.operation.name() != self.0.parts.form.name()
    }

    /// Number of leading operands that the instruction writes. All operands of an unknown opcode may be
    /// written.
    pub fn written_operands(&self) -> usize {
        destination_count(&self.0.parts)
    }

    /// Registers that the instruction accesses.
    pub fn accesses(&self) -> &Accesses {
        &self.0.accesses
    }

    /// The emulated instruction that the instruction represents, with its address, guard and form.
    pub(crate) fn emulated(&self, emulated: &EmulatedInst) -> Inst {
        let guard = self.guard.map(|guard| guard.register);
        let sources = emulated.sources.iter().copied().chain(guard).collect();
        Inst(Arc::new(Content {
            parts: self.0.parts.clone(),
            text: emulated.text.as_str().into(),
            operation: OperationName::interned(&emulated.operation),
            accesses: Accesses {
                destinations: emulated.destinations.clone(),
                sources,
                ..Accesses::default()
            },
        }))
    }

    /// Gives the registers of the instruction other numbers: `first` is added to theirs.
    pub(crate) fn shift_registers(&mut self, first: RegisterCounts) {
        if first == RegisterCounts::default() {
            return;
        }
        let content = Arc::make_mut(&mut self.0);
        if let Some(guard) = &mut content.parts.guard {
            guard.register = shifted(guard.register, first);
        }
        for operand in &mut content.parts.operands {
            shift(operand, first);
        }
        content.accesses = accesses(&content.parts);
    }
}

impl Deref for Inst {
    type Target = InstParts;

    fn deref(&self) -> &InstParts {
        &self.0.parts
    }
}

impl fmt::Debug for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pc, self.0.text)
    }
}

impl PartialEq for Inst {
    fn eq(&self, other: &Inst) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.pc, &self.0.text) == (other.pc, &other.0.text)
    }
}

/// The number of a register after `first` was added.
pub(crate) fn shifted(register: RegisterId, first: RegisterCounts) -> RegisterId {
    let added = match register.class.rank {
        rank if rank == WORDS.rank => first.words,
        rank if rank == PREDICATES.rank => first.predicates,
        _ => 0,
    };
    RegisterId { number: register.number.saturating_add(added), ..register }
}

fn shift(argument: &mut Argument, first: RegisterCounts) {
    match argument {
        Argument::Register(register) | Argument::Not(register) | Argument::Part(register, _) => {
            register.first = shifted(register.first, first);
        }
        Argument::Vector(parts) | Argument::List(parts) => {
            parts.iter_mut().for_each(|part| shift(part, first));
        }
        Argument::Pair(pair) => pair.iter_mut().for_each(|part| shift(part, first)),
        Argument::Memory(address) => {
            shift(&mut address.base, first);
            address.others.iter_mut().for_each(|part| shift(part, first));
        }
        _ => {}
    }
}

/// Calls `visit` with each register of an operand, and `true` if it is part of an address.
pub(crate) fn for_each_register(argument: &Argument, visit: &mut dyn FnMut(Register, bool)) {
    match argument {
        Argument::Register(register) | Argument::Not(register) | Argument::Part(register, _) => {
            visit(*register, false);
        }
        Argument::Vector(parts) | Argument::List(parts) => {
            parts.iter().for_each(|part| for_each_register(part, visit));
        }
        Argument::Pair(pair) => pair.iter().for_each(|part| for_each_register(part, visit)),
        Argument::Memory(address) => {
            for_each_register(&address.base, &mut |register, _| visit(register, true));
            let others = address.others.iter();
            others
                .for_each(|part| for_each_register(part, &mut |register, _| visit(register, true)));
        }
        _ => {}
    }
}

/// Number of leading operands that an instruction writes. Operands of an unknown opcode may all be
/// written and read.
pub(crate) fn destination_count(parts: &InstParts) -> usize {
    match parts.form.facts {
        // The list of return parameters, if there are two lists or a list before the function.
        Some(facts) if facts.class == Class::Call => {
            usize::from(matches!(parts.operands.first(), Some(Argument::List(_))))
        }
        Some(facts) => facts.destinations.into(),
        None => parts.operands.len(),
    }
}

fn accesses(parts: &InstParts) -> Accesses {
    let mut all = Accesses::default();
    let class = parts.form.class();
    let destinations = destination_count(parts);
    // Accumulators in registers are read, too.
    let is_accumulating = class.is_none() || parts.form.name().starts_with("wgmma.mma_async");
    let is_writing_memory = matches!(class, Some(Class::Store | Class::Atomic | Class::Reduction));
    for (number, operand) in parts.operands.iter().enumerate() {
        for_each_register(operand, &mut |register, is_address| {
            let is_destination = number < destinations && !is_address;
            if is_destination {
                all.destinations.extend(register.iter());
            }
            if !is_destination || is_accumulating {
                all.sources.extend(register.iter());
            }
            if is_address {
                all.addresses.extend(register.iter());
            } else if is_writing_memory && !is_destination {
                all.values.extend(register.iter());
            }
        });
    }
    if let Some(guard) = parts.guard {
        all.sources.push(guard.register);
    }
    if parts.form.has("cc") {
        all.destinations.push(carry());
    }
    if matches!(parts.form.opcode(), "addc" | "subc" | "madc") {
        all.sources.push(carry());
    }
    all
}

#[cfg(test)]
mod tests;
