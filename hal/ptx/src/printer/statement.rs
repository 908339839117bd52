//! Statements as text.

use super::{join, pragma};
use crate::{Block, Guard, Instruction, Location, Prototype, StatementKind};
use std::fmt::{Display, Formatter, Result};

/// Writes a block whose braces are indented by `depth` levels.
pub(super) fn block(f: &mut Formatter<'_>, block: &Block, depth: usize) -> Result {
    let indent =
        |f: &mut Formatter<'_>, depth: usize| (0..depth).try_for_each(|_| f.write_str("    "));
    f.write_str("{\n")?;
    for statement in &block.statements {
        let is_label = matches!(statement.kind, StatementKind::Label(_));
        indent(f, if is_label { depth } else { depth + 1 })?;
        match &statement.kind {
            StatementKind::Label(name) => write!(f, "{name}:")?,
            StatementKind::Instruction(instruction) => write!(f, "{instruction};")?,
            StatementKind::Declaration(declaration) => declaration.fmt(f)?,
            StatementKind::Block(inner) => self::block(f, inner, depth + 1)?,
            StatementKind::Location(location) => location.fmt(f)?,
            StatementKind::Pragma(texts) => pragma(f, texts)?,
            StatementKind::Prototype(prototype) => prototype.fmt(f)?,
            StatementKind::CallTargets { label, functions } => {
                write!(f, "{label}: .calltargets ")?;
                join(f, functions, ", ")?;
                f.write_str(";")?;
            }
            StatementKind::BranchTargets { label, targets } => {
                write!(f, "{label}: .branchtargets ")?;
                join(f, targets, ", ")?;
                f.write_str(";")?;
            }
        }
        f.write_str("\n")?;
    }
    indent(f, depth)?;
    f.write_str("}")
}

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(guard) = &self.guard {
            write!(f, "{guard} ")?;
        }
        f.write_str(&self.name)?;
        f.write_str(if self.operands.is_empty() { "" } else { " " })?;
        join(f, &self.operands, ", ")
    }
}

impl Display for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "@{}{}", if self.is_negated { "!" } else { "" }, self.register)
    }
}

impl Display for Location {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, ".loc {} {} {}", self.file, self.line, self.column)?;
        let Some(inlined) = &self.inlined else { return Ok(()) };
        write!(f, ", function_name {}", inlined.function)?;
        if let Some(offset) = inlined.offset {
            write!(f, "+{offset}")?;
        }
        write!(f, ", inlined_at {} {} {}", inlined.file, inlined.line, inlined.column)
    }
}

impl Display for Prototype {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}: .callprototype ", self.label)?;
        if !self.results.is_empty() {
            f.write_str("(")?;
            join(f, &self.results, ", ")?;
            f.write_str(") ")?;
        }
        write!(f, "{} (", self.name)?;
        join(f, &self.parameters, ", ")?;
        f.write_str(")")?;
        for directive in &self.directives {
            write!(f, " {directive}")?;
        }
        f.write_str(";")
    }
}
