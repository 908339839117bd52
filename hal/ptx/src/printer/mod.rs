//! Modules as text. Parsing the text gives the same tree, apart from positions.

mod declaration;
mod operand;
mod statement;

use crate::{
    Function, FunctionKind, Item, ItemKind, Module, Performance, Section, SectionEntry,
    SectionValue,
};
use std::fmt::{Display, Formatter, Result};

/// Writes elements with a separator between them.
fn join<T: Display>(
    f: &mut Formatter<'_>,
    elements: impl IntoIterator<Item = T>,
    separator: &str,
) -> Result {
    for (index, element) in elements.into_iter().enumerate() {
        f.write_str(if index == 0 { "" } else { separator })?;
        element.fmt(f)?;
    }
    Ok(())
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.items.iter().try_for_each(|item| writeln!(f, "{item}"))
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.kind {
            ItemKind::Version { major, minor } => write!(f, ".version {major}.{minor}"),
            ItemKind::Target(names) => {
                f.write_str(".target ")?;
                join(f, names, ", ")
            }
            ItemKind::AddressSize(bits) => write!(f, ".address_size {bits}"),
            ItemKind::File(file) => {
                write!(f, ".file {} \"{}\"", file.number, file.path)?;
                match file.times {
                    Some(times) => write!(f, ", {}, {}", times.modified, times.bytes),
                    None => Ok(()),
                }
            }
            ItemKind::Section(section) => section.fmt(f),
            ItemKind::Pragma(texts) => pragma(f, texts),
            ItemKind::Variable(declaration) => declaration.fmt(f),
            ItemKind::Function(function) => function.fmt(f),
            ItemKind::Alias(alias) => write!(f, ".alias {}, {};", alias.name, alias.function),
        }
    }
}

/// `.pragma "a", "b";`.
fn pragma(f: &mut Formatter<'_>, texts: &[crate::Name]) -> Result {
    f.write_str(".pragma ")?;
    join(f, texts.iter().map(|text| format!("\"{text}\"")), ", ")?;
    f.write_str(";")
}

impl Display for Section {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, ".section .{}\n{{", self.name)?;
        for entry in &self.entries {
            match entry {
                SectionEntry::Label(name) => writeln!(f, "{name}:")?,
                SectionEntry::Values { kind, values } => {
                    write!(f, ".{kind} ")?;
                    join(f, values, ", ")?;
                    f.write_str("\n")?;
                }
            }
        }
        f.write_str("}")
    }
}

impl Display for SectionValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            SectionValue::Integer(value) => value.fmt(f),
            SectionValue::Symbol { name, offset: 0 } => f.write_str(name),
            SectionValue::Symbol { name, offset } => write!(f, "{name}+{offset}"),
            SectionValue::Difference { end, start } => write!(f, "{end}-{start}"),
        }
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(linkage) = self.linkage {
            write!(f, ".{} ", linkage.name())?;
        }
        f.write_str(if self.kind == FunctionKind::Entry { ".entry " } else { ".func " })?;
        declaration::attributes(f, &self.attributes)?;
        if !self.results.is_empty() {
            f.write_str("(")?;
            join(f, &self.results, ", ")?;
            f.write_str(") ")?;
        }
        f.write_str(&self.name)?;
        match &self.parameters {
            Some(parameters) if parameters.is_empty() => f.write_str("()")?,
            Some(parameters) => {
                f.write_str("(\n    ")?;
                join(f, parameters, ",\n    ")?;
                f.write_str("\n)")?;
            }
            None => {}
        }
        for directive in &self.directives {
            write!(f, "\n{directive}")?;
        }
        match &self.body {
            Some(body) => {
                f.write_str("\n")?;
                statement::block(f, body, 0)
            }
            None => f.write_str("\n;"),
        }
    }
}

impl Display for Performance {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Performance::Numbers { name, values } => {
                write!(f, ".{name}")?;
                f.write_str(if values.is_empty() { "" } else { " " })?;
                join(f, values, ", ")
            }
            Performance::Pragma(texts) => pragma(f, texts),
        }
    }
}
