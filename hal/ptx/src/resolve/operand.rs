//! Operands of instructions.

use super::Labels;
use super::error::{ResolveError, ResolveErrorKind, error};
use super::scope::{Entity, Scope};
use crate::{
    Address, Argument, Binary, Condition, Constant, Expression, Instruction, Name, Operand,
    Position, SpecialOperand, SpecialRegister, Symbol, Unary,
};

/// Names that are visible to an instruction.
pub(super) struct Context<'a> {
    pub globals: &'a Scope,
    /// Names of the function, those of the innermost block last.
    pub scopes: &'a [Scope],
    pub labels: &'a Labels,
    pub position: Position,
}

impl Context<'_> {
    fn find(&self, name: &str) -> Option<&Entity> {
        let inner = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        inner.or_else(|| self.globals.get(name))
    }

    fn unknown(&self, name: &str) -> ResolveError {
        error(self.position, ResolveErrorKind::Unknown(name.to_owned()))
    }

    fn invalid(&self, operand: &dyn ToString, expected: &'static str) -> ResolveError {
        let operand = operand.to_string();
        error(self.position, ResolveErrorKind::Operand { operand, expected })
    }
}

pub(super) fn guard(
    inst: &Instruction,
    context: &Context<'_>,
) -> Result<Option<Condition>, ResolveError> {
    let Some(guard) = &inst.guard else { return Ok(None) };
    match symbol(&guard.register, context)? {
        Argument::Register(register) if register.is_predicate() => {
            Ok(Some(Condition { register: register.first, is_negated: guard.is_negated }))
        }
        _ => Err(context.invalid(&guard.register, "a predicate register")),
    }
}

pub(super) fn operands(
    inst: &Instruction,
    context: &Context<'_>,
) -> Result<Vec<Argument>, ResolveError> {
    inst.operands.iter().map(|operand| argument(operand, context)).collect()
}

fn argument(operand: &Operand, context: &Context<'_>) -> Result<Argument, ResolveError> {
    let all = |parts: &[Operand]| {
        parts.iter().map(|part| argument(part, context)).collect::<Result<Vec<_>, _>>()
    };
    Ok(match operand {
        Operand::Value(value) => expression(value, context)?,
        Operand::Member { register, member } => self::member(register, member, context)?,
        Operand::Vector(parts) => Argument::Vector(all(parts)?),
        Operand::List(parts) => Argument::List(all(parts)?),
        Operand::Pair(pair) => {
            Argument::Pair(Box::new([argument(&pair[0], context)?, argument(&pair[1], context)?]))
        }
        Operand::Address(parts) => {
            let Some((first, others)) = parts.split_first() else {
                return Err(context.invalid(operand, "an address"));
            };
            let (base, offset) = match argument(first, context)? {
                Argument::Symbol(symbol, offset) => (Argument::Symbol(symbol, 0), offset),
                base => (base, 0),
            };
            address(base, offset, all(others)?)
        }
        Operand::Element { .. } => {
            return Err(context.invalid(operand, "an address in brackets, like [array+4]"));
        }
    })
}

/// Splits the sum of a base and a constant.
fn address(base: Argument, offset: i64, others: Vec<Argument>) -> Argument {
    match base {
        Argument::Memory(Address { base, offset: inner, others: none }) if none.is_empty() => {
            Argument::Memory(Address { base, offset: inner.wrapping_add(offset), others })
        }
        base => Argument::Memory(Address { base: Box::new(base), offset, others }),
    }
}

fn expression(value: &Expression, context: &Context<'_>) -> Result<Argument, ResolveError> {
    if let Some(constant) = Constant::of(value) {
        return Ok(Argument::Constant(constant));
    }
    match value {
        Expression::Symbol(name) => symbol(name, context),
        Expression::Unary(Unary::Not, inner) => match expression(inner, context)? {
            Argument::Register(register) if register.is_predicate() => Ok(Argument::Not(register)),
            _ => Err(context.invalid(value, "a predicate register")),
        },
        Expression::Binary(operator @ (Binary::Add | Binary::Subtract), parts) => {
            let number = Constant::of(&parts[1]).and_then(Constant::integer);
            let number =
                number.ok_or_else(|| context.invalid(value, "a name plus a constant"))? as i64;
            let number = if *operator == Binary::Add { number } else { number.wrapping_neg() };
            Ok(match expression(&parts[0], context)? {
                Argument::Symbol(symbol, offset) => {
                    Argument::Symbol(symbol, offset.wrapping_add(number))
                }
                Argument::Frame(offset) => Argument::Frame(offset.wrapping_add(number as u64)),
                Argument::Parameter(offset) => {
                    Argument::Parameter(offset.wrapping_add(number as u64))
                }
                base => address(base, number, Vec::new()),
            })
        }
        // `generic(x)` is the address itself.
        Expression::Call(name, arguments) if &**name == "generic" && arguments.len() == 1 => {
            expression(&arguments[0], context)
        }
        _ => Err(context.invalid(value, "a register, a name, or a constant expression")),
    }
}

fn symbol(name: &str, context: &Context<'_>) -> Result<Argument, ResolveError> {
    if name == "_" {
        return Ok(Argument::Sink);
    }
    match context.find(name) {
        Some(Entity::Registers(elements)) => Ok(match elements[..] {
            [register] => Argument::Register(register),
            _ => Argument::Vector(elements.iter().copied().map(Argument::Register).collect()),
        }),
        Some(Entity::Symbol(symbol)) => Ok(Argument::Symbol(symbol.clone(), 0)),
        Some(Entity::Frame(offset)) => Ok(Argument::Frame(*offset)),
        Some(Entity::Parameter(offset)) => Ok(Argument::Parameter(*offset)),
        Some(Entity::Targets(targets)) => {
            let target = |label: &Name| {
                context.labels.get(label).copied().ok_or_else(|| context.unknown(label))
            };
            targets.iter().map(target).collect::<Result<_, _>>().map(Argument::Targets)
        }
        Some(Entity::Functions(functions)) => {
            let number = |name: &Name| match context.find(name) {
                Some(Entity::Symbol(Symbol::Function(number))) => Ok(*number),
                _ => Err(context.unknown(name)),
            };
            functions.iter().map(number).collect::<Result<_, _>>().map(Argument::Functions)
        }
        Some(Entity::Prototype(signature)) => Ok(Argument::Prototype(signature.clone())),
        None => match (context.labels.get(name), SpecialRegister::parse(name)) {
            (Some(pc), _) => Ok(Argument::Label(*pc)),
            (None, Some(register)) => {
                Ok(Argument::Special(SpecialOperand { register, element: 0 }))
            }
            (None, None) => Err(context.unknown(name)),
        },
    }
}

fn member(name: &Name, member: &Name, context: &Context<'_>) -> Result<Argument, ResolveError> {
    let element = match &**member {
        "x" | "r" => Some(0),
        "y" | "g" => Some(1),
        "z" | "b" => Some(2),
        "w" | "a" => Some(3),
        _ => None,
    };
    let shown = || format!("{name}.{member}");
    match (symbol(name, context)?, element) {
        (Argument::Special(special), Some(element)) => {
            Ok(Argument::Special(SpecialOperand { element, ..special }))
        }
        (Argument::Vector(elements), Some(element)) => {
            let found = elements.into_iter().nth(element.into());
            found.ok_or_else(|| context.invalid(&shown(), "an element of the vector"))
        }
        (Argument::Register(register), None) => Ok(Argument::Part(register, member.clone())),
        _ => Err(context.invalid(&shown(), "an element of a vector, or a part of a register")),
    }
}
