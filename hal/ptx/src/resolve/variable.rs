//! Variables that all lanes share, and their initial values.

use super::error::{ResolveError, ResolveErrorKind, error};
use super::scope::{Entity, Scope};
use crate::code::{array_bytes, natural_alignment};
use crate::{
    Binary, Constant, Declaration, Declarator, Expression, Initializer, Linkage, Relocation,
    ScalarType, Symbol, Variable,
};

/// The largest variable, in bytes.
const MOST_BYTES: u64 = 1 << 40;

/// The largest number of bytes of a variable that an initial value can set.
const MOST_INITIAL_BYTES: u64 = 1 << 28;

/// The alignment of a declaration in bytes.
pub(super) fn alignment(
    declaration: &Declaration,
    declarator: &Declarator,
) -> Result<u64, ResolveError> {
    match declaration.alignment {
        Some(alignment) if !alignment.is_power_of_two() || alignment > MOST_BYTES => {
            Err(error(declarator.position, ResolveErrorKind::Alignment(alignment)))
        }
        Some(alignment) => Ok(alignment),
        None => Ok(natural_alignment(declaration.kind.scalar, declaration.kind.elements)),
    }
}

/// The size of a variable in bytes. A first dimension without size follows from the initial value.
pub(super) fn bytes(
    declaration: &Declaration,
    declarator: &Declarator,
) -> Result<u64, ResolveError> {
    let unknown = match &declarator.initializer {
        Some(Initializer::List(all)) => all.len() as u64,
        _ => 0,
    };
    let bytes = array_bytes(declaration.kind.bytes(), &declarator.dimensions, unknown);
    bytes.filter(|bytes| *bytes <= MOST_BYTES).ok_or_else(|| {
        error(declarator.position, ResolveErrorKind::Size(declarator.name.to_string()))
    })
}

/// Declares the variables of a declaration.
pub(super) fn declare_shared(
    declaration: &Declaration,
    scope: &mut Scope,
    variables: &mut Vec<Variable>,
) -> Result<(), ResolveError> {
    for declarator in &declaration.declarators {
        let is_external = declaration.linkage == Some(Linkage::Extern);
        let variable = Variable {
            position: declarator.position,
            name: declarator.name.clone(),
            space: declaration.space,
            alignment: alignment(declaration, declarator)?,
            bytes: bytes(declaration, declarator)?,
            is_external,
            content: Vec::new(),
            relocations: Vec::new(),
        };
        let entity = Entity::Symbol(Symbol::Variable(variables.len()));
        let previous = match scope.get(&declarator.name) {
            Some(Entity::Symbol(Symbol::Variable(number))) => Some(*number),
            Some(_) => None,
            None => {
                scope.declare(declarator.name.clone(), entity);
                variables.push(variable);
                continue;
            }
        };
        // An external declaration and the definition.
        let previous = previous.map(|number| &mut variables[number]);
        match previous {
            Some(_) if is_external => {}
            Some(previous) if previous.is_external => *previous = variable,
            _ => {
                let kind = ResolveErrorKind::Duplicate(declarator.name.to_string());
                return Err(error(declarator.position, kind));
            }
        }
    }
    Ok(())
}

/// Computes the initial values of a declaration's variables.
pub(super) fn initialize(
    declaration: &Declaration,
    scope: &Scope,
    variables: &mut [Variable],
) -> Result<(), ResolveError> {
    for declarator in &declaration.declarators {
        let Some(initializer) = &declarator.initializer else { continue };
        let Some(Entity::Symbol(Symbol::Variable(number))) = scope.get(&declarator.name) else {
            continue;
        };
        let invalid = || {
            let kind = ResolveErrorKind::Initializer(declarator.name.to_string());
            error(declarator.position, kind)
        };
        let bytes = variables[*number].bytes;
        let mut content = Content {
            scope,
            kind: declaration.kind.scalar,
            size: bytes.min(MOST_INITIAL_BYTES),
            bytes: Vec::new(),
            relocations: Vec::new(),
        };
        let mut strides = Vec::new();
        let mut stride = declaration.kind.bytes();
        for dimension in declarator.dimensions.iter().rev() {
            strides.push(stride);
            stride = stride.checked_mul(dimension.unwrap_or(1)).ok_or_else(invalid)?;
        }
        strides.reverse();
        if declaration.kind.elements > 1 {
            strides.push(declaration.kind.scalar.bytes());
        }
        content.put(initializer, 0, &strides).ok_or_else(invalid)?;
        let variable = &mut variables[*number];
        (variable.content, variable.relocations) = (content.bytes, content.relocations);
    }
    Ok(())
}

/// The initial value of a variable while it is computed.
struct Content<'a> {
    scope: &'a Scope,
    kind: ScalarType,
    /// Bytes that may be initialised.
    size: u64,
    /// The bytes up to the last initialised one.
    bytes: Vec<u8>,
    relocations: Vec<Relocation>,
}

impl Content<'_> {
    /// Puts an initial value at an offset; `strides` are the distances of elements, by dimension.
    fn put(&mut self, initializer: &Initializer, offset: u64, strides: &[u64]) -> Option<()> {
        match initializer {
            Initializer::Value(value) => self.put_value(value, offset),
            Initializer::List(all) => {
                let (stride, rest) = strides.split_first()?;
                let mut at = offset;
                for element in all {
                    self.put(element, at, rest)?;
                    at = at.checked_add(*stride)?;
                }
                Some(())
            }
        }
    }

    fn put_value(&mut self, value: &Expression, offset: u64) -> Option<()> {
        let size = self.kind.bytes();
        let start = usize::try_from(offset).ok()?;
        let end = offset.checked_add(size).filter(|end| *end <= self.size)? as usize;
        self.bytes.resize(self.bytes.len().max(end), 0);
        let place = &mut self.bytes[start..end];
        if let Some(constant) = Constant::of(value) {
            place.copy_from_slice(constant.bits(self.kind).to_le_bytes().get(..size as usize)?);
            return Some(());
        }
        let (value, shift) = match value {
            Expression::Mask(mask, value) => {
                let Constant::Integer { bits, .. } = Constant::of(&Expression::Number(*mask))?
                else {
                    return None;
                };
                (&**value, bits.trailing_zeros())
            }
            value => (value, 0),
        };
        let (symbol, addend, is_generic) = address(self.scope, value)?;
        let bytes = size;
        self.relocations.push(Relocation { offset, bytes, symbol, addend, shift, is_generic });
        Some(())
    }
}

/// A symbol plus a number, perhaps as a generic address.
fn address(scope: &Scope, value: &Expression) -> Option<(Symbol, i64, bool)> {
    match value {
        Expression::Symbol(name) => match scope.get(name)? {
            Entity::Symbol(symbol) => Some((symbol.clone(), 0, false)),
            _ => None,
        },
        Expression::Call(name, arguments) if &**name == "generic" => {
            let [argument] = &arguments[..] else { return None };
            let (symbol, addend, _) = address(scope, argument)?;
            Some((symbol, addend, true))
        }
        Expression::Binary(operator @ (Binary::Add | Binary::Subtract), parts) => {
            let [left, right] = &**parts;
            let (symbol, addend, is_generic) = address(scope, left)?;
            let number = Constant::of(right)?.integer()? as i64;
            let number = if *operator == Binary::Add { number } else { number.wrapping_neg() };
            Some((symbol, addend.wrapping_add(number), is_generic))
        }
        _ => None,
    }
}
