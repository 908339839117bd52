//! Declarations as text.

use super::join;
use crate::{Attribute, Declaration, Declarator, Initializer, Parameter, ValueType};
use std::fmt::{Display, Formatter, Result};

/// `.attribute(.managed) `, or nothing.
pub(super) fn attributes(f: &mut Formatter<'_>, attributes: &[Attribute]) -> Result {
    if attributes.is_empty() {
        return Ok(());
    }
    f.write_str(".attribute(")?;
    join(f, attributes, ", ")?;
    f.write_str(") ")
}

impl Display for Attribute {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, ".{}", self.name)?;
        if self.arguments.is_empty() {
            return Ok(());
        }
        f.write_str("(")?;
        join(f, &self.arguments, ", ")?;
        f.write_str(")")
    }
}

impl Display for ValueType {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.elements > 1 {
            write!(f, ".v{} ", self.elements)?;
        }
        self.scalar.fmt(f)
    }
}

impl Display for Declaration {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(linkage) = self.linkage {
            write!(f, ".{} ", linkage.name())?;
        }
        self.space.fmt(f)?;
        if let Some(bank) = self.bank {
            write!(f, "[{bank}]")?;
        }
        f.write_str(" ")?;
        attributes(f, &self.attributes)?;
        if let Some(alignment) = self.alignment {
            write!(f, ".align {alignment} ")?;
        }
        write!(f, "{} ", self.kind)?;
        join(f, &self.declarators, ", ")?;
        f.write_str(";")
    }
}

fn dimensions(f: &mut Formatter<'_>, dimensions: &[Option<u64>]) -> Result {
    dimensions.iter().try_for_each(|dimension| match dimension {
        Some(size) => write!(f, "[{size}]"),
        None => f.write_str("[]"),
    })
}

impl Display for Declarator {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.name)?;
        if let Some(count) = self.count {
            write!(f, "<{count}>")?;
        }
        dimensions(f, &self.dimensions)?;
        match &self.initializer {
            Some(initializer) => write!(f, " = {initializer}"),
            None => Ok(()),
        }
    }
}

impl Display for Initializer {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Initializer::Value(value) => value.fmt(f),
            Initializer::List(all) => {
                f.write_str("{")?;
                join(f, all, ", ")?;
                f.write_str("}")
            }
        }
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} ", self.space)?;
        if let Some(alignment) = self.alignment {
            write!(f, ".align {alignment} ")?;
        }
        write!(f, "{} ", self.kind)?;
        if let Some(pointer) = self.pointer {
            f.write_str(".ptr ")?;
            if let Some(space) = pointer.space {
                write!(f, "{space} ")?;
            }
            if let Some(alignment) = pointer.alignment {
                write!(f, ".align {alignment} ")?;
            }
        }
        f.write_str(&self.name)?;
        dimensions(f, &self.dimensions)
    }
}
