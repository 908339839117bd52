//! Code of a call.

use crate::emitter::{Emitter, hexadecimal, number, untyped};
use crate::{Argument, HookCall, Lanes, Place, Signature};
use flipwave_arch::RegisterId;
use flipwave_ptx::{
    Argument as Resolved, Class, Expression, Guard, Inst, Instruction, Name, Operand, Register,
    ScalarType, carry,
};
use std::collections::HashMap;

/// Instruction at which hooks are called.
pub(crate) struct At<'a> {
    /// The resolved instruction.
    pub inst: &'a Inst,
    /// The instruction in the tree.
    pub tree: &'a Instruction,
    /// The guard that the instruction is executed with.
    pub guard: Option<Guard>,
}

/// Registers that an instruction reads in place of others, because a hook changes what it reads.
#[derive(Default)]
pub(crate) struct Reads {
    /// Temporary registers by the name of the original.
    pub registers: HashMap<Name, Name>,
    /// The carry before it was changed: no other register can take its place.
    pub carry: Option<Name>,
    /// Predicates that decide a branch.
    pub decision: Option<Decision>,
}

/// Predicates that decide a branch.
pub(crate) struct Decision {
    /// True in lanes that take the branch.
    pub taken: Name,
    /// True in lanes that take it after the others, on their own path.
    pub late: Name,
}

impl Reads {
    /// Makes the instruction read a copy of a word's register.
    pub fn lend(
        &mut self,
        inst: &Inst,
        word: RegisterId,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), String> {
        if inst.form.class().is_none() || inst.form.name().starts_with("wgmma") {
            return Err("the operands that the instruction reads are not known".to_owned());
        }
        if word == carry() {
            if self.carry.is_none() {
                self.carry = Some(emitter.read_word(word, None)?);
            }
            return Ok(());
        }
        let (register, name) = emitter.register_of(word)?;
        self.registers.entry(name).or_insert_with_key(|name| emitter.copy(register, name));
        Ok(())
    }

    /// The register that the instruction reads in place of a word's register, if any.
    fn lent(&self, emitter: &Emitter<'_>, word: RegisterId) -> Option<Name> {
        let name = emitter.register_of(word).ok()?.1;
        self.registers.get(&name).cloned()
    }

    /// Declares the predicates of a branch.
    fn decide(&mut self, inst: &Inst, emitter: &mut Emitter<'_>) -> Result<(), String> {
        if inst.form.opcode() != "bra" || inst.guard.is_none() {
            return Err("not a conditional branch".to_owned());
        }
        let [taken, late] = [(); 2].map(|()| emitter.temporary(ScalarType::Pred));
        self.decision = Some(Decision { taken, late });
        Ok(())
    }
}

/// What a call refers to.
pub(crate) struct Caller<'a> {
    /// The instruction; `None` at the entry and the end of a function.
    pub at: Option<&'a At<'a>>,
    /// Name of the hook's function in the module.
    pub target: &'a str,
    /// The hook's parameters and result.
    pub signature: &'a Signature,
    /// `true` to preserve the carry.
    pub preserves_carry: bool,
}

impl Caller<'_> {
    /// Emits a call.
    pub fn emit(
        &self,
        call: &HookCall,
        reads: &mut Reads,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), String> {
        let (given, expected) = (call.arguments.len(), self.signature.parameters.len());
        if given != expected {
            return Err(format!(
                "the hook has {expected} parameters, the call has {given} arguments"
            ));
        }
        let (given, expected) = (call.results.len(), self.signature.results.len());
        if given > expected {
            return Err(match expected {
                0 => "the hook has no result".to_owned(),
                _ => format!("the hook has {expected} results, the call has {given} places"),
            });
        }
        for place in &call.results {
            self.prepare(*place, reads, emitter)?;
        }
        emitter.scoped(|emitter| self.emit_scoped(call, reads, emitter))
    }

    /// Makes temporary registers for what the instruction reads.
    fn prepare(
        &self,
        place: Place,
        reads: &mut Reads,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), String> {
        let inst =
            || self.at.map(|at| at.inst).ok_or("there is no instruction that reads the result");
        match place {
            Place::ReadWord(word) => reads.lend(inst()?, word, emitter),
            Place::ReadWords(low, high) => {
                reads.lend(inst()?, low, emitter)?;
                reads.lend(inst()?, high, emitter)
            }
            Place::Decision => reads.decide(inst()?, emitter),
            Place::Register(_) | Place::Word(_) | Place::Words(..) => Ok(()),
        }
    }

    fn emit_scoped(
        &self,
        call: &HookCall,
        reads: &Reads,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), String> {
        let kept = self.preserves_carry.then(|| emitter.read_word(carry(), None)).transpose()?;
        let guard = self.at.and_then(|at| at.guard.clone());
        emitter.guard = guard.clone().filter(|_| call.lanes == Lanes::Executing);
        let results = self.emit_guarded(call, reads, emitter);
        emitter.guard = guard.filter(|_| call.lanes != Lanes::Active);
        let written = results.and_then(|results| {
            let mut places = call.results.iter().zip(results);
            places.try_for_each(|(place, result)| self.write(*place, result, reads, emitter))
        });
        emitter.guard = None;
        written?;
        let is_carry = |place: &Place| matches!(place, Place::Word(word) | Place::ReadWord(word) if *word == carry());
        let writes_carry = call.results.iter().any(is_carry);
        if let Some(kept) = kept.filter(|_| !writes_carry) {
            emitter.write_word(carry(), None, &kept)?;
        }
        Ok(())
    }

    /// Emits the call. Returns the registers of its results.
    fn emit_guarded(
        &self,
        call: &HookCall,
        reads: &Reads,
        emitter: &mut Emitter<'_>,
    ) -> Result<Vec<(Name, ScalarType)>, String> {
        let lent = |emitter: &Emitter<'_>, word: RegisterId| reads.lent(emitter, word);
        let is_lent = call.results.iter().any(|place| place.is_read_word());
        let mut arguments = Vec::new();
        for (argument, bits) in call.arguments.iter().zip(&self.signature.parameters) {
            let kind = if *bits == 64 { ScalarType::B64 } else { ScalarType::B32 };
            let value = match argument {
                Argument::Word(word) => {
                    let renamed = lent(emitter, *word).filter(|_| is_lent);
                    let value = emitter.read_word(*word, renamed.as_deref())?;
                    widen(emitter, value, ScalarType::B32, kind)
                }
                Argument::Words(low, high) => {
                    let low_name = lent(emitter, *low).filter(|_| is_lent);
                    let high_name = lent(emitter, *high).filter(|_| is_lent);
                    let low = emitter.read_word(*low, low_name.as_deref())?;
                    let high = emitter.read_word(*high, high_name.as_deref())?;
                    let halves = vec![Operand::symbol(&low), Operand::symbol(&high)];
                    let wide = emitter.temporary(ScalarType::B64);
                    emitter.op("mov.b64", vec![Operand::symbol(&wide), Operand::Vector(halves)]);
                    narrow(emitter, wide, ScalarType::B64, kind)
                }
                Argument::Register(register) => read(emitter, *register, kind)?,
                Argument::Constant(value) => constant(emitter, *value, kind),
                Argument::Special(name) => special(emitter, name, kind),
                other => self.of_instruction(other, kind, emitter)?,
            };
            arguments.push(Operand::symbol(&value));
        }
        let results = self.signature.results.iter().map(|bits| {
            let kind = if *bits == 64 { ScalarType::B64 } else { ScalarType::B32 };
            (emitter.temporary(kind), kind)
        });
        let results: Vec<(Name, ScalarType)> = results.collect();
        let names: Vec<Operand> = results.iter().map(|(name, _)| Operand::symbol(name)).collect();
        let mut operands = Vec::new();
        operands.extend((!names.is_empty()).then_some(Operand::List(names)));
        operands.push(Operand::symbol(self.target));
        operands.extend((!arguments.is_empty()).then_some(Operand::List(arguments)));
        emitter.op("call", operands);
        Ok(results)
    }

    /// Writes a result to its place.
    fn write(
        &self,
        place: Place,
        (value, kind): (Name, ScalarType),
        reads: &Reads,
        emitter: &mut Emitter<'_>,
    ) -> Result<(), String> {
        match place {
            Place::Register(register) => write(emitter, register, value, kind),
            Place::Word(word) => {
                let value = narrow(emitter, value, kind, ScalarType::B32);
                emitter.write_word(word, None, &value)
            }
            Place::ReadWord(word) => {
                let value = narrow(emitter, value, kind, ScalarType::B32);
                let renamed = reads.lent(emitter, word);
                emitter.write_word(word, renamed.as_deref(), &value)
            }
            Place::Decision => {
                let decision = reads.decision.as_ref().ok_or("not a conditional branch")?;
                for (predicate, bit) in [(&decision.taken, 1), (&decision.late, 2)] {
                    let masked = Operand::symbol(&emitter.temporary(ScalarType::B32));
                    emitter
                        .op("and.b32", vec![masked.clone(), Operand::symbol(&value), number(bit)]);
                    emitter.op("setp.ne.u32", vec![Operand::symbol(predicate), masked, number(0)]);
                }
                Ok(())
            }
            Place::Words(low, high) | Place::ReadWords(low, high) => {
                let wide = widen(emitter, value, kind, ScalarType::B64);
                let halves = [(); 2].map(|()| emitter.temporary(ScalarType::B32));
                let vector = halves.iter().map(|half| Operand::symbol(half)).collect();
                emitter.op("mov.b64", vec![Operand::Vector(vector), Operand::symbol(&wide)]);
                for (word, half) in [low, high].into_iter().zip(&halves) {
                    let renamed = reads.lent(emitter, word).filter(|_| place.is_read_word());
                    emitter.write_word(word, renamed.as_deref(), half)?;
                }
                Ok(())
            }
        }
    }

    /// The value of an argument that only instructions have.
    fn of_instruction(
        &self,
        argument: &Argument,
        kind: ScalarType,
        emitter: &mut Emitter<'_>,
    ) -> Result<Name, String> {
        let at = self.at.ok_or_else(|| format!("there is no instruction for {argument:?}"))?;
        match argument {
            Argument::Pc => Ok(constant(emitter, at.inst.pc.0, kind)),
            Argument::Guard => {
                let Some(guard) = &at.guard else { return Ok(constant(emitter, 1, kind)) };
                let value = emitter.temporary(ScalarType::B32);
                let (set, clear) = if guard.is_negated { (0, 1) } else { (1, 0) };
                let predicate = Operand::symbol(&guard.register);
                let operands = vec![Operand::symbol(&value), number(set), number(clear), predicate];
                emitter.op("selp.b32", operands);
                Ok(widen(emitter, value, ScalarType::B32, kind))
            }
            Argument::Operand(index) => {
                let missing = || format!("the instruction has no operand {index}");
                let resolved = at.inst.operands.get(*index).ok_or_else(missing)?;
                let tree = at.tree.operands.get(*index).ok_or_else(missing)?;
                self.operand(at, resolved, tree, kind, emitter)
            }
            Argument::Address => self.address(at, kind, emitter),
            _ => Err("the argument is not available".to_owned()),
        }
    }

    fn operand(
        &self,
        at: &At<'_>,
        resolved: &Resolved,
        tree: &Operand,
        kind: ScalarType,
        emitter: &mut Emitter<'_>,
    ) -> Result<Name, String> {
        match resolved {
            Resolved::Register(register) => read(emitter, *register, kind),
            Resolved::Constant(value) => {
                let form = &at.inst.form;
                let of = form.source().unwrap_or(kind);
                Ok(constant(emitter, value.bits(of), kind))
            }
            Resolved::Special(_) => {
                let (Operand::Value(_) | Operand::Member { .. }) = tree else {
                    return Err(format!("operand `{tree}` is not supported"));
                };
                Ok(special(emitter, &tree.to_string(), kind))
            }
            Resolved::Symbol(..) | Resolved::Frame(_) => {
                let address = emitter.temporary(ScalarType::B64);
                emitter.op("mov.b64", vec![Operand::symbol(&address), tree.clone()]);
                Ok(narrow(emitter, address, ScalarType::B64, kind))
            }
            _ => Err(format!("operand `{tree}` has no single value")),
        }
    }

    fn address(
        &self,
        at: &At<'_>,
        kind: ScalarType,
        emitter: &mut Emitter<'_>,
    ) -> Result<Name, String> {
        let none = || "the instruction accesses no memory that has an address".to_owned();
        let found = at.inst.operands.iter().zip(&at.tree.operands);
        let memory = found.filter_map(|(resolved, tree)| match (resolved, tree) {
            (Resolved::Memory(address), Operand::Address(parts)) => Some((address, parts.first()?)),
            _ => None,
        });
        let (address, tree) = memory.into_iter().next().ok_or_else(none)?;
        if matches!(at.inst.form.class(), Some(Class::Texture)) {
            return Err(none());
        }
        let value = match &*address.base {
            Resolved::Register(register) => read(emitter, *register, ScalarType::B64)?,
            Resolved::Constant(value) => {
                constant(emitter, value.bits(ScalarType::B64), ScalarType::B64)
            }
            Resolved::Symbol(..) | Resolved::Frame(_) => {
                let name = symbol_of(tree).ok_or_else(none)?;
                let value = emitter.temporary(ScalarType::B64);
                emitter.op("mov.b64", vec![Operand::symbol(&value), Operand::symbol(name)]);
                value
            }
            _ => return Err(none()),
        };
        let sum = match address.offset {
            0 => value,
            offset => {
                let sum = emitter.temporary(ScalarType::B64);
                let offset = hexadecimal(offset as u64);
                let operands = vec![Operand::symbol(&sum), Operand::symbol(&value), offset];
                emitter.op("add.u64", operands);
                sum
            }
        };
        Ok(narrow(emitter, sum, ScalarType::B64, kind))
    }
}

/// The variable in an address.
fn symbol_of(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Value(Expression::Symbol(name)) => Some(name),
        Operand::Value(Expression::Binary(_, parts)) => match &parts[0] {
            Expression::Symbol(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The declared register of a register that one parameter can pass.
fn register_of_64_bits(
    emitter: &Emitter<'_>,
    register: Register,
) -> Result<(Register, Name), String> {
    let (found, name) = emitter.register_of(register.first)?;
    match found.kind.bits() {
        64 => Ok((found, name)),
        bits => Err(format!("`{name}` has {bits} bits; hooks pass such registers in two parts")),
    }
}

/// Reads a register to a temporary one.
fn read(emitter: &mut Emitter<'_>, register: Register, kind: ScalarType) -> Result<Name, String> {
    if register.kind.bits() <= 32 {
        let value = emitter.read_word(register.first, None)?;
        return Ok(widen(emitter, value, ScalarType::B32, kind));
    }
    let (found, name) = register_of_64_bits(emitter, register)?;
    let value = emitter.copy(found, &name);
    Ok(narrow(emitter, value, found.kind, kind))
}

/// Writes a value to a register.
fn write(
    emitter: &mut Emitter<'_>,
    register: Register,
    value: Name,
    kind: ScalarType,
) -> Result<(), String> {
    if register.kind.bits() <= 32 {
        let value = narrow(emitter, value, kind, ScalarType::B32);
        return emitter.write_word(register.first, None, &value);
    }
    let (found, name) = register_of_64_bits(emitter, register)?;
    let value = widen(emitter, value, kind, ScalarType::B64);
    let operands = vec![Operand::symbol(&name), Operand::symbol(&value)];
    emitter.op(&format!("mov.{}", untyped(found.kind)), operands);
    Ok(())
}

fn constant(emitter: &mut Emitter<'_>, value: u64, kind: ScalarType) -> Name {
    let name = emitter.temporary(kind);
    let value = if kind.bits() == 64 { value } else { value & u64::from(u32::MAX) };
    emitter.op(&format!("mov.{}", untyped(kind)), vec![Operand::symbol(&name), hexadecimal(value)]);
    name
}

/// Reads a special register. Those whose names end in `64`, and `%globaltimer`, have 64 bits.
fn special(emitter: &mut Emitter<'_>, name: &str, kind: ScalarType) -> Name {
    let is_wide = name.ends_with("64") || matches!(name, "%globaltimer" | "%current_graph_exec");
    let own = if is_wide { ScalarType::B64 } else { ScalarType::B32 };
    let value = emitter.temporary(own);
    let from = match name.split_once('.') {
        Some((register, member)) => {
            Operand::Member { register: register.into(), member: member.into() }
        }
        None => Operand::symbol(name),
    };
    let instruction = if is_wide { "mov.u64" } else { "mov.u32" };
    emitter.op(instruction, vec![Operand::symbol(&value), from]);
    if is_wide { narrow(emitter, value, own, kind) } else { widen(emitter, value, own, kind) }
}

/// Extends a value of 32 bits with zeros, if necessary.
fn widen(emitter: &mut Emitter<'_>, value: Name, from: ScalarType, to: ScalarType) -> Name {
    if from.bits() >= to.bits() {
        return value;
    }
    let wide = emitter.temporary(ScalarType::B64);
    emitter.op("cvt.u64.u32", vec![Operand::symbol(&wide), Operand::symbol(&value)]);
    wide
}

/// The lowest 32 bits of a value, if necessary.
fn narrow(emitter: &mut Emitter<'_>, value: Name, from: ScalarType, to: ScalarType) -> Name {
    if from.bits() <= to.bits() {
        return value;
    }
    let low = emitter.temporary(ScalarType::B32);
    emitter.op("cvt.u32.u64", vec![Operand::symbol(&low), Operand::symbol(&value)]);
    low
}
